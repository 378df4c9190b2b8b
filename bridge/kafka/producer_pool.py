"""Producers that outlive their task, in a Python worker that Spark reuses, or in the driver (ADR 015, ADR 046).

An idempotent producer without transactions waits half a second for its id before it sends its first record, by a timer
that no setting changes. A batch every second should pay that once, not each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.producer import RecordProducer
from bridge.partitioners import Partitioner

__all__ = ["ProducerPool", "pooled_producer"]

IDLE_SECONDS = 60.0
"""As long as Spark keeps an idle Python worker."""
MAX_IDLE = 8
"""A worker runs one task at a time, so several idle producers belong to several pipelines; so do those of a driver."""


@dataclass(frozen=True)
class _IdleProducer:
    packing: ArrowRecords
    settings: dict[str, Any]
    checked: bool
    producer: RecordProducer
    since: float


class ProducerPool:
    """Keeps producers for reuse, at most MAX_IDLE of them and each for `idle_seconds`. Threads may share it."""

    def __init__(
        self, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_seconds, self._clock = idle_seconds, clock
        self._idle: list[_IdleProducer] = []
        self._lock = threading.Lock()

    @property
    def idle_topics(self) -> list[tuple[str, ...]]:
        """The topics of the idle producers, oldest first."""
        return [idle.packing.topics for idle in self._idle]

    @contextmanager
    def producer(
        self,
        packing: ArrowRecords,
        settings: Mapping[str, Any],
        *,
        checked: bool = True,
        partitioner: Partitioner | None = None,
        partition_counts: Mapping[str, int] | None = None,
    ) -> Iterator[RecordProducer]:
        """Provide a RecordProducer for the `with` block, with its guarantees and errors.

        It is new, or an idle one with the same topics and settings, which first refreshes the partitions of its topics.
        A producer is not reused when its block failed, when it has reported any error, after `idle_seconds`, or when
        MAX_IDLE others became idle since.
        """
        own_settings = dict(settings)
        producer = self._take_idle(packing, own_settings, checked, partitioner, partition_counts)
        if producer is None:
            producer = RecordProducer(
                own_settings, checked=checked, partitioner=partitioner, partition_counts=partition_counts
            )
        with producer:
            yield producer
        idle = _IdleProducer(packing, own_settings, checked, producer, self._clock())
        with self._lock:
            # A new list: what is left out ends its threads when it is released, outside of the lock.
            former, self._idle = self._idle, [*self._idle, idle][-MAX_IDLE:]
        del former

    def _take_idle(
        self,
        packing: ArrowRecords,
        settings: dict[str, Any],
        checked: bool,
        partitioner: Partitioner | None,
        partition_counts: Mapping[str, int] | None,
    ) -> RecordProducer | None:
        while (producer := self._taken(packing, settings, checked)) is not None:
            if producer.reset(partitioner, partition_counts):
                return producer
        return None

    def _taken(self, packing: ArrowRecords, settings: dict[str, Any], checked: bool) -> RecordProducer | None:
        """Take the oldest idle producer of these topics and settings out of the pool, and those that are too old."""
        oldest = self._clock() - self._idle_seconds
        with self._lock:
            former, self._idle = self._idle, [idle for idle in self._idle if idle.since > oldest]
            wanted = (packing, settings, checked)
            for place, idle in enumerate(self._idle):
                if (idle.packing, idle.settings, idle.checked) == wanted:
                    return self._idle.pop(place).producer
        del former
        return None


pooled_producer = ProducerPool().producer
"""The pool of this process; see ProducerPool.producer."""
