"""What the options of `delta` about changes mean, in plain Python: the oracle of their tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from tests.pipelines.world import Record, World

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


def record(event: Event, before: Row | None = None) -> Record:
    """The record of an upsert topic, or with the columns of the row `before`, of Debezium."""
    document = None if event.row is None else {"id": event.key, **event.row}
    if before is None:
        return json.dumps({"id": event.key}), None if document is None else json.dumps(document)
    if event == TRUNCATE:
        return None, json.dumps({"op": "t", "source": {"table": "t"}})
    change = {"before": {"id": event.key, **before}, "after": document, "op": "u" if document else "d"}
    return None, json.dumps(change)


def sending(*, cdc: bool) -> Callable[[World, Sequence[Event]], None]:
    """Sends events one by one, to an upsert topic or, with the row before each, as Debezium."""
    known: dict[tuple[str, int], Row] = {}

    def send(world: World, events: Sequence[Event]) -> None:
        for event in events:
            key = world.topic, event.key
            world.send([record(event, known.get(key, {}) if cdc else None)])
            known[key] = event.row or {}

    return send


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


def aggregated(events: Iterable[Event], rules: Mapping[str, str]) -> dict[int, dict[str, Any]]:
    """The rows by key under `delta.aggregate`: NULL never counts, and a deletion makes the row begin anew."""
    rows: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.row is None:
            rows.pop(event.key, None)
            continue
        before = rows.get(event.key, {})
        rows[event.key] = {
            name: by_rule(rules[name], before.get(name), value) if name in rules else value
            for name, value in event.row.items()
        }
    return rows


def by_rule(rule: str, row: Any, change: Any) -> Any:
    """What a rule makes of the value of a row and that of a change."""
    if rule == "collect-set":
        known = [items for items in (row, change) if items is not None]
        return sorted({item for items in known for item in items if item is not None}) if known else None
    if row is None or change is None:
        return change if row is None else row
    return {"first": row, "min": min(row, change), "max": max(row, change)}.get(rule, row + change)


def check_any_cut(
    events: st.SearchStrategy[list[Event]],
    make: Callable[[str], World],
    send: Callable[[World, Sequence[Event]], None],
    rows: Callable[[World], object],
    oracle: Callable[[Sequence[Event]], object],
) -> list[BatchReport]:
    """Ingest drawn events by two runs, in batches of a drawn size, into a world that `make` makes in a folder: after
    each run its `rows` are the oracle's, and at the end `verify` finds no difference. Returns all reports."""
    number, reports = iter(range(1_000)), list[BatchReport]()

    @given(events, st.integers(1, 30), st.integers(0, 30))
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    def check(drawn: list[Event], batch: int, first: int) -> None:
        world = make(f"of{next(number)}")
        for begin, end in ((0, first), (first, len(drawn))):
            if drawn[begin:end]:
                send(world, drawn[begin:end])
                reports.extend(world.batches({"max-offsets-per-batch": batch}))
                assert rows(world) == oracle(drawn[:end])
        assert verify(world.spark, world.definition()).equal

    check()
    return reports
