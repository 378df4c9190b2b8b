"""The oracle says yes to the fold of what was sent, and names everything else."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import oracle
from benchmarks.topics import ROW, Load, load_together
from bridge.rows import Change, RowKind, replay

pytestmark = pytest.mark.slow  # a benchmark whose oracle is wrong finds no right table

BASE = 50
LOAD = Load(Load.random(60, 70, seed=3).keys, np.arange(60) % 7 == 6)


def table(spark: SparkSession, numbers: dict[int, int]) -> DataFrame:
    rows = spark.createDataFrame(list(numbers.items()), "id BIGINT, number BIGINT")
    return rows.select("id", *(F.expr(value).alias(name) for name, value in ROW.items()), "number")


def right() -> dict[int, int]:
    """The fold by hand: every row that was there, then record by record."""
    rows = dict.fromkeys(range(BASE), 0)
    for number, (id, gone) in enumerate(zip(LOAD.keys.tolist(), LOAD.deletes.tolist(), strict=True), 1):
        if gone:
            rows.pop(id, None)
        else:
            rows[id] = number
    return rows


@pytest.fixture(scope="module")
def rows() -> dict[int, int]:
    found = right()
    assert 0 in found.values() and len(set(LOAD.keys.tolist()) - set(found)) > 0
    return found


def test_the_fold_of_what_was_sent_is_right(spark: SparkSession, rows: dict[int, int]) -> None:
    assert oracle.wrong(table(spark, rows), LOAD, BASE) is None


def test_a_row_too_few_or_too_many(spark: SparkSession, rows: dict[int, int]) -> None:
    changed = next(id for id, number in rows.items() if number)
    less = {id: n for id, n in rows.items() if id != changed}
    assert (
        oracle.wrong(table(spark, less), LOAD, BASE)
        == "1 rows are missing, 0 should not exist, 0 are duplicates"
    )
    more = rows | {next(id for id in LOAD.keys.tolist() if id not in rows): 60}
    assert (
        oracle.wrong(table(spark, more), LOAD, BASE)
        == "0 rows are missing, 1 should not exist, 0 are duplicates"
    )
    twice = table(spark, rows).union(table(spark, {changed: rows[changed]}))
    assert oracle.wrong(twice, LOAD, BASE) == "0 rows are missing, 0 should not exist, 1 are duplicates"


def test_a_row_of_an_earlier_record(spark: SparkSession, rows: dict[int, int]) -> None:
    late = next(id for id, number in rows.items() if number > 1)
    stale = table(spark, rows | {late: rows[late] - 1})
    assert "differ from the last record of their key" in (oracle.wrong(stale, LOAD, BASE) or "")


@pytest.mark.parametrize("other", [{}, {BASE + 5_000: 0}], ids=["lost", "another-in-its-place"])
def test_a_row_that_nobody_touched(spark: SparkSession, rows: dict[int, int], other: dict[int, int]) -> None:
    old = next(id for id, number in rows.items() if not number)
    lost = {id: n for id, n in rows.items() if id != old} | other
    assert "rows are unchanged" in (oracle.wrong(table(spark, lost), LOAD, BASE) or "")


def test_a_value_that_no_record_wrote(spark: SparkSession, rows: dict[int, int]) -> None:
    frame, old = table(spark, rows), next(id for id, number in rows.items() if not number)
    for column in ROW:
        broken = frame.withColumn(column, F.when(F.col("id") != old, F.col(column)))
        said = oracle.wrong(broken, LOAD, BASE)
        assert said == f"1 of {len(rows)} rows have values that no record wrote", column


def test_two_frames_are_the_same_or_not(spark: SparkSession, rows: dict[int, int]) -> None:
    frame = table(spark, rows)
    others = {
        "other order": frame.orderBy(F.desc("id")),
        "other value": frame.withColumn("note", F.lit("x")),
        "row less": frame.where(F.col("id") != next(iter(rows))),
        "row twice": frame.unionAll(frame.limit(1)),
    }
    found = {name: oracle.same(oracle.digest(frame), oracle.digest(other)) for name, other in others.items()}
    count = len(rows)
    assert found == {
        "other order": None,
        "other value": f"{count} and {count} rows, which differ",
        "row less": f"{count} and {count - 1} rows, which differ",
        "row twice": f"{count} and {count + 1} rows, which differ",
    }


def test_the_fold_of_keys_is_what_the_house_oracle_says() -> None:
    changes = [
        Change(RowKind.DELETE if gone else RowKind.UPDATE_AFTER, id, None if gone else {"number": number})
        for number, (id, gone) in enumerate(zip(LOAD.keys.tolist(), LOAD.deletes.tolist(), strict=True), 1)
    ]
    fold = LOAD.fold()
    found = dict(zip(fold.ids.tolist(), fold.numbers.tolist(), strict=True))
    assert {id: {"number": number} for id, number in found.items()} == replay(changes)
    assert set(fold.touched.tolist()) == set(LOAD.keys.tolist())


def test_keys_that_lie_together_are_half_new() -> None:
    load = load_together(40, batch=10, rows=100, seed=1)
    batches = np.split(load.keys, 4)
    assert [(int(b.min()), int(b.max())) for b in batches] == [(95, 104), (100, 109), (105, 114), (110, 119)]
