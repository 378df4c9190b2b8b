"""Which windows of an INSERT close with a refresh: those whose end the watermark of its sources passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from bridge.errors import TableError
from bridge.metrics import now_ms
from bridge.pipelines.scripts.event_times import EventTimeProgress, EventTimes
from bridge.pipelines.scripts.refresh import Closing, late_rows
from bridge.pipelines.scripts.source_tables import SourceRange, SourceTables
from bridge.session import child_session
from bridge.sql import InsertPlan
from bridge.sql.plan import WindowPlan

__all__ = ["ClosingWindows", "close_windows"]

_BEGIN_MS = -62_135_596_800_000
"""The year 1, in which Flink's and Spark's timestamps begin."""


@dataclass(frozen=True)
class ClosingWindows:
    """The windows of one refresh, the progress that its commit carries, and what a user is told."""

    windows: Closing
    progress: EventTimeProgress
    has_advanced: bool
    """Whether the watermark is a later one than before, so that windows may have closed."""
    warning: str | None


def close_windows(
    spark: SparkSession,
    plan: InsertPlan,
    times: EventTimes,
    sources: SourceTables,
    ranges: Mapping[str, SourceRange],
    before: EventTimeProgress,
    *,
    is_whole: bool,
) -> ClosingWindows:
    """Advance the watermark by the rows of `ranges`, and return the windows between it and the one before.

    With `is_whole` all windows that are closed are computed, also those from before. Raises TableError for rows without
    a time. Runs up to two jobs for each source with commits.
    """
    assert plan.windows is not None
    session, now = child_session(spark), now_ms()
    for time in plan.windows.event_times:
        newest = ranges[time.source].newest_ms(session, time.column)
        times.advance(time.source, sources.partitions[time.source], newest, now)
    progress = times.progress(now)
    windows = _closing(plan.windows, None if is_whole else before.watermark_ms, progress.watermark_ms)
    late, timeless = late_rows(session, plan, ranges, windows)
    for time in plan.windows.event_times:
        if timeless.get(time.source):
            raise TableError(
                f"INSERT {plan.name}: {timeless[time.source]:,} changed rows of `{time.source}` have NULL in "
                f"{time.column}, the column of its WATERMARK, so they belong to no window; nothing was written. Leave "
                f"such rows out in a view: CREATE VIEW ... AS SELECT * FROM {time.source} WHERE {time.column} IS NOT "
                "NULL"
            )
    has_advanced = progress.watermark_ms != before.watermark_ms
    return ClosingWindows(windows, progress, has_advanced, _warning(late, times, now, progress))


def _closing(plan: WindowPlan, before_ms: int | None, watermark_ms: int | None) -> Closing:
    """A window is closed when the watermark has reached its last millisecond; see Flink's WindowOperator."""
    is_whole = before_ms is None
    after_ms = _BEGIN_MS if before_ms is None else before_ms - plan.lateness_ms + 1
    return Closing(after_ms, after_ms if watermark_ms is None else watermark_ms + 1, is_whole)


def _warning(late: int, times: EventTimes, now: int, progress: EventTimeProgress) -> str | None:
    if late:
        return f"{late:,} late rows dropped: their windows were closed"
    waits = times.waits_for(now) if progress.watermark_ms is None else []
    if waits:
        return (
            f"no window can close yet: {', '.join(waits[:5])} had no row; set 'scan.watermark.idle-timeout' if it may "
            "stay so"
        )
    return None
