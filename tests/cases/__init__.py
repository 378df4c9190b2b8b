"""Runs acceptance cases, a folder of case files, through the real code: `python -m tests.cases`."""
