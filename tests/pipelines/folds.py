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
