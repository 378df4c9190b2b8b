"""Whether a topic still holds what progress asks for."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.errors import REBUILD, GapError
from bridge.kafka.admin import TopicState
from bridge.offsets import Offsets

__all__ = ["check_offsets_available"]

_SHOWN = 10
"""A message names so many partitions."""


def check_offsets_available(wanted: Offsets, state: TopicState, ids: Mapping[str, str] | None = None) -> None:
    """Make sure that reading on at `wanted` misses nothing; `ids` are the topic ids known from before, and a partition
    of these topics that `wanted` does not name was added since: it is to be read from its first record.

    Raises GapError when a topic was created anew, a partition is gone, offsets have expired, or the topic
    ends before `wanted`; it names what was wanted and what is there, for each partition, and the way out.
    """
    for name, known in (ids or {}).items():
        if known and state.ids.get(name, known) != known:
            raise GapError(
                f"topic '{name}' was deleted and created anew (id {known}, now {state.ids[name]}); {REBUILD}"
            )
    added = {(name, partition): 0 for name, partition in state.partitions if name in (ids or {})}
    everything = Offsets({**added, **wanted.by_partition})
    gaps = [gap for name, partition, offset in everything if (gap := _gap(name, partition, offset, state))]
    if gaps:
        more = f"; and {len(gaps) - _SHOWN} more partitions" if len(gaps) > _SHOWN else ""
        raise GapError(f"{'; '.join(gaps[:_SHOWN])}{more}; {REBUILD}")


def _gap(name: str, partition: int, offset: int, state: TopicState) -> str | None:
    """Why a reader cannot go on at `offset`; None where it can."""
    first, end = state.earliest.get(name, partition), state.end.get(name, partition)
    wish = f"{name}-{partition} is to be read from offset {offset}, but"
    if first is None or end is None:
        return f"{wish} is not there any more"
    if offset < first:
        return f"{wish} begins at {first}: {first - offset} offsets have expired"
    if offset > end:
        return f"{wish} ends at {end}: the topic was created anew or lost records"
    return None
