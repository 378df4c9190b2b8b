"""Compaction in Spark against the oracle in bridge.rows, many random histories in one frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from bridge.columns import KIND, POSITION
from bridge.compact import TWO_PARTITIONS, latest_by_offset, latest_per_version
from bridge.rows import Change, RowKind, compact, replay

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
    found = latest_by_offset(frame, _KEYS).collect()
    assert {(_key(r), r["value"]) for r in found} == {
        (c.key, c.row["value"]) for c in compact(changes) if c.row
    }
    assert len(found) == len(compact(changes)) and not any(r[TWO_PARTITIONS] for r in found)


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
    found = latest_by_offset(frame, _KEYS)
    assert found.columns == [*frame.columns, TWO_PARTITIONS]
    assert {_key(r): (r["value"], r[TWO_PARTITIONS]) for r in found.collect()} == {
        key: (change.row["value"], len(partitions[key]) > 1) for key, change in expected.items() if change.row
    }


# Per version what happens to some keys: insert or update, delete, delete and insert again, or move to a key.
_ACTS = st.lists(st.tuples(st.sampled_from("wdrm"), _KEY, _KEY), max_size=3)


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


def _outcome(change: Change) -> tuple[Any, ...]:
    kind = RowKind.DELETE if change.kind.retracts else change.kind
    return (change.key, change.position[0], kind.value, (change.row or {})["value"])


@_LARGE
@given(histories=st.lists(st.lists(_ACTS, max_size=4), min_size=60, max_size=60))
def test_a_feed_folds_per_version_and_across_versions(spark: SparkSession, histories: Any) -> None:
    changes = [c for number, versions in enumerate(histories) for c in _feed(versions, number)]
    rows = [
        _row(c.key[0], c.key[1:], c.kind.value, (c.row or {})["value"])  # type: ignore[index]
        | {POSITION: {"version": c.position[0]}}
        for c in changes
    ]
    frame = _frame(spark, rows, {"version": pa.int64()}).persist()
    per_version = latest_per_version(frame, _KEYS, across_versions=False).collect()
    versions = {c.position for c in changes}
    each = [_outcome(c) for v in versions for c in compact([c for c in changes if c.position == v])]
    assert sorted(map(repr, each)) == sorted(repr(_found(r)) for r in per_version)

    folded = latest_per_version(frame, _KEYS, across_versions=True).collect()
    assert sorted(repr(_outcome(c)) for c in compact(changes)) == sorted(repr(_found(r)) for r in folded)
    kept = [Change(RowKind(r[KIND]), _key(r), {"value": r["value"]}) for r in folded]
    in_order = sorted(changes, key=lambda c: (c.position, not c.kind.retracts))
    assert replay(kept) == replay(in_order)
    frame.unpersist()


def _found(row: Row) -> tuple[Any, ...]:
    return (_key(row), row[POSITION].version, row[KIND], row["value"])
