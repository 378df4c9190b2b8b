"""The fold of a range of changes while it is read equals the fold of all of them at once."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import pyarrow as pa
import pytest
from confluent_kafka import Message

from bridge.arrow_formats.catalog import arrow_decoder
from bridge.kafka.folded_changes import ChangeReading, FoldedChanges
from bridge.kafka.partial_updates import PartialUpdates
from bridge.kafka.range_parts import PartitionRange
from bridge.kafka.record_decoders import EventDecoder
from bridge.rows import Change, RowKind, compact
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import spec
from tests.arrow_formats.changes_against_spark import made_changes

_TYPES = {"id": "BIGINT", "sub": "STRING", "name": "STRING", "at": "TIMESTAMP(3)"}


class _Record:
    def __init__(self, value: Any, key: bytes | None = None) -> None:
        self._value = None if value is None else json.dumps(value).encode()
        self._key = key

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key


def part(*key: str, **more: Any) -> FoldedChanges:
    key_spec = more.pop("key_spec", None)
    key_decoder = None if key_spec is None else arrow_decoder(key_spec)
    key, sequence = key or ("id",), more.pop("sequence", ())
    decoder = made_changes(spec("debezium-json", _TYPES), (*key, *sequence))
    not_null, watermark = more.pop("not_null", ()), more.pop("watermark", None)
    returns_all, partial = more.pop("returns_all", False), more.pop("partial", None)
    reading = ChangeReading(
        EventDecoder(decoder, key_decoder),
        key,
        sequence,
        not_null,
        watermark,
        returns_all,
        partial=partial,
    )
    return FoldedChanges(PartitionRange("t", 0, 0, 1), reading, **more)


def add(to: FoldedChanges, *values: Any, key: bytes | None = None) -> int:
    return to.add([cast(Message, _Record(value, key)) for value in values]).kept


def rows(of: FoldedChanges) -> list[dict[str, Any]]:
    found = of.table().to_pylist()
    return sorted(({k: v for k, v in row.items() if v is not None} for row in found), key=str)


def event(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op}


def history(seed: int, count: int, keys: int) -> tuple[list[Any], list[Change]]:
    """Drawn events, and their changes; updates may change the key, and some keys are deleted twice."""
    draw = random.Random(seed)
    events, changes = list[Any](), list[Change]()

    def image() -> dict[str, Any]:
        return {
            "id": draw.choice([None, *range(keys)]),
            "sub": draw.choice(["a", "b"]),
            "name": str(draw.random()),
        }

    def change(kind: RowKind, row: dict[str, Any]) -> None:
        changes.append(Change(kind, (row["id"], row["sub"]), row, (len(changes),)))

    for _ in range(count):
        op, before, after = draw.choice("cruuud-"), image(), image()
        if op == "-":
            events.append(None)
            continue
        if op == "u" and draw.random() < 0.7:
            before |= {"id": after["id"], "sub": after["sub"]}
        if op in "ud":
            change(RowKind.DELETE, before)
        if op in "cru":
            change(RowKind.INSERT, after)
        events.append(event(op, before if op in "ud" else None, after if op in "cru" else None))
    return events, changes


def expected(changes: Sequence[Change]) -> list[dict[str, Any]]:
    folded = [
        dict(zip(("id", "sub"), cast(tuple[Any, Any], c.key), strict=True))
        | ({"__kind": "-D"} if c.kind.retracts else {**(c.row or {}), "__kind": "+U"})
        for c in compact(changes)
    ]
    return sorted(({k: v for k, v in row.items() if v is not None} for row in folded), key=str)


def as_texts(found: Sequence[dict[str, Any]]) -> list[list[str]]:
    return sorted(sorted(f"{name}={value}" for name, value in row.items()) for row in found)


@pytest.mark.parametrize(("seed", "count", "keys"), [(1, 300, 5), (2, 300, 2000), (3, 45_000, 40)])
def test_drawn_histories_in_any_portions(seed: int, count: int, keys: int) -> None:
    events, changes = history(seed, count, keys)
    draw, folded, at = random.Random(seed), part("id", "sub"), 0
    while at < count:
        size = draw.choice([1, 10, 5000])
        add(folded, *events[at : at + size])
        at += size
        if draw.random() < 0.2:
            folded.size()
    assert as_texts(rows(folded)) == as_texts(expected(changes))


@pytest.mark.parametrize(("seed", "count", "keys"), [(1, 300, 5), (2, 45_000, 40)])
def test_drawn_histories_by_a_sequence_in_any_portions(seed: int, count: int, keys: int) -> None:
    """Of two columns, with late and equal values. An update of the same key has no deletion."""
    draw, folded = random.Random(seed), part("id", "sub", sequence=("at", "name"))
    events, changes = list[Any](), list[Change]()

    def image(id: int) -> dict[str, Any]:
        at = f"2026-11-28 10:00:00.{draw.randrange(30):03}"
        return {
            "id": id,
            "sub": draw.choice(["a", None]),
            "name": draw.choice(["", "1", "10", "9"]),
            "at": at,
        }

    def change(kind: RowKind, row: dict[str, Any]) -> None:
        key = (row["id"], row["sub"])
        changes.append(Change(kind, key, row, (len(changes),), (row["at"], row["name"])))

    for _ in range(count):
        op, before, after = draw.choice("cudu"), image(draw.randrange(keys)), image(draw.randrange(keys))
        if op == "u" and draw.random() < 0.7:
            before |= {"id": after["id"], "sub": after["sub"]}
        is_moved = (before["id"], before["sub"]) != (after["id"], after["sub"])
        if op == "d" or (op == "u" and is_moved):
            change(RowKind.DELETE, before)
        if op in "cu":
            change(RowKind.INSERT, after)
        events.append(event(op, before if op in "ud" else None, after if op in "cu" else None))
    for at in range(0, count, 7_000):
        add(folded, *events[at : at + 7_000])
    found = [(r["id"], r["sub"], r["__kind"], r["at"], r["name"]) for r in folded.table().to_pylist()]
    wanted = [
        (*cast(tuple[Any, Any], c.key), "-D" if c.kind.retracts else "+U", datetime.fromisoformat(at), name)
        for c in compact(changes)
        for at, name in (c.sequence,)
    ]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_superseded_rows_are_returned_where_they_are_asked_for() -> None:
    """Of each change that sets a row: it is the last one of its key, or superseded."""
    events, changes = history(4, 45_000, 40)
    folded, draw, at = part("id", "sub", returns_all=True), random.Random(4), 0
    while at < len(events):
        size = draw.choice([1, 10, 5000])
        add(folded, *events[at : at + size])
        at += size
    superseded = folded.superseded()
    assert superseded is not None and part().superseded() is None
    assert folded.size() > superseded.nbytes
    found = pa.concat_tables([superseded, folded.table()]).to_pylist()
    set_rows = [{**row, "__kind": None} for row in found if row["__kind"] == "+U"]
    wanted = [
        {**dict.fromkeys(_TYPES), **(c.row or {}), "__kind": None} for c in changes if not c.kind.retracts
    ]
    assert sorted(set_rows, key=str) == sorted(wanted, key=str)


def test_the_bytes_that_are_kept() -> None:
    """What `add` returns adds up to at least what is kept; superseded changes do not count in `size`."""
    folded = part()
    added = [
        add(folded, *[event("c", None, {"id": n, "name": "x" * 50}) for n in range(30)]) for _ in range(9)
    ]
    assert min(added) > 30 * 50
    size = folded.size()
    assert 30 * 50 < size < sum(added) // 3
    for _ in range(9):
        add(folded, *[event("u", None, {"id": n, "name": "y" * 50}) for n in range(30)])
    assert folded.size() < size * 1.1 and {row["name"] for row in rows(folded)} == {"y" * 50}


def test_nothing_or_tombstones() -> None:
    assert part().table().column_names == [*_TYPES, "__kind"]
    folded = part()
    add(folded, None, None)
    assert rows(folded) == [] and folded.size() == 0


def test_a_change_of_the_key() -> None:
    folded = part()
    add(folded, event("u", {"id": 1, "name": "a"}, {"id": 2, "name": "a"}))
    assert as_texts(rows(folded)) == [["__kind=+U", "id=2", "name=a"], ["__kind=-D", "id=1"]]
    add(folded, event("u", {"id": 2}, {"id": 1, "name": "b"}))
    assert as_texts(rows(folded)) == [["__kind=+U", "id=1", "name=b"], ["__kind=-D", "id=2"]]


def test_partial_updates_of_a_key_are_one_change() -> None:
    """Updates delete no row before them, unless they change the key."""
    partial = PartialUpdates({"name": "keeps"}, ("name",))
    folded, row = part(partial=partial), {"id": 1, "__kind": "+U"}
    add(folded, *[event("u", {"id": 1, "name": "x"}, {"id": 1, "sub": sub}) for sub in "ab"])
    assert rows(folded) == [row | {"sub": "b", "keeps": True}]
    add(folded, event("u", {"id": 1}, {"id": 1, "name": "y"}), event("u", {"id": 1}, {"id": 1}))
    assert rows(folded) == [row | {"name": "y", "keeps": False}]
    add(folded, event("d", {"id": 1}), event("c", None, {"id": 1}))
    assert rows(folded) == [row | {"keeps": False}]
    add(folded, event("u", {"id": 1}, {"id": 2}))
    changes = {change["id"]: (change["__kind"], change["keeps"]) for change in rows(folded)}
    assert changes == {1: ("-D", False), 2: ("+U", True)}
    size = folded.size()
    add(folded, *[event("u", None, {"id": 1 + n % 2, "name": "z" * 9}) for n in range(90)])
    assert folded.size() < size + 90


def test_changes_without_a_key() -> None:
    folded = part("id", "sub")
    add(folded, event("u", {"name": "no key"}, {"id": 1, "name": "a"}), event("d", {"id": 1}))
    assert as_texts(rows(folded)) == [["__kind=-D", "id=1"]]
    for bad in (event("c", None, {"name": "a"}), event("d", {"name": "a"})):
        add(folded, bad)
        with pytest.raises(NotThisWay, match="no column of the PRIMARY KEY"):
            folded.table()
        folded = part("id", "sub")


def test_a_superseded_change_that_is_bad() -> None:
    """Spark's path refuses it as well: only a document tells its key."""
    for bad in (event("x", None, {"id": 1}), event("c", None, {"id": 1, "name": 5})):
        folded = part()
        add(folded, bad, event("c", None, {"id": 1, "name": "a"}))
        with pytest.raises(NotThisWay):
            folded.table()


def test_not_null_columns_of_rows_alone() -> None:
    folded = part(not_null=("id", "name"))
    add(folded, event("d", {"id": 1}), event("c", None, {"id": 1, "name": "a"}))
    assert as_texts(rows(folded)) == [["__kind=+U", "id=1", "name=a"]]
    add(folded, event("c", None, {"id": 1}), event("c", None, {"id": 1, "name": "a"}))
    with pytest.raises(NotThisWay, match="column 'name' is NOT NULL"):
        folded.table()


def test_the_newest_event_time_is_that_of_all_changes() -> None:
    folded = part(watermark="at")
    times = ["1970-01-01 00:00:02", "1970-01-01 00:00:05.5", "1970-01-01 00:00:01", None]
    add(folded, *[event("c", None, {"id": 1, "at": at}) for at in times])
    folded.table()
    assert folded.newest == 5_500_000
    keyed = part("id", "at", watermark="at")
    add(keyed, event("d", {"id": 1, "at": times[0]}), event("c", None, {"id": 1}))
    keyed.table()
    assert keyed.newest == 2_000_000
    assert part(watermark="at").newest is None


def test_keys_of_records_must_be_good() -> None:
    key_spec = spec("json", {"id": "BIGINT"})
    folded = part(key_spec=key_spec)
    add(folded, event("c", None, {"id": 1}), key=b'{"id":7}')
    add(folded, event("c", None, {"id": 2}))
    assert [row["id"] for row in rows(folded)] == [1, 2]
    add(folded, event("c", None, {"id": 1}), key=b"no json")
    with pytest.raises(NotThisWay):
        folded.table()
