"""Row kinds, and the fold of a changelog in plain Python.

Tests compare everything that Spark computes about a changelog with `replay`, so this module must be easy to check: it
is small and imports nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]


class RowKind(str, Enum):
    """Flink's row kinds, by their short strings (flink RowKind.shortString)."""

    INSERT = "+I"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "+U"
    DELETE = "-D"

    @property
    def retracts(self) -> bool:
        """Return True for the kinds that remove a row (-U, -D)."""
        return self in (RowKind.UPDATE_BEFORE, RowKind.DELETE)


@dataclass(frozen=True)
class Change:
    """One change of one key. `row` is the whole row for adds; for retractions it may lack fields.

    `position` orders changes: (version,) for a table's feed, (offset,) for a partition of a topic. `sequence` orders
    them first where a pipeline has `sequence-by`: the values of its columns.
    """

    kind: RowKind
    key: Hashable
    row: Mapping[str, Any] | None = None
    position: tuple[int, ...] = ()
    sequence: tuple[Any, ...] = ()


def replay(
    changes: Iterable[Change], table: Mapping[Hashable, Mapping[str, Any]] | None = None
) -> dict[Hashable, Mapping[str, Any]]:
    """Fold `changes`, in the given order, over `table` (empty by default), and return key -> row.

    An add sets the row of its key, a retraction removes it; removing an absent key has no effect
    (ADR 028, rule 6). `table` is not modified.
    """
    rows = dict(table or {})
    for change in changes:
        if change.kind.retracts:
            rows.pop(change.key, None)
        else:
            rows[change.key] = change.row or {}
    return rows


@dataclass(frozen=True)
class Interval:
    """A row of a history, valid from the sequence `start` until before `end`; the current one has no end."""

    row: Row
    start: Any
    end: Any = None


def intervals(changes: Iterable[Change]) -> dict[Hashable, list[Interval]]:
    """Fold `changes`, in the given order, whose sequences have one value each, to the history of each key that has had
    a row: its intervals, by their starts.

    An add starts an interval, and the change of its key with the next greater sequence ends it, if there is one. Of
    changes of a key with the same sequence the last one counts alone.
    """
    events: dict[Hashable, dict[Any, Row | None]] = {}
    for change in changes:
        row = None if change.kind.retracts else change.row or {}
        events.setdefault(change.key, {})[change.sequence[0]] = row
    histories: dict[Hashable, list[Interval]] = {}
    for key, of_key in events.items():
        starts = sorted(of_key)
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            if (row := of_key[start]) is not None:
                histories.setdefault(key, []).append(Interval(row, start, end))
    return histories


def compact(changes: Sequence[Change]) -> list[Change]:
    """Return the last change per key: ordered by sequence, then position, retractions before adds at one position.

    The order of the result is the order of the last changes. A trailing -U counts as a delete
    (ADR 028, rule 11). `replay(compact(c))` equals `replay(c in this order)` for every `c`.
    """
    last: dict[Hashable, Change] = {}
    for change in sorted(changes, key=lambda c: (c.sequence, c.position, not c.kind.retracts)):
        last.pop(change.key, None)
        last[change.key] = change
    return list(last.values())


def net(changes: Sequence[Change]) -> dict[Hashable, tuple[Row | None, Row | None]]:
    """Return the net change of each key: its row before the first of `changes` and after the last, None for no row.

    Ordered as in `compact`. Keys whose changes have no effect (an update to the same row, an insert and its delete) are
    left out.
    """
    sides: dict[Hashable, tuple[Row | None, Row | None]] = {}
    for change in sorted(changes, key=lambda c: (c.position, not c.kind.retracts)):
        row = change.row or {}
        before = sides[change.key][0] if change.key in sides else row if change.kind.retracts else None
        sides[change.key] = (before, None if change.kind.retracts else row)
    return {key: (before, after) for key, (before, after) in sides.items() if before != after}
