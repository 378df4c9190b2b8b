"""Where a slot goes on: the rows behind its cursor, however Arrow cuts them into batches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from bridge.kafka import exactly_once
from bridge.kafka.broker import Broker
from bridge.kafka.exactly_once import _Place, _whole, produce_once
from bridge.kafka.share import Cursor
from bridge.published import Stretch
from tests.kafka.topics import topic_of
from tests.ledger import committed

CHUNK = 2

# How many rows each version has; and where the batches end.
versions = st.dictionaries(st.integers(0, 12), st.integers(1, 9), min_size=1, max_size=6)
cuts = st.lists(st.integers(1, 7), min_size=1, max_size=40)


def rows_of(counts: dict[int, int]) -> list[tuple[int, int]]:
    """(version, the how-manieth row of it), in a slot's order."""
    return [(version, n) for version in sorted(counts) for n in range(1, counts[version] + 1)]


def batches_of(rows: list[tuple[int, int]], sizes: list[int]) -> list[pa.RecordBatch]:
    at = 0
    found: list[pa.RecordBatch] = []
    while at < len(rows):
        size = sizes[len(found) % len(sizes)]
        part = rows[at : at + size]
        found.append(
            pa.RecordBatch.from_pydict({"key": [n for _, n in part], "__version": [v for v, _ in part]})
        )
        at += size
    return found


def passed(cursor: Cursor, batches: list[pa.RecordBatch]) -> tuple[list[tuple[int, int]], list[Cursor]]:
    """What is left to send, and the places after each batch."""
    place, left, upto = _Place(cursor, CHUNK), [], []
    for batch in batches:
        rest, after = place.after(batch)
        left += list(zip(rest["__version"].to_pylist(), rest["key"].to_pylist(), strict=True))
        upto.append(after)
    return left, upto


@settings(max_examples=300, deadline=None)
@given(versions, cuts, st.data())
def test_the_rest_is_what_lies_behind_the_cursor(
    counts: dict[int, int], sizes: list[int], data: st.DataObject
) -> None:
    rows = rows_of(counts)
    sent = data.draw(st.integers(0, len(rows)))
    cursor = Cursor(rows[sent - 1][0], CHUNK, rows[sent - 1][1]) if sent else Cursor()
    left, upto = passed(cursor, batches_of(rows, sizes))
    assert left == rows[sent:]
    assert upto == sorted(set(upto))
    assert upto[-1] == Cursor(rows[-1][0], CHUNK, rows[-1][1])


@settings(max_examples=100, deadline=None)
@given(versions, cuts, cuts, st.data())
def test_another_cut_goes_on_where_the_first_ended(
    counts: dict[int, int], first: list[int], second: list[int], data: st.DataObject
) -> None:
    """The run before had other batches; its cursors are places between rows all the same."""
    rows = rows_of(counts)
    batches = batches_of(rows, first)
    _, upto = passed(Cursor(), batches)
    done = data.draw(st.integers(1, len(batches)))
    sent = sum(batch.num_rows for batch in batches[:done])
    assert passed(upto[done - 1], batches_of(rows, second))[0] == rows[sent:]


@given(versions, cuts, st.integers(0, 12), st.integers(1, 9))
def test_chunks_of_a_snapshot_are_sent_in_turn(
    counts: dict[int, int], sizes: list[int], version: int, count: int
) -> None:
    """A cursor in a later chunk has this one behind it, one in an earlier chunk has all of it before it."""
    rows = rows_of(counts)
    batches = batches_of(rows, sizes)
    assert passed(Cursor(version, CHUNK + 1, count), batches)[0] == [r for r in rows if r[0] > version]
    assert passed(Cursor(version, CHUNK - 1, count), batches)[0] == [r for r in rows if r[0] >= version]


ranks = st.lists(st.integers(0, 9), min_size=1, max_size=40).map(sorted)


@settings(max_examples=300, deadline=None)
@given(ranks, cuts)
def test_rows_of_one_rank_stay_in_one_batch(ranked: list[int], sizes: list[int]) -> None:
    numbered = [*zip(ranked, range(len(ranked)), strict=True)]
    given_rows = [
        pa.RecordBatch.from_pydict({"__rank": [r for r, _ in part], "key": [n for _, n in part]})
        for part in _cut(numbered, sizes)
    ]
    found = [batch.to_pydict() for batch in _whole(given_rows)]
    assert [n for batch in found for n in batch["key"]] == list(range(len(ranked)))
    assert all(a["__rank"][-1] < b["__rank"][0] for a, b in pairwise(found))
    assert len(found) == 1 or all(batch["key"] for batch in found)


def _cut(rows: list[tuple[int, int]], sizes: list[int]) -> list[list[tuple[int, int]]]:
    """In parts of these sizes, with an empty one in between: Spark may send such."""
    parts: list[list[tuple[int, int]]] = []
    at = 0
    while at < len(rows):
        size = sizes[len(parts) % len(sizes)]
        parts += [rows[at : at + size], []]
        at += size
    return parts


def test_records_of_one_rank_come_in_any_order(
    spark: SparkSession,
    broker: Broker,
    unique: Callable[[str], str],
    arm: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hashes of two bits, so that most share theirs: a run that dies behind its first transaction left none of them
    half sent, and the next finds them in another order. One slot: a second one would go on for a while behind the
    failure of the first, and nobody could say how much was left to send."""
    monkeypatch.setattr(exactly_once, "_HASH", 3)
    name, prefix = unique("ranks"), unique("tx")
    broker.create_topic(name, partitions=2)
    topic = topic_of(name, servers=broker.bootstrap)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")

    def send(order: str) -> int:
        stretch = Stretch(4, 5, slots=1)
        records = _records(spark.range(0, 120, 1, 1).selectExpr(f"{order} AS n"))
        return produce_once(records, topic, stretch, prefix=prefix, run="r", max_rows=5, unique=True).records

    try:
        hit = arm("slot.after-commit", "raise")
        with pytest.raises(Exception, match="failpoint"):
            send("id")
        assert hit.exists()
        before = committed(broker.bootstrap, name)
        assert 0 < sum(map(len, before.values())) < 120
        sent = send("119 - id")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert committed(broker.bootstrap, name) == {id: ["v4", "v5"] for id in range(60)}
    assert sent == 120 - sum(map(len, before.values()))


def _records(numbers: DataFrame) -> DataFrame:
    rows = numbers.selectExpr("n % 60 AS id", "4 + n DIV 60 AS version")
    return rows.selectExpr(
        """CAST(concat('{"id":', id, '}') AS BINARY) AS key""",
        """CAST(concat('{"name":"v', version, '"}') AS BINARY) AS value""",
        "named_struct('version', version) AS __position",
    )
