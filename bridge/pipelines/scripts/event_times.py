"""The watermark of an INSERT whose rows come window by window, and how it advances.

As in Flink each partition of a source has a watermark, a source has the smallest of its partitions that are not idle,
and a query the smallest of its sources that have not ended. Unlike in Flink it advances with each batch, not with each
record, and it is part of the result's progress, so a run that goes on closes the same windows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from bridge.offsets import TopicPartition
from bridge.sql.plan import EventTime, WindowPlan
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
