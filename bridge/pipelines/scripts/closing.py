"""Closes windows of an INSERT with a refresh: those whose end the watermark of its sources passes.

As in Flink each partition of a source has a watermark, a source has the smallest of its partitions that are not idle,
and a query the smallest of its sources that have not ended. Unlike in Flink it advances with each batch, not with each
record, and it is part of the result's progress, so a run that goes on closes the same windows. `checked_upserts`
refuses rows of a result that share a key.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.columns import KIND, col
from bridge.errors import AmbiguousKeyError, TableError
from bridge.metrics import now_ms
from bridge.offsets import TopicPartition
from bridge.pipelines.scripts.added_groups import query_over
from bridge.pipelines.scripts.refresh import Closing
from bridge.pipelines.scripts.source_tables import SourceRange, SourceTables
from bridge.rows import RowKind
from bridge.session import child_session
from bridge.sql import InsertPlan
from bridge.sql.plan import EventTime, WindowPlan
from bridge.sql.settings import NOT_NULL
from bridge.sql.window_tables import AFTER
from bridge.watermarks import Watermarks

_Partition = tuple[int | None, int]
"""The newest event time of a partition, None before its first row, and when its last row came; epoch milliseconds."""


@dataclass(frozen=True)
class EventTimeProgress:
    """What a result keeps of its event time: the watermark up to which windows are closed, and the partitions."""

    watermark_ms: int | None = None
    partitions: Mapping[str, Mapping[TopicPartition, _Partition]] = field(default_factory=dict)
    """By source."""

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        partitions = {
            source: [[*partition, *times] for partition, times in sorted(found.items())]
            for source, found in self.partitions.items()
        }
        return json.dumps({"watermark": self.watermark_ms, "partitions": partitions})

    @classmethod
    def from_json(cls, text: str) -> EventTimeProgress:
        """Parses the result of `to_json`."""
        found = json.loads(text)
        partitions = {
            source: {(topic, number): (newest, seen) for topic, number, newest, seen in rows}
            for source, rows in found["partitions"].items()
        }
        return cls(found["watermark"], partitions)


class EventTimes:
    """The event times of one INSERT during a run."""

    def __init__(self, plan: WindowPlan, before: EventTimeProgress) -> None:
        self._sources = {time.source: _Source(time) for time in plan.event_times}
        self._watermark_ms = before.watermark_ms
        for name, source in self._sources.items():
            for partition, times in before.partitions.get(name, {}).items():
                source.restore(partition, *times)

    def advance(
        self,
        source: str,
        partitions: Iterable[TopicPartition],
        newest_ms: Mapping[TopicPartition, int],
        now_ms: int,
    ) -> None:
        """Adds what a refresh reads of a source: all of its partitions, and the newest time of those with rows."""
        self._sources[source].advance(partitions, newest_ms, now_ms)

    def progress(self, now_ms: int, ended: Collection[str] = ()) -> EventTimeProgress:
        """The progress after a refresh; its watermark never decreases, and is None until each source has one.

        Sources that have `ended` do not hold it back. When all have, it passes the last window that has a row, and no
        later one: what comes after the end, in another run, may be in later windows.
        """
        if all(name in ended for name in self._sources):
            known = [end for source in self._sources.values() if (end := source.last_end_ms()) is not None]
            reached = max(known) - 1 if known else None
        else:
            current = [s.watermarks.current(now_ms) for n, s in self._sources.items() if n not in ended]
            known = [watermark for watermark in current if watermark is not None]
            reached = min(known) if len(known) == len(current) else None
        if reached is not None and (self._watermark_ms is None or reached > self._watermark_ms):
            self._watermark_ms = reached
        partitions = {name: dict(source.partitions) for name, source in self._sources.items()}
        return EventTimeProgress(self._watermark_ms, partitions)

    def waits_for(self, now_ms: int, ended: Collection[str] = ()) -> list[str]:
        """The partitions without a row, as `topic-0`, because of which no window can close; empty if there is a
        watermark."""
        return [
            f"{topic}-{number}"
            for name, source in self._sources.items()
            if name not in ended and source.watermarks.current(now_ms) is None
            for (topic, number), (newest, _) in sorted(source.partitions.items())
            if newest is None
        ]


class _Source:
    def __init__(self, time: EventTime) -> None:
        self._time = time
        self.watermarks = Watermarks(time.delay_ms, time.idle_timeout_ms)
        self.partitions: dict[TopicPartition, _Partition] = {}

    def last_end_ms(self) -> int | None:
        """The end of the last window that has a row; None without rows."""
        known = [newest for newest, _ in self.partitions.values() if newest is not None]
        return self._time.last_end_ms(max(known)) if known else None

    def restore(self, partition: TopicPartition, newest_ms: int | None, seen_ms: int) -> None:
        self.partitions[partition] = newest_ms, seen_ms
        self.watermarks.watch(partition, seen_ms)
        if newest_ms is not None:
            self.watermarks.advance({partition: newest_ms}, seen_ms)

    def advance(
        self, partitions: Iterable[TopicPartition], newest_ms: Mapping[TopicPartition, int], now_ms: int
    ) -> None:
        for partition in partitions:
            self.watermarks.watch(partition, now_ms)
            self.partitions.setdefault(partition, (None, now_ms))
        self.watermarks.advance(newest_ms, now_ms)
        for partition, newest in newest_ms.items():
            before = self.partitions.get(partition, (None, now_ms))[0]
            self.partitions[partition] = (newest if before is None else max(before, newest)), now_ms


def checked_upserts(changes: DataFrame, plan: InsertPlan) -> int:
    """The number of rows that are not deletes. Raises AmbiguousKeyError if two of them have one key."""
    adds = F.col(KIND) != F.lit(RowKind.DELETE.value)
    if plan.has_one_row_a_key:
        return changes.where(adds).count()
    keys = F.struct(*(F.col(f"`{name}`") for name in plan.key))
    row = changes.agg(F.count_if(adds), F.count_distinct(F.when(adds, keys))).first()
    assert row is not None
    if row[0] != row[1]:
        twice = changes.where(adds).groupBy(keys.alias("key")).count().where("count > 1").first()
        values = dict(zip(plan.key, twice["key"] if twice is not None else (), strict=False))
        shown = ", ".join(f"{name}: {value}" for name, value in values.items())
        way = "" if plan.keeps_keys else "declare the query's type in the sink, which has fewer digits; "
        if None in values.values():
            way += f"leave out rows with NULL in the key, as Flink does with SET '{NOT_NULL}' = 'DROP'; "
        raise AmbiguousKeyError(
            f"INSERT {plan.name}: {row[0] - row[1]:,} rows of the query have a key ({', '.join(plan.key)}) that "
            f"another row has, too, such as ({shown}), so it is not known which one counts; nothing was written. To go "
            f"on, {way}group the rows, or keep one of each key with ROW_NUMBER()"
        )
    return int(row[0])


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


@dataclass
class _ChangedTimes:
    """The times of the changed rows of one source."""

    newest_ms: dict[TopicPartition, int] = field(default_factory=dict)
    """By partition, without deleted rows."""
    late: int = 0
    """How many rows belong to windows that were closed before."""
    timeless: int = 0
    """How many rows have NULL in the time column."""


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

    With `is_whole` all windows that are closed are computed, also those from before, as far as they have all of their
    rows. Raises TableError for rows without
    a time; `times` are not to be used any more then. Runs a job if a source has commits.
    """
    assert plan.windows is not None
    now = now_ms()
    known_ms = None if is_whole else before.watermark_ms
    complete = [sources.complete_after_ms(time) for time in plan.windows.event_times]
    # A window is closed when the watermark has reached its last millisecond; see Flink's WindowOperator.
    closed_ms = _BEGIN_MS if known_ms is None else known_ms - plan.windows.lateness_ms + 1
    # Windows whose rows were removed are left as they are where windows are computed again.
    after_ms = max([closed_ms, *(end for end in complete if end is not None)])
    changed = _changed_times(child_session(spark), plan.windows, ranges, closed_ms)
    for time in plan.windows.event_times:
        found = changed.get(time.source, _ChangedTimes())
        times.advance(time.source, sources.partitions[time.source], found.newest_ms, now)
        if found.timeless:
            raise TableError(
                f"INSERT {plan.name}: {found.timeless:,} changed rows of `{time.source}` have NULL in "
                f"{time.column}, the column of its WATERMARK, so they belong to no window; nothing was written. Leave "
                f"such rows out in a view: CREATE VIEW ... AS SELECT * FROM {time.source} WHERE {time.column} IS NOT "
                "NULL"
            )
    progress = times.progress(now, sources.ended)
    until_ms = after_ms if progress.watermark_ms is None else progress.watermark_ms + 1
    is_all = known_ms is None and all(end is None for end in complete)
    windows = Closing(after_ms, until_ms, is_all)
    late = sum(found.late for found in changed.values())
    has_advanced = progress.watermark_ms != before.watermark_ms
    return ClosingWindows(
        windows, progress, has_advanced, _warning(late, times, now, progress, sources.ended)
    )


def _changed_times(
    session: SparkSession, plan: WindowPlan, ranges: Mapping[str, SourceRange], after_ms: int
) -> dict[str, _ChangedTimes]:
    """The times of the changed rows of each source with commits, by one job. Windows that end until `after_ms` were
    closed before. The sources become views of `session`, a child session."""
    counts = ("newest", "late", "timeless")
    frames = []
    for time in plan.event_times:
        source = ranges[time.source]
        if not source.has_commits:
            continue
        changed = {time.source: source.changed_rows(session)}
        late = query_over(session, time.late_sql, changed, {AFTER: after_ms})
        for frame in (source.newest_times(session, time.column), late):
            known = [col(n) if n in frame.columns else F.lit(None) for n in ("topic", "partition", *counts)]
            types = ("string", "int", "long", "long", "long")
            frames.append(
                frame.select(F.lit(time.source), *(c.cast(t) for c, t in zip(known, types, strict=True)))
            )
    found: dict[str, _ChangedTimes] = {}
    rows = reduce(DataFrame.union, frames).collect() if frames else []
    for name, topic, number, newest, late_count, timeless in rows:
        times = found.setdefault(name, _ChangedTimes())
        if newest is not None:
            times.newest_ms[topic, number] = newest
        times.late += late_count or 0
        times.timeless += timeless or 0
    return found


def _warning(
    late: int, times: EventTimes, now: int, progress: EventTimeProgress, ended: Collection[str]
) -> str | None:
    if late:
        return f"{late:,} late rows dropped: their windows were closed"
    waits = times.waits_for(now, ended) if progress.watermark_ms is None else []
    if waits:
        return (
            f"no window can close yet: {', '.join(waits[:5])} had no row; set 'scan.watermark.idle-timeout' if it may "
            "stay so"
        )
    return None
