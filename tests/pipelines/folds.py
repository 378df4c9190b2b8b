"""What the options of `delta` about changes mean, in plain Python: the oracle of their tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """A record: it sets the row of `key`, or without one deletes it."""

    key: int
    row: Row | None = None
    at: int = 0
    """Its timestamp."""


TRUNCATE = Event(-1)
"""A record that deletes all rows."""


def soft_deleted(events: Iterable[Event]) -> dict[int, tuple[Row, int | None]]:
    """The rows by key, each with the time of its deletion (`delta.soft-delete`)."""
    rows: dict[int, tuple[Row, int | None]] = {}
    for event in events:
        if event.row is not None:
            rows[event.key] = event.row, None
        elif event.key in rows:
            rows[event.key] = rows[event.key][0], event.at
    return rows


def truncated(events: Iterable[Event]) -> dict[int, Row]:
    """The rows by key under `delta.truncate: apply`."""
    rows: dict[int, Row] = {}
    for event in events:
        if event == TRUNCATE:
            rows.clear()
        elif event.row is None:
            rows.pop(event.key, None)
        else:
            rows[event.key] = event.row
    return rows


def first_rows(events: Iterable[Event]) -> dict[int, Row]:
    """The rows by key under `delta.first-row` with `ignore-delete`, and `truncate: apply`."""
    rows: dict[int, Row] = {}
    for event in events:
        if event == TRUNCATE:
            rows.clear()
        elif event.row is not None:
            rows.setdefault(event.key, event.row)
    return rows


def all_changes(events: Iterable[Event], *, upserts: bool) -> list[tuple[int, str | None, str, int, int]]:
    """Key, column `a`, row kind, offset and number of each row of a topic of one partition (`delta.history: append`).
    `upserts`: of an upsert topic, in which nobody knows the row before."""
    rows: dict[int, str] = {}
    found: list[tuple[int, str | None, str, int, int]] = []
    for offset, event in enumerate(events):
        before, after = rows.pop(event.key, None), str(event.row["a"]) if event.row else None
        kinds: list[tuple[str, str | None]] = []
        if after is None:
            kinds.append(("-D", None if upserts else before))
        elif upserts or before is None:
            kinds.append(("+U" if upserts else "+I", after))
        else:
            kinds += [("-U", before), ("+U", after)]
        found += [(event.key, a, kind, offset, n) for n, (kind, a) in enumerate(kinds)]
        if after is not None:
            rows[event.key] = after
    return found


def partly_updated(events: Iterable[Event], by: str) -> dict[int, dict[str, Any]]:
    """The rows by key where the column `by` names the columns that a record sets, none for all (`update-columns`)."""
    rows: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.row is None:
            rows.pop(event.key, None)
            continue
        before, named = rows.get(event.key, {}), event.row[by]
        rows[event.key] = {
            name: value if named is None or name == by or name in named else before.get(name)
            for name, value in event.row.items()
        }
    return rows
