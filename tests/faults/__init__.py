"""Plays rounds of faults on an ingest and a publish that run concurrently, and checks the result.

Run it with `python -m tests.faults`; see README.md in this folder. `history`, `reading` and `checker` share no code
with the bridge.
"""
