"""Rows that Arrow reads from the files of a log are those that Spark reads, or Spark is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta import appended_files, logged_files, rows_in_driver
from bridge.delta.logged_files import NamedFiles
from bridge.delta.rows_in_driver import is_simple
from bridge.delta.table import Table, open_table
from tests.delta.drawn_commits import MOMENT, WIDE, add_by_hand, sql
from tests.delta.tables import FIELDS, append, content, made
from tests.refusals import optional

read_columns = optional(rows_in_driver.read_columns)

files_at = optional(appended_files.files_at)

SIMPLE = (
    *(f for f in WIDE if f.name not in ("raw", "n")),
    T.StructField("b", T.BooleanType()),
    T.StructField("y", T.ByteType()),
    T.StructField("h", T.ShortType()),
    T.StructField("dotted.name", T.IntegerType()),
)
ROWS: list[tuple[Any, ...]] = [
    (1, "é", Decimal("-1.5"), MOMENT, MOMENT, MOMENT.date(), True, -128, 32767, 7),
    (None,) * len(SIMPLE),
    (-(2**63), "\U0001f600", Decimal("9" * 29), datetime(9999, 12, 31), None, None, False, 127, -32768, None),
]


def found(files: NamedFiles | None, columns: Sequence[str], **more: Any) -> pa.Table:
    assert files is not None
    rows = read_columns(files, columns, **{"most_rows": 100, **more})
    assert rows is not None
    return rows


def plain(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Times without a zone, as Spark's rows have them."""
    return Counter(
        tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in row.values())
        for row in rows.to_pylist()
    )


def test_rows_of_all_simple_types(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=SIMPLE, rows=ROWS)
    append(table, ROWS[:1])
    assert all(is_simple(field.dataType) for field in SIMPLE)
    rows = found(files_at(table, None), table.columns)
    assert plain(rows) == Counter([*ROWS, ROWS[0]])
    kinds = [pa.int64(), pa.string(), pa.decimal128(38, 9), pa.timestamp("us", "UTC"), pa.timestamp("us")]
    kinds += [pa.date32(), pa.bool_(), pa.int8(), pa.int16(), pa.int32()]
    assert rows.schema.types == kinds
    chosen = found(files_at(table, 1), ["v", "id"], coded=["v", "id"])
    assert chosen.schema.types == [pa.dictionary(pa.int32(), pa.string()), pa.int64()]
    assert plain(chosen) == Counter((row[1], row[0]) for row in ROWS)


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_bytes_of_writers_with_arrow(spark: SparkSession, lake: Path, type: pa.DataType) -> None:
    raw = (T.StructField("raw", T.BinaryType()), T.StructField("f", T.DoubleType()))
    table = made(spark, lake / "t", fields=raw)
    file = lake / "t" / "own.parquet"
    pq.write_table(pa.table({"raw": pa.array([b"\0\xff", None], type), "f": [float("inf"), -0.0]}), file)
    add_by_hand(table, 1, file.name, file.stat().st_size)
    given = found(files_at(table, None), ["f", "raw"])
    assert given.schema.types == [pa.float64(), pa.binary()]
    assert given.to_pylist() == [{"f": float("inf"), "raw": b"\0\xff"}, {"f": -0.0, "raw": None}]
    assert not any(is_simple(field.dataType) for field in raw)


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_files_of_writers_with_arrow(spark: SparkSession, lake: Path, text: pa.DataType) -> None:
    """The bridge's own, and delta-rs; Spark's files are in the test above."""
    table = made(spark, lake / "t", fields=SIMPLE)
    file = lake / "t" / "own.parquet"
    zoned = [v.replace(tzinfo=timezone.utc) for v in (MOMENT,)]
    rows = pa.table(
        {
            "id": [1],
            "v": pa.array(["a"], text),
            "d": pa.array([Decimal(1)], pa.decimal128(38, 9)),
            "at": pa.array(zoned, pa.timestamp("us", "UTC")),
            "ntz": pa.array([MOMENT], pa.timestamp("us")),
        }
    )
    pq.write_table(rows, file)
    add_by_hand(table, 1, file.name, file.stat().st_size)
    assert content(table) == {(1, "a", Decimal(1), MOMENT, MOMENT, *[None] * 5)}
    for coded in ([], ["v"]):
        given = found(files_at(table, None), table.columns, coded=coded)
        expected = pa.dictionary(pa.int32(), pa.string()) if coded else pa.string()
        assert given.schema.field("v").type == expected and plain(given) == Counter(content(table))


def test_a_file_that_is_older_than_a_column(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    sql(spark, table, "ALTER TABLE {t} ADD COLUMNS (s STRING, n DECIMAL(9, 2))")
    sql(spark, table, "INSERT INTO {t} VALUES (2, 'b', 'x', 3)")
    newer = (T.StructField("s", T.StringType()), T.StructField("n", T.DecimalType(9, 2)))
    table = open_table(spark, table.target, (*FIELDS, *newer))
    rows = found(files_at(table, None), ["id", "s", "n"], coded=["s"])
    assert plain(rows) == Counter([(1, None, None), (2, "x", Decimal(3))])


def test_rows_that_are_deleted(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(n, str(n % 3)) for n in range(10)])
    table.delta().delete("id IN (0, 4, 9)")
    files = files_at(table, None)
    assert files is not None and any(add.get("deletionVector") for add in files.adds)
    assert plain(found(files, table.columns, coded=["v"])) == Counter(content(table))
    table.delta().delete()
    assert found(files_at(table, None), ["v"]).num_rows == 0


def test_a_table_without_files(spark: SparkSession, lake: Path) -> None:
    files = files_at(made(spark, lake / "t"), None)
    rows = found(files, ["v", "id"], coded=["v"])
    assert rows.num_rows == 0 and rows.column_names == ["v", "id"]


def test_how_many_rows_may_come(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a"), (2, "b")])
    append(table, [(3, "c")])
    files = files_at(table, None)
    assert files is not None and files.bytes == sum(f.stat().st_size for f in (lake / "t").glob("*.parquet"))
    assert found(files, ["id"], most_rows=3).num_rows == 3
    assert read_columns(files, ["id"], most_rows=2) is None


def _gone(file: Path) -> None:
    file.unlink()


def _torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _old_calendar(file: Path) -> None:
    rows = pq.read_table(file)
    pq.write_table(rows.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}), file)


def _as(**types: pa.DataType) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        rows = pq.read_table(file)
        for name, type in types.items():
            rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(type, safe=False))
        pq.write_table(rows, file)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _gone,
        _torn,
        _old_calendar,
        _as(id=pa.int32()),
        _as(v=pa.binary()),
        _as(d=pa.decimal128(20, 2)),
        _as(at=pa.timestamp("ms", "UTC")),
        _as(at=pa.timestamp("us")),
        _as(ntz=pa.timestamp("us", "UTC")),
        _as(y=pa.int32()),
    ],
)
def test_what_spark_reads_by_its_own_rules(
    spark: SparkSession, lake: Path, change: Callable[[Path], None]
) -> None:
    table = made(spark, lake / "t", fields=SIMPLE, rows=ROWS[:1])
    files = files_at(table, None)
    assert plain(found(files, table.columns)) == Counter(ROWS[:1])
    (file,) = (lake / "t").glob("*.parquet")
    change(file)
    assert files is not None
    assert read_columns(files, table.columns, most_rows=100) is None
    assert read_columns(files, table.columns, most_rows=100, coded=["v"]) is None


def test_types_that_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=WIDE)
    files = files_at(table, None)
    assert files is not None
    left = [name for name in table.columns if read_columns(files, [name], most_rows=1) is None]
    assert left == ["n"]
    others = (T.DoubleType(), T.FloatType(), T.StringType("UTF8_LCASE"), T.CharType(2), T.NullType())
    assert not any(map(is_simple, others))


def test_many_files_are_left_to_spark(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table: Table = made(spark, lake / "t", rows=[(1, "a")])
    monkeypatch.setattr(logged_files, "MOST_FILES", 0)
    assert files_at(table, None) is None
