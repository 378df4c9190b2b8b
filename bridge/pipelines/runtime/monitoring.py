"""What an ingest observes besides its batches: event time, warnings, new topics, and its consumer group."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bridge.definition import Definition, Topic
from bridge.delta.table import Table
from bridge.errors import KafkaError
from bridge.kafka import admin
from bridge.kafka.group_offsets import ConsumerGroup
from bridge.metrics import now_ms
from bridge.offsets import Offsets, TopicPartition
from bridge.pipelines.runtime.retention_warnings import TopicRetention
from bridge.watermarks import Watermarks

_CLOSE_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class BatchHealth:
    """What monitoring adds to the report of a batch."""

    event_time_lag_seconds: float | None
    """Now minus the newest event time of the batch; None without one."""
    watermark_ms: int | None
    """Epoch milliseconds, see Watermarks.current; None for a table without a WATERMARK clause."""
    warning: str | None
    """The warnings since the last batch."""


class IngestMonitor:
    """Observes a run of an ingest, batch by batch. Close it at the end."""

    def __init__(self, definition: Definition, topic: Topic, table: Table) -> None:
        self._event_time = _EventTime(definition.topic)
        self._group = _GroupOffsets(topic)
        self._retention = TopicRetention(topic, table)
        self.notices = Notices()

    def watch(self, partitions: Iterable[TopicPartition]) -> None:
        """Set the partitions that are read: the slowest of them determines the watermark."""
        self._event_time.watch(partitions)

    def check_retention(self, offsets: Offsets, end: Offsets) -> None:
        """Add a warning if records from `offsets` to `end` near the topic's retention time."""
        self.notices.add(self._retention.warning(offsets, end))

    def after_batch(
        self,
        offsets: Offsets,
        newest_end: Offsets,
        newest_event_ms: Mapping[TopicPartition, int],
        warnings: Iterable[str],
    ) -> BatchHealth:
        """Observe a batch that is committed up to `offsets`, of a topic that ends at `newest_end`."""
        self._event_time.advance(newest_event_ms)
        self.notices.add(
            *warnings, self._group.commit(offsets), self._retention.warning_if_due(offsets, newest_end)
        )
        return BatchHealth(self._event_time.lag_seconds, self._event_time.watermark_ms, self.notices.new())

    def close(self) -> None:
        """Wait a few seconds until the group's offsets are committed, then close its consumer."""
        self.notices.add(self._group.close())


class _EventTime:
    """The watermark and the lag of a run; both None for a table without a WATERMARK clause."""

    def __init__(self, topic: Topic) -> None:
        declared = topic.schema.watermark
        delay_ms = round(declared.delay_seconds * 1000) if declared else 0
        self._watermarks = Watermarks(delay_ms, topic.idle_timeout_ms) if declared else None
        self._newest_ms: int | None = None

    def watch(self, partitions: Iterable[TopicPartition]) -> None:
        if self._watermarks is not None:
            for partition in partitions:
                self._watermarks.watch(partition, now_ms())

    def advance(self, newest_ms: Mapping[TopicPartition, int]) -> None:
        self._newest_ms = max(newest_ms.values(), default=None)
        if self._watermarks is not None:
            self._watermarks.advance(newest_ms, now_ms())

    @property
    def watermark_ms(self) -> int | None:
        return self._watermarks.current(now_ms()) if self._watermarks is not None else None

    @property
    def lag_seconds(self) -> float | None:
        return None if self._newest_ms is None else (now_ms() - self._newest_ms) / 1000


class TopicDiscovery:
    """Finds new topics that match a pattern (Flink: scan.topic-partition-discovery.interval, 0: never).

    New partitions of known topics are left to Spark, which looks for them with every batch.
    """

    def __init__(self, definition: Definition, topic: Topic) -> None:
        self._topic = topic
        is_on = topic.pattern is not None and definition.run.trigger_seconds is not None
        self._seconds = topic.discovery_interval_ms / 1000 if is_on else 0.0
        self._last = time.monotonic()

    def due(self) -> bool:
        """True once per interval."""
        if not self._seconds or time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True

    def topics_changed(self) -> bool:
        """Whether the pattern now matches other topics than those that are read; False if no broker answers."""
        try:
            return admin.resolve(self._topic).names != self._topic.names
        except KafkaError:
            return False


class Notices:
    """The warnings of a run. Each is reported once, with a batch, and all of them at the end."""

    def __init__(self) -> None:
        self._reported: list[str] = []
        self._pending: list[str] = []

    def add(self, *warnings: str | None) -> None:
        """Add warnings to the report of the next batch; None and repeated warnings are left out."""
        for warning in warnings:
            if warning is not None and warning not in (*self._reported, *self._pending):
                self._pending.append(warning)

    def new(self) -> str | None:
        """The warnings since the last call."""
        fresh, self._pending = self._pending, []
        self._reported += fresh
        return "; ".join(fresh) or None

    def all(self) -> str | None:
        """All warnings, in the order of their arrival."""
        self.new()
        return "; ".join(self._reported) or None


class _GroupOffsets:
    """Commits the offsets of a consumer group, so that monitoring sees the lag.

    The bridge never resumes from them, so a failure is a warning, once, and stops nothing.
    """

    def __init__(self, topic: Topic) -> None:
        self._group = ConsumerGroup(topic)
        self._reported = False

    def commit(self, offsets: Offsets) -> str | None:
        """Commit without waiting; returns a warning at the first failure of an earlier commit."""
        warning = self._commit_warning(0.0)
        self._group.commit(offsets)
        return warning

    def close(self) -> str | None:
        warning = self._commit_warning(_CLOSE_TIMEOUT_SECONDS)
        self._group.close()
        return warning

    def _commit_warning(self, seconds: float) -> str | None:
        try:
            self._group.check_commits(seconds)
        except KafkaError as failed:
            if not self._reported:
                self._reported = True
                return f"offsets are not committed, so monitoring sees no lag: {failed}"
        return None
