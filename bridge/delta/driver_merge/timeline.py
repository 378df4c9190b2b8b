"""Changes of keys -> changes of the intervals of a history, as `delta.timeline` makes them, in columns of Arrow.

Every key and sequence has a number, by the key and then the sequence, so what happened to all keys is one sorted array
and what `delta.timeline` asks of windows is a look at the next place or the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from bridge.columns import KIND
from bridge.definition import DeltaTarget
from bridge.delta.driver_merge.effects import rows_differ
from bridge.delta.driver_merge.matches import Keys, Matches, Since
from bridge.delta.merge_semantics import ADDS
from bridge.history_columns import History
from bridge.rows import RowKind

if TYPE_CHECKING:
    import pyarrow as pa

_Numbers = npt.NDArray[np.int64]
_Value = TypeVar("_Value", bound=np.generic)


@dataclass(frozen=True)
class Intervals:
    """What a batch does to a history."""

    changes: pa.Table
    """The table's columns and `__kind`: at most one for each key and start, and system time where the table has it. A
    deletion has only these."""
    of_rows: _Numbers
    """For each row that was given the index of its change; -1 for one that stays as it is."""
    without_effect: int
    """How many changes of keys have no effect."""

    def matches(self, found: Sequence[Matches]) -> list[Matches]:
        """The rows that change, where those that were given are the rows of `found`, one after the other."""
        ends = np.cumsum([matches.rows.num_rows for matches in found], dtype=np.int64)
        return [
            replace(
                matches,
                positions=matches.positions[changed],
                changes=of_rows[changed],
                rows=matches.rows.filter(changed),
            )
            for matches, of_rows in zip(found, np.split(self.of_rows, ends)[:-1], strict=True)
            if (changed := of_rows >= 0).any()
        ]


def not_ended(target: DeltaTarget, keys: Keys, changes: pa.Table) -> Since:
    """The rows that do not end before the first of the changes of their key, whose `keys` these are: none of these
    changes another row."""
    assert target.history is not None
    (sequence,) = target.sequence_by
    ordered, (at,) = _ranked([changes[sequence]])
    first = np.full(changes.num_rows, len(ordered) - 1)
    np.minimum.at(first, keys.find(changes)[1], at)
    return Since(target.history.valid_to, _from_ranks(ordered, first), target.history.system_to)


def intervals(
    target: DeltaTarget,
    columns: Sequence[str],
    keys: Keys,
    changes: pa.Table,
    rows: pa.Table,
    of_rows: _Numbers,
    deletions: pa.Table | None = None,
    system_time: int | None = None,
) -> Intervals:
    """The changes of intervals that `changes` make, which have one change for each key and sequence, in no order.

    `keys` are theirs; `rows` are the rows of these keys, at least those of `not_ended`, and `of_rows` the index of a
    change with the key of each, as `Keys.find` says. `deletions` may be of other keys, too, and have the key and the
    sequence. Where the table has system times, `rows` are those that it knows now, and `system_time` is that of the
    batch. `columns` are those of the table's definition; all values are in the types of the table, null is the least
    sequence. What has the same key and sequence is ranked as `delta.timeline.Timeline.of` says.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    assert target.history is not None
    (sequence,), history = target.sequence_by, target.history
    values = [name for name in columns if name not in history.columns]
    _, of_changes = keys.find(changes)
    known = changes.slice(0, 0) if deletions is None else deletions
    places, of_known = keys.find(known)
    starts, ends = rows[history.valid_from], rows[history.valid_to]
    ordered, (at, start, end, known_at) = _ranked(
        [changes[sequence], starts, ends, known[sequence].take(places)]
    )

    ended = end >= 0
    size = len(ordered) + 1
    pairs = [(of_changes, at), (of_rows, start), (of_rows[ended], end[ended]), (of_known, known_at)]
    events, event_of = np.unique(
        np.concatenate([key * size + rank + 1 for key, rank in pairs]), return_inverse=True
    )
    event_of_change, event_of_row = np.split(event_of, [at.size, at.size + start.size])[:2]
    key_of, rank_of = events // size, events % size - 1
    change_of, row_of = _by_event(events, event_of_change), _by_event(events, event_of_row)

    # Which events have a row, until which event, and what of it the table does not have.
    is_new, is_stored = change_of >= 0, row_of >= 0
    has_row = np.where(is_new, _at(ADDS.mask(changes, None), change_of, 0), is_stored)
    follows = key_of[1:] == key_of[:-1]
    next_rank, before, ends_another = np.full(events.size, -1), has_row[:-1] & follows, np.zeros_like(has_row)
    next_rank[:-1][follows] = rank_of[1:][follows]
    stored_end = _at(end, row_of, -1)
    ends_another[1:] = before & (stored_end[:-1] != rank_of[1:])
    sets = is_new & has_row
    both = np.flatnonzero(sets & is_stored)
    sets[both] = rows_differ(rows.take(row_of[both]), changes.take(change_of[both]), values)
    current = np.asarray(pc.fill_null(rows[history.current].cast(pa.int8()), -1))
    stays = (stored_end == next_rank) & (_at(current, row_of, -1) == (next_rank < 0))
    effective = np.where(has_row, sets, is_stored | ends_another)
    changed = np.flatnonzero(np.where(has_row, sets | ~is_stored | ~stays, is_stored))

    # These as rows: with the values of the change, or of the row that begins there.
    whole, is_new = has_row[changed], is_new[changed]
    source = np.where(is_new & whole, change_of[changed], row_of[changed] + changes.num_rows)
    both_rows = pa.concat_tables([changes.select(values), rows.select(values)])
    of_key = both_rows.select(keys.names).take(source)
    others = both_rows.drop_columns(list(keys.names)).take(pa.array(source, mask=~whole))
    valid = {
        history.valid_from: _from_ranks(ordered, rank_of[changed]),
        history.valid_to: _from_ranks(ordered, np.where(whole, next_rank[changed], -1)),
        history.current: pa.array(next_rank[changed] < 0, mask=~whole),
    }
    found = {**_columns(of_key), **_columns(others), **valid}
    kind = pc.if_else(pa.array(whole), RowKind.UPDATE_AFTER.value, RowKind.DELETE.value)
    made = pa.table({**{name: found[name] for name in columns if name in found}, KIND: kind})
    if system_time is not None:
        former = rows.take(row_of[changed := changed[is_stored[changed]]])
        made = _with_system_time(history, columns, former, made.filter(pa.array(whole)), system_time)
    of_event = np.full(events.size, -1)
    of_event[changed] = np.arange(changed.size)
    return Intervals(made, of_event[event_of_row], int(np.count_nonzero((change_of >= 0) & ~effective)))


def _with_system_time(
    history: History, columns: Sequence[str], former: pa.Table, new: pa.Table, at: int
) -> pa.Table:
    """First the `former` rows, which are no longer known as they are, then those that are `new`."""
    import pyarrow as pa

    assert history.system_from is not None and history.system_to is not None
    type = former.schema.field(history.system_to).type
    time, none = pa.scalar(at, pa.timestamp("us", "UTC")).cast(type), pa.scalar(None, type)
    parts = []
    for rows, known in ((former, {}), (new, {history.system_from: time})):
        ends = {history.system_to: none if known else time}
        values = {name: pa.repeat(value, rows.num_rows) for name, value in {**known, **ends}.items()}
        whole = {**_columns(rows), **values}
        kind = pa.repeat(RowKind.UPDATE_AFTER.value, rows.num_rows)
        parts.append(pa.table({**{name: whole[name] for name in columns}, KIND: kind}))
    return pa.concat_tables(parts)


def _ranked(columns: Sequence[pa.ChunkedArray]) -> tuple[pa.Array, list[_Numbers]]:
    """The values of these columns of one type, ascending, as Spark orders them, and the place of each; -1 for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [chunk for column in columns for chunk in column.chunks]
    whole = pa.chunked_array(chunks, type=columns[0].type).combine_chunks()
    values = pc.unique(whole).drop_null()
    values = values.take(pc.sort_indices(values))
    ranks = np.asarray(pc.fill_null(pc.index_in(whole, value_set=values), -1)).astype(np.int64)
    return values, np.split(ranks, np.cumsum([len(column) for column in columns])[:-1])


def _from_ranks(values: pa.Array, ranks: _Numbers) -> pa.Array:
    import pyarrow as pa

    return values.take(pa.array(ranks, mask=ranks < 0))


def _by_event(events: _Numbers, event_of: _Numbers) -> _Numbers:
    """For each event the first place in `event_of` that names it; -1 for none."""
    found = np.full(events.size, -1)
    found[event_of[::-1]] = np.arange(event_of.size)[::-1]
    return found


def _at(values: npt.NDArray[_Value], places: _Numbers, otherwise: int) -> npt.NDArray[_Value]:
    """The value at each place; `otherwise` at place -1."""
    return np.append(values, values.dtype.type(otherwise))[places]


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: rows[name] for name in rows.column_names}
