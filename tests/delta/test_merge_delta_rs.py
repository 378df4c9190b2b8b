"""Keys and values that the engine `delta-rs` merges correctly, and tables that it leaves to Spark."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.changes_in_driver import Limits
from bridge.delta.merge_contract import MergeResult, UnsupportedByEngine
from bridge.delta.merge_delta_rs import DeltaRsEngine
from bridge.embedded.processes import HOST, free_port
from bridge.session import session_settings
from tests.delta.tables import (
    FIELDS,
    actions,
    append,
    at,
    by_delta_rs,
    by_spark,
    content,
    frame,
    log_file,
    made,
)

UTC = timezone.utc
NAN = math.nan
MOMENT = datetime(2024, 1, 1, 0, 0, 0, 123456, UTC)


def field(name: str, type: T.DataType) -> T.StructField:
    return T.StructField(name, type)


KEYS: list[tuple[T.DataType, list[Any]]] = [
    (T.ByteType(), [-128, 127]),
    (T.ShortType(), [-32768, 5]),
    (T.LongType(), [-(2**63), 2**63 - 1]),
    (T.StringType(), ["", "é" * 60 + "1", "é" * 60 + "2", "\U0001f600" * 40, "'", "`"]),
    (T.BooleanType(), [True, False]),
    (T.BinaryType(), [b"", b"\x00", b"\xff" * 50]),
    (T.DateType(), [date(1, 1, 1), date(9999, 12, 31)]),
    (T.DecimalType(38, 18), [Decimal("0.000000000000000001"), Decimal("-1")]),
    (
        T.TimestampNTZType(),
        [
            datetime(1, 1, 1),
            datetime(2024, 1, 1, 0, 0, 0, 123456),
            datetime(9999, 12, 31, 23, 59, 59, 999999),
        ],
    ),
    (T.TimestampType(), [MOMENT, datetime(1970, 1, 1, tzinfo=UTC)]),
]

SHORTENED = ("string", "bigint")
"""A type whose statistics are not the values themselves, and one for which they are."""


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        pytest.param(
            t, keys, id=t.simpleString(), marks=() if t.simpleString() in SHORTENED else pytest.mark.slow
        )
        for t, keys in KEYS
    ],
)
def test_keys_of_every_type_find_their_rows_in_files_of_either_engine(
    spark: SparkSession, lake: Path, type: T.DataType, keys: list[Any]
) -> None:
    """Statistics are shortened and rounded when they are written; no file may be skipped wrongly."""
    table = made(spark, lake / "t", fields=[field("k", type), field("v", T.LongType())])
    for key in keys:
        append(table, [(key, 0)])
    changes = [("+U", key, 1) for key in (*keys, None)]
    assert by_delta_rs(table, frame(table, changes), key=["k"], progress=at(0)) == MergeResult(
        len(keys) + 1, 1, len(keys), 0
    )
    again = by_delta_rs(table, frame(table, changes), key=["k"], progress=at(1))
    assert again == MergeResult(len(keys) + 2)
    assert by_spark(table, frame(table, changes), key=["k"], progress=at(2)).updated == 0
    gone = [("-D", key, None) for key in keys[:-1]]
    assert by_delta_rs(table, frame(table, gone), key=["k"], progress=at(3)).deleted == len(gone)
    assert {tuple(r)[1] for r in table.delta().toDF().collect()} == {1} and table.delta().toDF().count() == 2


def test_values_of_every_type_are_kept_and_what_is_the_same_is_no_update(
    spark: SparkSession, lake: Path
) -> None:
    types = [T.DoubleType(), T.FloatType(), T.TimestampType(), T.DecimalType(10, 2), T.BinaryType()]
    fields = [field("a.b", T.LongType()), *(field(f"s{i}", t) for i, t in enumerate(types))]
    table = made(spark, lake / "t", fields=fields)
    one = (NAN, NAN, MOMENT, Decimal("1.50"), b"\x00")
    two: tuple[Any, ...] = (-0.0, 0.0, None, None, None)
    three = (math.inf, -math.inf, MOMENT, Decimal("-99999999.99"), b"")
    changes = [("+U", i, *row) for i, row in enumerate((one, two, three))]
    assert by_delta_rs(table, frame(table, changes), key=["a.b"], progress=at(0)).inserted == 3
    assert by_spark(table, frame(table, changes), key=["a.b"], progress=at(1)).updated == 0
    zero = [("+U", 0, *one), ("+U", 1, 0.0, -0.0, *two[2:]), ("+U", 2, *three)]
    assert by_delta_rs(table, frame(table, zero), key=["a.b"], progress=at(2)) == MergeResult(3)
    rows = table.delta().toDF()
    assert rows.where("s0 > 5").count() == 2, (
        "Spark takes NaN for the largest value, and must not skip its file"
    )
    assert rows.where("s1 > 5").count() == 1


def test_rows_in_files_with_deletion_vectors(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(i, "a") for i in range(20)])
    by_spark(table, frame(table, [("-D", i, None) for i in range(0, 20, 2)]), key=["id"], progress=at(0))
    changes = [("+U", 1, "x"), ("+U", 2, "back"), ("-D", 3, None), ("-D", 4, None)]
    assert by_delta_rs(table, frame(table, changes), key=["id"], progress=at(1)) == MergeResult(3, 1, 1, 1)
    assert content(table) == {(1, "x"), (2, "back"), *((i, "a") for i in range(5, 20, 2))}


def test_files_without_a_key_of_the_batch_are_left_alone(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    for i in range(4):
        append(table, [(i, "a")])
    by_delta_rs(table, frame(table, [("+U", 2, "b")]), key=["id"], progress=at(0))
    done = actions(table, 5)
    assert sum("remove" in a for a in done) == 1 and sum("add" in a for a in done) == 1
    metrics = next(a["commitInfo"] for a in done if "commitInfo" in a)["operationMetrics"]
    assert metrics["num_target_files_skipped_during_scan"] == 3


REFUSED: list[tuple[T.StructField, dict[str, str], str]] = [
    (field("m", T.MapType(T.StringType(), T.LongType())), {}, "column 'm' is MAP<STRING,BIGINT>"),
    (field("s", T.StructType([field("f", T.DoubleType())])), {}, "column 's' is STRUCT<F:DOUBLE>"),
    (field("a", T.ArrayType(T.StringType())), {}, "column 'a' is ARRAY<STRING>"),
    (field("v 2", T.LongType()), {}, "the table has the feature 'columnMapping'"),
    (
        field("v", T.LongType()),
        {"delta.enableRowTracking": "true"},
        "the table has the feature 'domainMetadata'",
    ),
]


@pytest.mark.parametrize(("column", "properties", "reason"), REFUSED, ids=[r[2] for r in REFUSED])
def test_what_is_left_to_spark(
    spark: SparkSession, lake: Path, column: T.StructField, properties: dict[str, str], reason: str
) -> None:
    table = made(spark, lake / "t", fields=[*FIELDS[:1], column], properties=properties)
    with pytest.raises(UnsupportedByEngine) as caught:
        by_delta_rs(table, frame(table, []), key=["id"], progress=at(0))
    assert str(caught.value) == reason
    assert not log_file(table, 1).exists()


def test_constraints_and_floating_keys_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=[field("id", T.DoubleType()), *FIELDS[1:]])
    with pytest.raises(UnsupportedByEngine, match=r"^the key column 'id' is DOUBLE$"):
        by_delta_rs(table, frame(table, []), key=["id"], progress=at(0))
    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD CONSTRAINT short CHECK (length(v) < 3)")
    with pytest.raises(UnsupportedByEngine, match=r"^the table has the feature 'checkConstraints'$"):
        by_delta_rs(table, frame(table, []), key=["id"], progress=at(0))


def test_timestamps_that_delta_rs_would_misread_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    """The year 9999 as INT96, Spark's default: delta-rs reads it as a time in 1816."""
    far = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
    fields = [*FIELDS[:1], field("at", T.TimestampType()), field("v", T.StringType())]
    table = made(spark, lake / "t", fields=fields)
    changes = frame(table, [("+U", 1, MOMENT, "b")])
    for moment in (None, MOMENT):
        with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
            append(table, [(1, moment, "a")])
    append(table, [(2, far, "a"), (1, MOMENT, "a")])
    assert by_delta_rs(table, changes, key=["id"], progress=at(0)).updated == 3
    assert table.delta().toDF().where("at = '9999-12-31 23:59:59.999999'").count() == 1
    with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        append(table, [(3, far, "a")])
    with pytest.raises(
        UnsupportedByEngine,
        match=r"\(INT96\) timestamps of column 'at' that may be before 1678 or after 2261$",
    ):
        by_delta_rs(table, changes, key=["id"], progress=at(1))
    assert by_spark(table, frame(table, [("+U", 3, far, "b")]), key=["id"], progress=at(1)).updated == 1
    assert by_delta_rs(table, frame(table, [("+U", 3, far, "c")]), key=["id"], progress=at(2)).updated == 1
    assert table.delta().toDF().where("at = '9999-12-31 23:59:59.999999'").count() == 2


def test_limits(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    changes = frame(table, [("+U", i, "b") for i in range(1000)]).persist()
    changes.count()
    for limits, reason in (
        (Limits(10, 1 << 30), "the batch has 0 MiB, more than 0 MiB"),
        (Limits(1 << 30, 10), "the batch touches files of 0 MiB, more than 0 MiB"),
    ):
        with pytest.raises(UnsupportedByEngine, match=f"^{reason}$"):
            DeltaRsEngine(limits).merge(table, changes, key=["id"], progress=at(0), persisted=True)
    beside = frame(table, [("+U", 7, "b")])
    small = DeltaRsEngine(Limits(10, 10))
    assert small.merge(table, beside, key=["id"], progress=at(0)).inserted == 1


def test_storage_that_is_neither_local_nor_s3(spark: SparkSession, lake: Path) -> None:
    table = replace(made(spark, lake / "t"), location="abfss://container@account/t")
    reason = "the table is stored in abfss, not in local files or on s3a://"
    with pytest.raises(UnsupportedByEngine, match=f"^{reason}$"):
        by_delta_rs(table, frame(table, []), key=["id"], progress=at(0))


@pytest.mark.slow  # delta-rs asks ten times
def test_a_store_that_does_not_answer_delta_rs_is_left_to_spark(spark: SparkSession, lake: Path) -> None:
    """So is one for which delta-rs finds no credentials: both are an OSError whose text may have an address."""
    table = replace(made(spark, lake / "t"), location="s3a://closed/t")
    settings = {"endpoint": f"http://{HOST}:{free_port()}", "access.key": "k", "secret.key": "s"}
    for name, value in settings.items():
        spark.conf.set(f"fs.s3a.bucket.closed.{name}", value)
    reason = "delta-rs cannot open the table on S3: it finds no credentials, or the store does not answer it"
    with pytest.raises(UnsupportedByEngine, match=f"^{reason}$"):
        by_delta_rs(table, frame(table, []), key=["id"], progress=at(0))


def test_a_commit_and_its_files_are_on_the_disk(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs leaves its files to the system's cache, from where a loss of power takes them."""
    table = made(spark, lake / "t", rows=[(1, "a")])
    synced, fsync = set[str](), os.fsync

    def sync(opened: int) -> None:
        fsync(opened)
        synced.add(os.readlink(f"/proc/self/fd/{opened}"))

    monkeypatch.setattr(os, "fsync", sync)
    result = by_delta_rs(table, frame(table, [("+U", 1, "x"), ("+U", 2, "y")]), key=["id"], progress=at(0))
    named = [a[name]["path"] for a in actions(table, result.version) for name in ("add", "cdc") if name in a]
    assert named
    assert {str(lake / "t" / path) for path in named} <= synced
    assert {str(log_file(table, result.version)), str(lake / "t"), str(lake / "t" / "_delta_log")} <= synced
