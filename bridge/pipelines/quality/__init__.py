"""Runs the quality suite of a pipeline on its table, and proposes a first suite."""
