"""What an ingest keeps an eye on besides its batches: event time, new topics, the group that monitoring looks at."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from bridge.definition import Definition, Topic
from bridge.errors import KafkaError
from bridge.kafka import admin
from bridge.kafka.group_offsets import ConsumerGroup
from bridge.metrics import now_ms
from bridge.offsets import Offsets, TopicPartition
from bridge.watermarks import Watermarks

__all__ = ["EventTime", "GroupOffsets", "Notices", "TopicDiscovery"]

_CLOSE_TIMEOUT_SECONDS = 5.0


class EventTime:
    """The watermark and the lag of a run; both None for a table without a WATERMARK clause."""

    def __init__(self, topic: Topic) -> None:
        declared = topic.schema.watermark
        delay_ms = round(declared.delay_seconds * 1000) if declared else 0
        self._watermarks = Watermarks(delay_ms, topic.idle_timeout_ms) if declared else None
        self._newest_ms: int | None = None

    def watch(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions that are read: the slowest of them holds the watermark back."""
        if self._watermarks is not None:
            for partition in partitions:
                self._watermarks.watch(partition, now_ms())

    def advance(self, newest_ms: Mapping[TopicPartition, int]) -> None:
        """A batch was applied, with these newest event times."""
        self._newest_ms = max(newest_ms.values(), default=None)
        if self._watermarks is not None:
            self._watermarks.advance(newest_ms, now_ms())

    @property
    def watermark_ms(self) -> int | None:
        """Epoch milliseconds; see Watermarks.current."""
        return self._watermarks.current(now_ms()) if self._watermarks is not None else None

    @property
    def lag_seconds(self) -> float | None:
        """Now minus the newest event time of the last batch; None when that had none."""
        return None if self._newest_ms is None else (now_ms() - self._newest_ms) / 1000


class TopicDiscovery:
    """Looks for topics that a pattern matches by now (Flink: scan.topic-partition-discovery.interval, 0: never).

    New partitions of known topics are Spark's business: it looks for them with every batch.
    """

    def __init__(self, definition: Definition, topic: Topic) -> None:
        self._topic = topic
        looks = topic.pattern is not None and definition.run.trigger_seconds is not None
        self._seconds = topic.discovery_interval_ms / 1000 if looks else 0.0
        self._last = time.monotonic()

    def due(self) -> bool:
        """True once per interval."""
        if not self._seconds or time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True

    def topics_changed(self) -> bool:
        """Whether other topics match now than those that are read. A broker that does not answer has no news."""
        try:
            return admin.resolve(self._topic).names != self._topic.names
        except KafkaError:
            return False


class Notices:
    """Warnings of a run, each told once with a batch and again at the end."""

    def __init__(self) -> None:
        self._reported: list[str] = []
        self._pending: list[str] = []

    def add(self, warning: str | None) -> None:
        """Keep it for the next batch's report; None, and what was said before, is left out."""
        if warning is not None and warning not in (*self._reported, *self._pending):
            self._pending.append(warning)

    def new(self) -> str | None:
        """What came since the last call."""
        fresh, self._pending = self._pending, []
        self._reported += fresh
        return "; ".join(fresh) or None

    def all(self) -> str | None:
        """Everything, in the order it came."""
        self.new()
        return "; ".join(self._reported) or None


class GroupOffsets:
    """Commits a group's offsets so that monitoring sees the lag. The bridge never resumes from them, so a failure is
    told, once, and stops nothing. Close it at the end."""

    def __init__(self, topic: Topic) -> None:
        self._group = ConsumerGroup(topic)
        self._reported = False

    def commit(self, offsets: Offsets) -> str | None:
        """Commit without waiting; at the first failure of an earlier commit a warning, else None."""
        warning = self._commit_warning(0.0)
        self._group.commit(offsets)
        return warning

    def close(self) -> str | None:
        """Wait a little for what is on its way, then let go; a warning as `commit` gives it."""
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
