"""Producers that outlive their task, in a Python worker that Spark reuses (ADR 015).

An idempotent producer without transactions waits half a second for its id before it sends its first record, by a timer
that no setting changes. A batch every second should pay that once, not each time.
"""

from __future__ import annotations

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
"""A worker runs one task at a time, so several idle producers belong to several pipelines."""


@dataclass(frozen=True)
class _IdleProducer:
    packing: ArrowRecords
    settings: dict[str, Any]
    checked: bool
    producer: RecordProducer
    since: float


class ProducerPool:
    """Keeps producers for reuse, at most MAX_IDLE of them and each for `idle_seconds`."""

    def __init__(
        self, idle_seconds: float = IDLE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_seconds, self._clock = idle_seconds, clock
        self._idle: list[_IdleProducer] = []

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
        self._idle.append(_IdleProducer(packing, own_settings, checked, producer, self._clock()))
        del self._idle[:-MAX_IDLE]

    def _take_idle(
        self,
        packing: ArrowRecords,
        settings: dict[str, Any],
        checked: bool,
        partitioner: Partitioner | None,
        partition_counts: Mapping[str, int] | None,
    ) -> RecordProducer | None:
        oldest = self._clock() - self._idle_seconds
        self._idle[:] = [idle for idle in self._idle if idle.since > oldest]
        for idle in list(self._idle):
            if (idle.packing, idle.settings, idle.checked) == (packing, settings, checked):
                self._idle.remove(idle)
                if idle.producer.reset(partitioner, partition_counts):
                    return idle.producer
        return None


pooled_producer = ProducerPool().producer
"""The pool of this process; see ProducerPool.producer."""
