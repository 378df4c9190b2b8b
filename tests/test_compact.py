"""Compaction in Spark against the oracle in bridge.rows, many random histories in one frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from bridge.columns import AFTER, BEFORE, KIND, POSITION
from bridge.compact import TWO_PARTITIONS, each, latest_by_offset, net, upserts
from bridge.rows import Change, RowKind, compact
from bridge.rows import net as oracle

_KEYS = ["history", "k.1", "k"]
_LARGE = settings(
    max_examples=2, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
_KEY = st.sampled_from([("a", 1), ("a", None), (None, 1), (None, None)])

# partition -> its records in offset order, each (key, timestamp); timestamps go as they like
_LOG = st.lists(st.lists(st.tuples(_KEY, st.integers(0, 3)), max_size=6), min_size=1, max_size=3)


def _frame(spark: SparkSession, rows: list[dict[str, Any]], position: Mapping[str, pa.DataType]) -> DataFrame:
    kinds = {KIND: pa.string(), POSITION: pa.struct(list(position.items())), "value": pa.int64()}
    schema = pa.schema({"history": pa.int64(), "k.1": pa.string(), "k": pa.int64()} | kinds)
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


def _of_topic(spark: SparkSession, logs: list[list[list[tuple[Any, int]]]]) -> tuple[DataFrame, list[Change]]:
    """The records as a frame, and as changes whose key has the history's number in front."""
    rows: list[dict[str, Any]] = []
    changes: list[Change] = []
    for number, log in enumerate(logs):
        for partition, records in enumerate(log):
            for offset, (key, timestamp) in enumerate(records):
                at = {"topic": "t", "partition": partition, "offset": offset, "timestamp": timestamp}
                value = len(rows)
                rows.append(_row(number, key, "+U", value) | {POSITION: at})
                position = (partition, offset, timestamp)
                changes.append(Change(RowKind.UPDATE_AFTER, (number, *key), {"value": value}, position))
    types = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.int64()}
    return _frame(spark, rows, types), changes


def _row(number: int, key: tuple[Any, Any], kind: str, value: int) -> dict[str, Any]:
    return {"history": number, "k.1": key[0], "k": key[1], KIND: kind, "value": value}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEYS)


@_LARGE
@given(logs=st.lists(_LOG.map(lambda log: log[:1]), min_size=60, max_size=60))
def test_in_one_partition_the_last_offset_wins_as_the_oracle_has_it(spark: SparkSession, logs: Any) -> None:
    frame, changes = _of_topic(spark, logs)
    actual = latest_by_offset(frame, _KEYS).collect()
    assert {(_key(r), r["value"]) for r in actual} == {
        (c.key, c.row["value"]) for c in compact(changes) if c.row
    }
    assert len(actual) == len(compact(changes)) and not any(r[TWO_PARTITIONS] for r in actual)


@_LARGE
@given(logs=st.lists(_LOG, min_size=60, max_size=60))
def test_between_partitions_the_timestamp_decides(spark: SparkSession, logs: Any) -> None:
    frame, changes = _of_topic(spark, logs)
    winners: dict[Any, Change] = {}
    partitions: dict[Any, set[int]] = {}
    for change in changes:  # in offset order within a partition, so the last one stays
        partition = change.position[0]
        winners[change.key, partition] = change
        partitions.setdefault(change.key, set()).add(partition)
    expected: dict[Any, Change] = {}
    for (key, _), change in sorted(winners.items(), key=lambda w: (w[1].position[2], w[1].position[0])):
        expected[key] = change
    actual = latest_by_offset(frame, _KEYS)
    assert actual.columns == [*frame.columns, TWO_PARTITIONS]
    assert {_key(r): (r["value"], r[TWO_PARTITIONS]) for r in actual.collect()} == {
        key: (change.row["value"], len(partitions[key]) > 1) for key, change in expected.items() if change.row
    }


@_LARGE
@given(logs=st.lists(_LOG, min_size=60, max_size=60))
def test_a_sequence_decides_before_the_position(spark: SparkSession, logs: Any) -> None:
    """Over partitions, too: the greatest of two columns, of equal ones the row that would be returned without."""
    frame, changes = _of_topic(spark, logs)
    frame = frame.selectExpr("*", "value % 3 AS major", "CAST(value % 11 AS STRING) AS minor")
    greatest: dict[Any, list[Change]] = {}
    for change in changes:
        value = (change.row or {})["value"]
        of_key = greatest.setdefault(change.key, [])
        best = (
            ((of_key[0].row or {})["value"] % 3, str((of_key[0].row or {})["value"] % 11)) if of_key else None
        )
        if best is None or (value % 3, str(value % 11)) > best:
            of_key.clear()
        if not of_key or (value % 3, str(value % 11)) == best:
            of_key.append(change)
    tied = {key: _by_position(found) for key, found in greatest.items()}
    actual = latest_by_offset(frame, _KEYS, ["major", "minor"])
    assert {_key(r): r["value"] for r in actual.collect()} == tied


def _by_position(changes: list[Change]) -> int:
    """The value of the last change of its partition, of several partitions the one with the greatest timestamp."""
    last = {change.position[0]: change for change in changes}
    newest = max(last.values(), key=lambda c: (c.position[2], c.position[0]))
    return int((newest.row or {})["value"])


# Per version what happens to some keys: insert or update, an update to the same, delete, delete and insert again, or
# move to a key.
_ACTS = st.lists(st.tuples(st.sampled_from("wsdrm"), _KEY, _KEY), max_size=3)


def _feed(versions: Iterable[list[tuple[str, Any, Any]]], number: int) -> list[Change]:
    """A table's change feed: at most one row taken and one row put per key and version, in no order."""
    table: dict[Any, Any] = {}
    changes: list[Change] = []
    for version, acts in enumerate(versions):
        touched: set[Any] = set()
        for value, (act, key, other) in enumerate(acts):
            here = {key, other} if act == "m" else {key}
            if here & touched or (act == "m" and (key == other or key not in table or other in table)):
                continue
            touched |= here
            row = {"value": version * 10 + value}
            made: list[tuple[RowKind, Any, Any]] = []
            if act == "m":
                made = [(RowKind.UPDATE_AFTER, other, row), (RowKind.UPDATE_BEFORE, key, table.pop(key))]
                table[other] = row
            elif act == "s" and key in table:
                made = [(RowKind.UPDATE_AFTER, key, table[key]), (RowKind.UPDATE_BEFORE, key, table[key])]
            elif act == "d" and key in table:
                made = [(RowKind.DELETE, key, table.pop(key))]
            elif act == "w" and key in table:
                made = [(RowKind.UPDATE_AFTER, key, row), (RowKind.UPDATE_BEFORE, key, table[key])]
                table[key] = row
            elif act in "wr":
                deleted = [(RowKind.DELETE, key, table[key])] if key in table else []
                made = [(RowKind.INSERT, key, row), *deleted]
                table[key] = row
            changes += [Change(kind, (number, *k), r, (version,)) for kind, k, r in made]
    return changes


@_LARGE
@given(histories=st.lists(st.lists(_ACTS, max_size=4), min_size=60, max_size=60))
def test_a_feed_nets_per_version_and_across_versions(spark: SparkSession, histories: Any) -> None:
    changes = [c for number, versions in enumerate(histories) for c in _feed(versions, number)]
    rows = [
        _row(c.key[0], c.key[1:], c.kind.value, (c.row or {})["value"])  # type: ignore[index]
        | {POSITION: {"version": c.position[0]}}
        for c in changes
    ]
    frame = _frame(spark, rows, {"version": pa.int64()}).persist()
    for across in (False, True):
        groups = (
            [changes]
            if across
            else [[c for c in changes if c.position == v] for v in {c.position for c in changes}]
        )
        expected = [
            (key, max(c.position[0] for c in group if c.key == key), before, after)
            for group in groups
            for key, (before, after) in oracle(group).items()
        ]
        sides = net(frame, _KEYS, across_versions=across)
        actual = [_sides(row) for row in sides.collect()]
        assert sorted(map(repr, actual)) == sorted(map(repr, expected))
        kept = [
            (RowKind(r[KIND]), _key(r), r["value"], r[POSITION].version) for r in upserts(sides).collect()
        ]
        assert sorted(map(repr, kept)) == sorted(repr(_upsert(*one)) for one in expected)
    frame.unpersist()


def _sides(row: Row) -> tuple[Any, ...]:
    before, after = row[BEFORE], row[AFTER]
    key = _key(after if after is not None else before)
    return (key, row[POSITION].version, *(side and {"value": side["value"]} for side in (before, after)))


def _upsert(key: Any, version: int, before: Any, after: Any) -> tuple[Any, ...]:
    kind = RowKind.DELETE if not after else RowKind.UPDATE_AFTER if before else RowKind.INSERT
    return (kind, key, (after or before)["value"], version)


def test_changes_for_themselves(spark: SparkSession) -> None:
    """Rows without a key: every change has one side, and retractions come first in a version."""
    rows = [
        _row(0, ("a", 1), kind, n) | {POSITION: {"version": 7}}
        for n, kind in enumerate(("+I", "-U", "+U", "-D"))
    ]
    actual = each(_frame(spark, rows, {"version": pa.int64()})).orderBy(POSITION).collect()
    sides = [(r[BEFORE] and r[BEFORE]["value"], r[AFTER] and r[AFTER]["value"]) for r in actual]
    assert [tuple(r[POSITION]) for r in actual] == [(7, 0), (7, 0), (7, 1), (7, 1)]
    assert sorted(sides[:2], key=str) == [(1, None), (3, None)]
    assert sorted(sides[2:], key=str) == [(None, 0), (None, 2)]


def test_an_update_that_changes_nothing_by_its_maps_and_nulls(spark: SparkSession) -> None:
    """Spark does not compare maps: their entries do, whatever their order."""
    schema = f"k int, m map<string, int>, n int, {KIND} string, {POSITION} struct<version: bigint>"
    rows = [
        (1, {"a": 1, "b": 2}, None, "-U", (1,)),
        (1, {"b": 2, "a": 1}, None, "+U", (1,)),
        (2, {"a": 1}, None, "-U", (1,)),
        (2, {"a": 2}, None, "+U", (1,)),
        (3, None, None, "-U", (1,)),
        (3, None, 0, "+U", (1,)),
    ]
    left = upserts(net(spark.createDataFrame(rows, schema), ["k"], across_versions=False))
    assert sorted(row["k"] for row in left.collect()) == [2, 3]
