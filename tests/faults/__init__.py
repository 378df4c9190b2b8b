"""Rounds of faults over an ingest and a publish that run side by side, and the checker that judges them.

`python -m tests.faults` runs them; see README.md in this folder. `history`, `reading` and `checker` share no code
with the bridge.
"""
