"""The gate of a publish (`quality.gate`): counts the rows of a range that break a rule before any of them is sent."""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import DataFrame

from bridge import compact
from bridge.columns import AFTER
from bridge.definition import Definition
from bridge.pipelines.changes import row_gate
from bridge.pipelines.runtime.monitoring import Notices

__all__ = ["check_range"]

_WAY_OUT = (
    "correct the rows in the table, then `bridge resync` sends what differs (a publish by itself sends every version "
    "in turn, and stops again)"
)


def check_range(
    definition: Definition, changes: DataFrame, notices: Notices, stack: ExitStack
) -> row_gate.Counts:
    """Count what the gate finds in the rows of a range; empty without a gate.

    Under `gate: warn` the warnings go to `notices`. Changes that took a shuffle are cached until `stack` closes, so
    that sending them does not shuffle again. Raises QualityError under `gate: fail`.
    """
    if definition.gate is None:
        return ()
    rows = changes
    if AFTER in changes.columns:
        stack.callback(changes.persist().unpersist)
        rows = compact.upserts(changes)
    counts = row_gate.evaluate(definition, rows)
    for warning in row_gate.enforce(definition, counts, rows, "Nothing of it was sent", _WAY_OUT):
        notices.add(warning)
    return counts
