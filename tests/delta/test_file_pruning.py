"""Bounds that a MERGE prunes by: they hold for every key of the batch, and files beyond them are not read."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.delta.file_pruning import KeyPredicate, key_predicate, rounded_bounds
from bridge.delta.merge_contract import MergeResult
from bridge.delta.merge_spark import SparkEngine
from bridge.session import child_session
from tests.delta.tables import NO_VECTORS, SMALL_TABLES, append, at, by_spark, content, frame, log_file, made

BOUNDED: list[tuple[T.DataType, list[Any], list[Any]]] = [
    (T.LongType(), [-(2**63), 5, 2**63 - 1], []),
    (T.ByteType(), [-3, 7], [-4, 8]),
    (T.StringType(), ["b", "Ä", "z\U0001f600"], ["a", "\U0001f601"]),
    (T.DecimalType(38, 10), [Decimal("-1.5"), Decimal("1E-10")], [Decimal("1E-9")]),
    (T.DateType(), [date(1, 1, 1), date(2024, 2, 29)], [date(2024, 3, 1)]),
]


@pytest.mark.parametrize(("type", "keys", "others"), BOUNDED, ids=[t.simpleString() for t, *_ in BOUNDED])
@pytest.mark.parametrize(
    "few", [pytest.param(1000, id="named"), pytest.param(1, id="bounds", marks=pytest.mark.slow)]
)
def test_it_holds_for_every_key_and_shuts_out_others(
    spark: SparkSession,
    few: int,
    type: T.DataType,
    keys: list[Any],
    others: list[Any],
) -> None:
    shape = T.StructType([T.StructField("k.x", type)])
    among = key_predicate(spark.createDataFrame([(k,) for k in keys], shape), ["k.x"], "t", max_named=few)
    assert among.condition is not None
    assert among.exact is (few > 1 and not isinstance(type, T.StringType))
    rows = spark.createDataFrame([(k,) for k in [*keys, *others]], shape).alias("t")
    assert {r[0] for r in rows.where(among.condition).collect()} == set(keys)


def test_a_few_keys_are_named_so_that_what_lies_between_is_shut_out(spark: SparkSession) -> None:
    keys = spark.createDataFrame([(1, 1), (9, 2)], "k BIGINT, part INT")
    among = key_predicate(keys, ["k", "part"], "t")
    assert among.condition is not None and among.exact
    rows = spark.createDataFrame([(1, 1), (5, 1), (9, 2), (9, 3)], "k BIGINT, part INT").alias("t")
    assert sorted(map(tuple, rows.where(among.condition).collect())) == [(1, 1), (9, 2)]


@pytest.mark.parametrize(
    "few", [pytest.param(1000, id="named", marks=pytest.mark.slow), pytest.param(1, id="bounds")]
)
def test_nothing_is_known_of_nulls_and_of_other_types(spark: SparkSession, few: int) -> None:
    shape = "k BIGINT, s STRING, d DOUBLE, t TIMESTAMP"
    rows = spark.createDataFrame([(1, None, 1.0, None), (2, "a", 2.0, None)], shape)
    for key in (["s"], ["d"], ["t"]):
        assert key_predicate(rows, key, "t", max_named=few) == KeyPredicate()
    assert key_predicate(rows.limit(0), ["k"], "t", max_named=few) == KeyPredicate()
    among = key_predicate(rows, ["s", "k"], "t", max_named=few)
    assert among.condition is not None and not among.exact
    there = spark.createDataFrame([(1, "z"), (3, "a"), (2, None)], "k BIGINT, s STRING").alias("t")
    assert there.where(among.condition).select(F.sum("k")).collect()[0][0] == 3


@pytest.mark.parametrize("days", [2_932_897, -719_163, 2**31 - 1])
def test_nothing_is_known_of_dates_that_python_has_not(spark: SparkSession, days: int) -> None:
    rows = spark.sql(f"SELECT date_add(DATE'1970-01-01', {days}) AS k")
    assert key_predicate(rows, ["k"], "t") == KeyPredicate()


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_rounded_bounds_are_wider_by_little(one: int, other: int) -> None:
    low, high = min(one, other), max(one, other)
    wide_low, wide_high = rounded_bounds(low, high, 64)
    assert -(2**63) <= wide_low <= low <= high <= wide_high < 2**63
    assert max(low - wide_low, wide_high - high) <= (high - low) / 32


def test_random_keys_have_the_same_bounds_in_each_batch() -> None:
    draw = random.Random(7)
    batches = [sorted(draw.sample(range(2_000_000), 5000)) for _ in range(20)]
    assert len({rounded_bounds(keys[0], keys[-1], 64) for keys in batches}) == 1


@pytest.mark.parametrize(
    "few", [pytest.param(1000, id="named"), pytest.param(1, id="bounds", marks=pytest.mark.slow)]
)
def test_a_next_batch_finds_sparks_code_compiled(spark: SparkSession, lake: Path, few: int) -> None:
    own, draw = child_session(spark), random.Random(7)
    engine = SparkEngine(SMALL_TABLES, max_named_keys=few)
    for name, value in (("wholeStage", "true"), ("factoryMode", "FALLBACK")):
        own.conf.set(f"spark.sql.codegen.{name}", value)  # the tests' session does without
    table = made(spark, lake / "t", rows=[(i, "a") for i in range(0, 1000, 2)]).on(own)
    source = spark._jvm.org.apache.spark.metrics.source  # type: ignore[union-attr]
    times = source.CodegenMetrics.METRIC_COMPILATION_TIME()
    compiled = []
    for batch in range(5):
        before = times.getCount()
        rows = [("+U", i, f"b{batch}") for i in draw.sample(range(1000), 100)]
        changes = frame(table, [*rows, ("-D", batch, None)]).dropDuplicates(["id"]).persist()
        engine.merge(table, changes, key=["id"], progress=at(batch))
        compiled.append(times.getCount() - before)
        if compiled[-1] < 5:
            break
    # Which stage is done first is luck, and classes are named after the number of theirs: not each batch finds all.
    assert compiled[0] > 10 and compiled[-1] < 5, compiled


@pytest.mark.parametrize("properties", [{}, NO_VECTORS], ids=["deletion vectors", "rewritten files"])
def test_files_beyond_the_bounds_are_not_even_opened(
    spark: SparkSession, lake: Path, properties: dict[str, str]
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "a")], properties=properties)
    append(table, [(100, "a")])
    beyond = next(line for line in log_file(table, 2).read_text().splitlines() if '"add"' in line)
    file = lake / "t" / beyond.split('"path":"')[1].split('"')[0]
    away = file.rename(file.with_suffix(".away"))
    changes = frame(table, [("+U", 2, "b"), ("-D", 1, None), ("+U", 50, "n")]).persist()
    done = by_spark(table, changes, key=["id"], progress=at(0))
    assert done == MergeResult(3, 1, 1, 1)
    away.rename(file)
    assert content(table) == {(2, "b"), (50, "n"), (100, "a")}
