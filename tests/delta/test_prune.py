"""Bounds that a MERGE prunes by: they hold for every key of the batch, and files beyond them are not read."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.delta.merge import merge
from bridge.delta.merging import MergeResult
from bridge.delta.prune import key_bounds
from tests.delta.tables import NO_VECTORS, append, at, content, frame, log_file, made

BOUNDED: list[tuple[T.DataType, list[Any], list[Any]]] = [
    (T.LongType(), [-(2**63), 5, 2**63 - 1], []),
    (T.ByteType(), [-3, 7], [-4, 8]),
    (T.StringType(), ["b", "Ä", "z\U0001f600"], ["a", "\U0001f601"]),
    (T.DecimalType(38, 10), [Decimal("-1.5"), Decimal("1E-10")], [Decimal("1E-9")]),
    (T.DateType(), [date(1, 1, 1), date(2024, 2, 29)], [date(2024, 3, 1)]),
]


@pytest.mark.parametrize(("type", "keys", "others"), BOUNDED, ids=[t.simpleString() for t, *_ in BOUNDED])
def test_bounds_hold_for_every_key_and_shut_out_others(
    spark: SparkSession, type: T.DataType, keys: list[Any], others: list[Any]
) -> None:
    shape = T.StructType([T.StructField("k.x", type)])
    bounds = key_bounds(spark.createDataFrame([(k,) for k in keys], shape), ["k.x"], "t")
    assert bounds is not None
    rows = spark.createDataFrame([(k,) for k in [*keys, *others]], shape).alias("t")
    assert {r[0] for r in rows.where(bounds).collect()} == set(keys)


def test_no_bounds(spark: SparkSession) -> None:
    shape = "k BIGINT, s STRING, d DOUBLE, t TIMESTAMP"
    rows = spark.createDataFrame([(1, None, 1.0, None), (2, "a", 2.0, None)], shape)
    for key in (["s"], ["d"], ["t"]):
        assert key_bounds(rows, key, "t") is None
    assert key_bounds(rows.limit(0), ["k"], "t") is None
    bounds = key_bounds(rows, ["s", "k"], "t")
    assert bounds is not None
    there = spark.createDataFrame([(1, "z"), (3, "a"), (2, None)], "k BIGINT, s STRING").alias("t")
    assert there.where(bounds).select(F.sum("k")).collect()[0][0] == 3


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
    done = merge(table, changes, key=["id"], progress=at(0), persisted=True)
    assert done == MergeResult(3, 1, 1, 1)
    away.rename(file)
    assert content(table) == {(2, "b"), (50, "n"), (100, "a")}
