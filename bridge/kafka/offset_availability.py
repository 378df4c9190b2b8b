"""Checks that a topic still has the records after the offsets of a pipeline's progress."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.errors import REBUILD, GapError
from bridge.kafka.admin import TopicState
from bridge.offsets import Offsets

_SHOWN = 10
"""A message names at most this many partitions."""


def check_offsets_available(
    progress: Offsets, state: TopicState, ids: Mapping[str, str] | None = None
) -> None:
    """Raise GapError unless reading on at `progress` misses no record.

    `ids` are the topic ids recorded with the progress. A partition of these topics without progress was added since and
    must be complete from its first record. A gap is a recreated topic, a missing partition, expired offsets, or a topic
    that ends before `progress`; the message has both offsets for each partition, and the way out.
    """
    for name, id in (ids or {}).items():
        if id and state.ids.get(name, id) != id:
            raise GapError(
                f"topic '{name}' was deleted and created anew (id {id}, now {state.ids[name]}); {REBUILD}"
            )
    added = {(name, partition): 0 for name, partition in state.partitions if name in (ids or {})}
    everything = Offsets({**added, **progress.by_partition})
    gaps = [gap for name, partition, offset in everything if (gap := _gap(name, partition, offset, state))]
    if gaps:
        more = f"; and {len(gaps) - _SHOWN} more partitions" if len(gaps) > _SHOWN else ""
        raise GapError(f"{'; '.join(gaps[:_SHOWN])}{more}; {REBUILD}")


def _gap(name: str, partition: int, offset: int, state: TopicState) -> str | None:
    """Return why a reader cannot continue at `offset`; None where it can."""
    first, end = state.earliest.get(name, partition), state.end.get(name, partition)
    need = f"{name}-{partition} is to be read from offset {offset}, but"
    if first is None or end is None:
        return f"{need} no longer exists"
    if offset < first:
        return f"{need} begins at {first}: {first - offset} offsets have expired"
    if offset > end:
        return f"{need} ends at {end}: the topic was created anew or lost records"
    return None
