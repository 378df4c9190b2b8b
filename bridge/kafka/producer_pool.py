"""Producers that outlive the task that made them, in a Python worker that Spark uses again (ADR 015).

librdkafka waits half a second, by a timer that no setting moves, before an idempotent producer without transactions has
its id and sends its first record. A batch every second should pay that once, not each time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.producer import RecordProducer
from bridge.partitioners import Partitioner

__all__ = ["pooled_producer"]

_IDLE_SECONDS = 60.0
"""As long as Spark keeps a Python worker that has nothing to do."""


@dataclass(frozen=True)
class _IdleProducer:
    packing: ArrowRecords
    settings: dict[str, Any]
    checked: bool
    producer: RecordProducer
    since: float


_MAX_IDLE = 8
_idle: list[_IdleProducer] = []
"""The last that were left; a worker runs one task at a time, so more than one are of different pipelines."""


@contextmanager
def pooled_producer(
    packing: ArrowRecords,
    settings: Mapping[str, Any],
    *,
    checked: bool = True,
    partitioner: Partitioner | None = None,
    partition_counts: Mapping[str, int] | None = None,
) -> Iterator[RecordProducer]:
    """A Writer for the `with` block: a new one, or one that an earlier block of this process with the same topics and
    settings has left in good order. What Writer guarantees holds for the block; it raises what Writer raises.

    One that was left is asked for the partitions of its topics first, so that it knows those that were added. One whose
    block failed, or that has told of any error, is never used again; nor is one after a minute, or when eight others
    were left since.
    """
    made = dict(settings)
    producer = _take_idle(packing, made, checked, partitioner, partition_counts)
    if producer is None:
        producer = RecordProducer(
            made, checked=checked, partitioner=partitioner, partition_counts=partition_counts
        )
    with producer:
        yield producer
    _idle.append(_IdleProducer(packing, made, checked, producer, time.monotonic()))
    del _idle[:-_MAX_IDLE]


def _take_idle(
    packing: ArrowRecords,
    settings: dict[str, Any],
    checked: bool,
    partitioner: Partitioner | None,
    counts: Mapping[str, int] | None,
) -> RecordProducer | None:
    oldest = time.monotonic() - _IDLE_SECONDS
    _idle[:] = [idle for idle in _idle if idle.since > oldest]
    for idle in list(_idle):
        if (idle.packing, idle.settings, idle.checked) == (packing, settings, checked):
            _idle.remove(idle)
            if idle.producer.reset(partitioner, counts):
                return idle.producer
    return None
