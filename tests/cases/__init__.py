"""Acceptance cases: any folder of case files, run through the real code. `python -m tests.cases`."""
