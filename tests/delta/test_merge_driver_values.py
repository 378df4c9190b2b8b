"""Keys and values that the engine `driver` merges correctly, and tables that it leaves to Spark."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget, MergeSettings
from bridge.delta.engine_choice import Engines
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import claim, create_table, described, open_table
from bridge.lake.local_store import LocalStore
from bridge.lake.snapshot import open_snapshot, stats_of
from bridge.session import session_settings
from bridge.ways import NotThisWay
from tests.delta.tables import (
    FIELDS,
    VECTORS,
    actions,
    append,
    at,
    by_copies,
    by_marks,
    by_spark,
    content,
    create_fed,
    frame,
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
    assert by_copies(table, frame(table, changes), key=["k"], progress=at(0)) == MergeResult(
        len(keys) + 1, 1, len(keys), 0
    )
    again = by_copies(table, frame(table, changes), key=["k"], progress=at(1))
    assert again == MergeResult(len(keys) + 2)
    assert by_spark(table, frame(table, changes), key=["k"], progress=at(2)).updated == 0
    gone = [("-D", key, None) for key in keys[:-1]]
    assert by_copies(table, frame(table, gone), key=["k"], progress=at(3)).deleted == len(gone)
    assert {tuple(r)[1] for r in table.delta().toDF().collect()} == {1} and table.delta().toDF().count() == 2


def test_values_of_every_type_are_kept_and_what_is_the_same_is_no_update(
    spark: SparkSession, lake: Path
) -> None:
    lists = [T.ArrayType(T.StringType()), T.ArrayType(T.ArrayType(T.DoubleType()))]
    types = [T.DoubleType(), T.FloatType(), T.TimestampType(), T.DecimalType(10, 2), T.BinaryType(), *lists]
    fields = [field("a.b", T.LongType()), *(field(f"s{i}", t) for i, t in enumerate(types))]
    table = made(spark, lake / "t", fields=fields)
    one = (NAN, NAN, MOMENT, Decimal("1.50"), b"\x00", ["", None, "é"], [[NAN, None], None, []])
    two: tuple[Any, ...] = (-0.0, 0.0, None, None, None, None, None)
    three: tuple[Any, ...] = (math.inf, -math.inf, MOMENT, Decimal("-99999999.99"), b"", [], [[-0.0]])
    changes = [("+U", i, *row) for i, row in enumerate((one, two, three))]
    assert by_copies(table, frame(table, changes), key=["a.b"], progress=at(0)).inserted == 3
    assert by_spark(table, frame(table, changes), key=["a.b"], progress=at(1)).updated == 0
    zero = [("+U", 0, *one), ("+U", 1, 0.0, -0.0, *two[2:]), ("+U", 2, *three)]
    assert by_copies(table, frame(table, zero), key=["a.b"], progress=at(2)) == MergeResult(3)
    other = [("+U", 0, *one[:5], ["", None], one[6]), ("+U", 1, *two[:6], []), ("+U", 2, *three)]
    assert by_marks(table, frame(table, other), key=["a.b"], progress=at(3)).updated == 2
    assert by_spark(table, frame(table, other), key=["a.b"], progress=at(4)).updated == 0
    feed = table.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 4)
    assert feed.load(str(lake / "t")).where("s5 = array('', null, 'é')").count() == 1
    rows = table.delta().toDF()
    assert rows.where("s0 > 5").count() == 2, (
        "Spark takes NaN for the largest value, and must not skip its file"
    )
    assert rows.where("s1 > 5").count() == 1


def test_rows_in_files_with_deletion_vectors(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(i, "a") for i in range(20)])
    by_spark(table, frame(table, [("-D", i, None) for i in range(0, 20, 2)]), key=["id"], progress=at(0))
    changes = [("+U", 1, "x"), ("+U", 2, "back"), ("-D", 3, None), ("-D", 4, None)]
    assert by_copies(table, frame(table, changes), key=["id"], progress=at(1)) == MergeResult(3, 1, 1, 1)
    assert content(table) == {(1, "x"), (2, "back"), *((i, "a") for i in range(5, 20, 2))}


def test_files_without_a_key_of_the_batch_are_left_alone(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    for i in range(4):
        append(table, [(i, "a")])
    by_copies(table, frame(table, [("+U", 2, "b")]), key=["id"], progress=at(0))
    done = actions(table, 5)
    assert sum("remove" in a for a in done) == 1 and sum("add" in a for a in done) == 1


def test_timestamps_of_spark_s_default(spark: SparkSession, lake: Path) -> None:
    """The year 9999 as INT96, which nanoseconds do not cover, and a key of that type."""
    far = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
    fields = [*FIELDS[:1], field("at", T.TimestampType()), field("v", T.StringType())]
    table = made(spark, lake / "t", fields=fields)
    with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        append(table, [(1, MOMENT, "a"), (2, far, "a"), (3, None, "a")])
    changes = [("+U", 1, MOMENT, "b"), ("+U", 2, far, "b"), ("+U", 3, None, "b")]
    done = by_copies(table, frame(table, changes), key=["id", "at"], progress=at(0))
    assert (done.inserted, done.updated) == (0, 3)
    assert table.delta().toDF().where("at = '9999-12-31 23:59:59.999999'").count() == 1
    assert by_spark(table, frame(table, changes), key=["id", "at"], progress=at(1)).updated == 0


def test_null_in_a_column_that_is_not_null_is_left_to_spark(spark: SparkSession, lake: Path) -> None:
    """The driver merges what has no NULL."""
    create_fed(spark, lake / "t", "id BIGINT NOT NULL, v STRING NOT NULL", more=VECTORS)
    table = claim(open_table(spark, DeltaTarget(path=str(lake / "t")), FIELDS), "p")
    first = frame(table, [("+U", 1, "a"), ("+U", 2, "a")])
    second, null = frame(table, [("+U", 1, "b"), ("-D", 2, None)]), frame(table, [("+U", 1, None)])
    reason = "a row of the batch has NULL in column 'v', which is NOT NULL"
    for batch, (merge, changes) in enumerate(((by_copies, first), (by_marks, second))):
        merge(table, changes, key=["id"], progress=at(batch))
        with pytest.raises(NotThisWay, match=f"^{reason}$"):
            merge(table, null, key=["id"], progress=at(batch + 1))
    assert content(table) == {(1, "b")}
    last = frame(table, [("+U", 1, "c")]).persist()
    last.count()
    done = Engines(MergeSettings()).merge(table, last, key=["id"], adds=1, progress=at(2))
    assert done.engine == "driver"


@pytest.mark.slow
def test_arrays_whose_items_are_never_null_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    fields = [*FIELDS, field("a", T.ArrayType(T.LongType(), containsNull=False))]
    builder = DeltaTable.create(spark).location(str(lake / "t")).addColumns(T.StructType(fields))
    builder.property("delta.enableChangeDataFeed", "true").execute()
    table = claim(open_table(spark, DeltaTarget(path=str(lake / "t")), fields), "p")
    with pytest.raises(NotThisWay, match=r"^column 'a' is ARRAY<BIGINT>$"):
        by_marks(table, frame(table, [("+U", 1, "a", [1])]), key=["id"], progress=at(0))


def test_a_clustered_table_keeps_its_clustering(spark: SparkSession, lake: Path) -> None:
    """Files have bounds of its columns, and OPTIMIZE finds in its files that it has clustered them."""
    place = DeltaTarget(
        path=str(lake / "t"), cluster_by=("id",), properties={"delta.checkpointInterval": "3"}
    )
    table = create_table(spark, place, FIELDS, pipeline="p")
    expected: dict[int, str] = {}
    for batch in range(6):
        merge = (by_marks, by_copies)[batch % 2]
        changes = [("+U", 7 * n % 40, str(batch)) for n in range(batch, batch + 20)]
        merge(table, frame(table, changes), key=["id"], progress=at(batch))
        expected |= {key: value for _, key, value in changes}
        if batch == 2:
            table.delta().optimize().executeCompaction()
    assert content(table) == set(expected.items())
    detail = table.delta().detail().select("clusteringColumns").first()
    assert detail is not None and detail[0] == ["id"]
    assert described(spark, place).clustered_by == ("id",)
    snapshot = open_snapshot(LocalStore(str(lake / "t")))
    assert all("id" in stats_of(add)["minValues"] for add in snapshot.files.values())
    marked = by_marks(table, frame(table, [("-D", 7, None)]), key=["id"], progress=at(6))
    assert marked.deleted == 1 and content(table) == {(k, v) for k, v in expected.items() if k != 7}


def test_a_table_clustered_by_a_column_without_bounds_is_left_to_spark(
    spark: SparkSession, lake: Path
) -> None:
    fields = [*FIELDS, field("x", T.DoubleType())]
    place = DeltaTarget(path=str(lake / "t"), cluster_by=("x",))
    table = create_table(spark, place, fields, pipeline="p")
    reason = "the table is clustered by 'x', of which the driver writes no bounds"
    with pytest.raises(NotThisWay, match=f"^{reason}$"):
        by_marks(table, frame(table, [("+U", 1, "a", 1.0)]), key=["id"], progress=at(0))
