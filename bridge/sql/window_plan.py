"""What a refresh must know of the windows by which the rows of a result come."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.sql.connectors import Table
from bridge.sql.plan import EventTime, WindowPlan
from bridge.sql.relation import Relation
from bridge.sql.sink import Result
from bridge.sql.tree import spark_text
from bridge.sql.window_span import WindowSpan

__all__ = ["plan_windows"]


def plan_windows(
    relation: Relation, result: Result, tables: Sequence[Table], lateness_ms: int
) -> WindowPlan | None:
    """Returns the windows of a result; None if its rows do not come when windows close.

    `tables` are its sources, all of which have a WATERMARK then.
    """
    window = relation.window
    if window is None or not window.is_closed:
        return None
    by_name = {table.name: table for table in tables}
    counts = {read.table: spark_text(read.counts) for read in window.inputs}
    column, ends_after_ms = "", 0
    for term, after_ms in ((window.end, 0), (window.start, window.size_ms)):
        name = result.uncast.get(min(term), "") if term is not None else ""
        if name in result.key and not column:
            column, ends_after_ms = name, after_ms
    spans = {name: tuple(read.span for read in window.inputs if read.table == name) for name in counts}
    times = tuple(_event_time(by_name[name], sql, spans[name]) for name, sql in counts.items())
    return WindowPlan(times, lateness_ms, column, ends_after_ms)


def _event_time(table: Table, late_sql: str, spans: tuple[WindowSpan, ...]) -> EventTime:
    watermark = table.ddl.schema.watermark
    assert watermark is not None
    delay_ms = round(watermark.delay_seconds * 1000)
    return EventTime(table.name, watermark.column, delay_ms, table.idle_timeout_ms, late_sql, spans)
