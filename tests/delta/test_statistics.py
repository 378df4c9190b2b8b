"""No reader passes over a file for what its statistics say, whoever wrote them, at the limits of every type."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND, col
from bridge.delta import merge_rs, statistics
from bridge.delta.merge import merge as by_spark
from bridge.delta.statistics import mended
from bridge.delta.table import Table
from bridge.errors import TableError
from tests.delta.tables import actions, at, content, frame, log_file, made

MICROS = 'Timestamp(Microsecond, Some("UTC"))'


@dataclass(frozen=True)
class Kind:
    """A column, its values at the limits, and one value in the words of both readers."""

    type: T.DataType
    arrow: pa.DataType
    limits: Sequence[Any]
    drawn: st.SearchStrategy[Any]
    spark: Callable[[Any], Column]
    rust: Callable[[Any], str]


def whole(bits: int, type: T.DataType, arrow: pa.DataType) -> Kind:
    end = 1 << (bits - 1)
    near = [p + d for n in range(0, bits - 1, 9) for p in (1 << n, -(1 << n)) for d in (-1, 0, 1)]
    limits = [-end, end - 1, 0, *((2**53 + 1, 10**18, -(10**18) - 1) if bits == 64 else ())]
    name = type.simpleString()
    return Kind(
        type,
        arrow,
        limits,
        st.sampled_from(near) | st.integers(-end, end - 1),
        lambda v: F.expr(f"CAST('{v}' AS {name})"),
        lambda v: f"CAST('{v}' AS {name})",
    )


def decimal(precision: int, scale: int) -> Kind:
    most = 10**precision - 1
    ints = [most, -most, 0, 1, -1, most - 1, 1234567890123456789 % (most + 1), (2**53 + 1) % (most + 1)]
    near = [
        s * (b**n + d)
        for b, top in ((2, int(precision * 3.3)), (10, precision))
        for n in range(top)
        for s in (1, -1)
        for d in (-1, 0, 1)
    ]
    told = (st.sampled_from(near) | st.integers(-most, most)).map(lambda v: Decimal(max(-most, min(most, v))))
    name = f"DECIMAL({precision},{scale})"
    return Kind(
        T.DecimalType(precision, scale),
        pa.decimal128(precision, scale),
        [_scaled(Decimal(v), scale) for v in ints],
        told.map(lambda v: _scaled(v, scale)),
        lambda v: F.expr(f"CAST('{v:f}' AS {name})"),
        lambda v: f"CAST('{v:f}' AS {name})",
    )


def _scaled(v: Decimal, scale: int) -> Decimal:
    return Decimal((v.is_signed(), v.as_tuple().digits, -scale))


def moment(
    type: T.DataType, arrow: pa.DataType, spark: str, rust: str, limits: Sequence[int], day: int
) -> Kind:
    """`day`: how long one is. Of the ten days that the calendar left out in 1582 Spark does not find its own."""
    gap = range(-141_437 * day, -141_427 * day)
    near = [v + d for v in limits for d in (-1, 1) if min(limits) <= v + d <= max(limits)]
    return Kind(
        type,
        arrow,
        limits,
        (st.sampled_from(near) | st.integers(min(limits), max(limits))).filter(lambda v: v not in gap),
        lambda v: F.expr(spark.format(v)),
        lambda v: f"arrow_cast({v}, '{rust}')",
    )


SECOND = 1_000_000
DAY = 86_400 * SECOND
YEAR_1, YEAR_10000 = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND
MOMENTS = [
    YEAR_1,
    -1,
    -SECOND + 1,
    -(2**53) - 1,
    0,
    999,
    1001,
    2**53 + 1,
    YEAR_10000 - 1,
    YEAR_10000,
    YEAR_10000 + 999_999,
    YEAR_10000 + 5000 * 365 * 86400 * SECOND,
]
DAYS = [-719_162, -1, 0, 1, -141_438, -141_427, 2_932_896, 2_932_897, 4_000_000]
ALPHABET = st.sampled_from("aé\u00ff\ud7ff\ue000\uffff\U00010000\U0001f600\U0010ffff'\\")
SHARED = "s" * 31
TEXTS = [
    "",
    "a" * 100,
    SHARED + "é1" * 20,
    SHARED + "é2" * 20,
    "é" * 60,
    "\U0001f600" * 40,
    "s" * 30 + "\U0001f600" * 9,
    "\U0010ffff" * 7 + "x" * 40,
    "\ud7ff" * 20,
    "\uffff" * 20,
    "'`\\" * 12,
    "\x7f" * 40,
]
BYTES = [b"", b"\x00", b"\x00" * 40, b"\xff" * 50, b"b" * 31 + b"\xff" * 9, b"b" * 40]

KINDS: dict[str, Kind] = {
    "tiny": whole(8, T.ByteType(), pa.int8()),
    "small": whole(16, T.ShortType(), pa.int16()),
    "int": whole(32, T.IntegerType(), pa.int32()),
    "big": whole(64, T.LongType(), pa.int64()),
    **{
        f"d{p}_{s}": decimal(p, s)
        for p, s in (
            (9, 2),
            (15, 0),
            (15, 15),
            (16, 0),
            (18, 2),
            (19, 0),
            (20, 0),
            (38, 0),
            (38, 18),
            (38, 38),
        )
    },
    "text": Kind(
        T.StringType(),
        pa.string(),
        TEXTS,
        st.text(ALPHABET, max_size=40).map(lambda v: SHARED[: len(v) % 32] + v),
        F.lit,
        lambda v: "'" + v.replace("'", "''") + "'",
    ),
    "bytes": Kind(
        T.BinaryType(),
        pa.binary(),
        BYTES,
        st.binary(max_size=50),
        lambda v: F.lit(bytearray(v)),
        lambda v: f"X'{v.hex()}'",
    ),
    "flag": Kind(T.BooleanType(), pa.bool_(), [True, False], st.booleans(), F.lit, lambda v: str(v).lower()),
    "day": moment(T.DateType(), pa.date32(), "date_from_unix_date({})", "Date32", DAYS, 1),
    "at": moment(T.TimestampType(), pa.timestamp("us", "UTC"), "timestamp_micros({}L)", MICROS, MOMENTS, DAY),
    "local": moment(
        T.TimestampNTZType(),
        pa.timestamp("us"),
        "CAST(timestamp_micros({}L) AS TIMESTAMP_NTZ)",
        "Timestamp(Microsecond, None)",
        MOMENTS,
        DAY,
    ),
    "float": Kind(
        T.DoubleType(),
        pa.float64(),
        [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 2.0**53 + 2, 0.1],
        st.floats(),
        lambda v: F.expr(f"CAST('{v}' AS DOUBLE)"),
        lambda v: f"arrow_cast('{v}', 'Float64')",
    ),
}
FIELDS = [T.StructField("id", T.LongType()), *(T.StructField(n, k.type) for n, k in KINDS.items())]
FIELDS.append(T.StructField("v", T.LongType()))
KEY = [n for n in KINDS if n != "float"]
ROWS = max(len(kind.limits) for kind in KINDS.values())
ARROW = pa.schema(
    [("id", pa.int64()), *((n, k.arrow) for n, k in KINDS.items()), ("v", pa.int64()), (KIND, pa.string())]
)

Row = dict[str, Any]


LIMITS: list[Row] = [
    {"id": i, **{n: k.limits[i % len(k.limits)] for n, k in KINDS.items()}} for i in range(ROWS)
]


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    return [{"id": i, **{n: draw(k.drawn) for n, k in KINDS.items()}} for i in range(ROWS)]


def arrow(rows: Sequence[Row], v: int) -> pa.Table:
    return pa.Table.from_pylist([{**row, "v": v, KIND: "+U"} for row in rows], ARROW)


def rows_of(spark: SparkSession, rows: Sequence[Row], v: int) -> DataFrame:
    shape = T.StructType([*FIELDS, T.StructField(KIND, T.StringType())])
    held = spark.createDataFrame(arrow(rows, v), shape).persist()
    held.count()
    return held


def seen_by_spark(table: Table, rows: Sequence[Row], names: Sequence[str]) -> set[int]:
    """The ids of rows that a filter on all their values finds. One scan for all: a file of one row is read only where
    its statistics allow all values of that row."""
    same = (reduce(Column.__and__, (col(n) == KINDS[n].spark(row[n]) for n in names)) for row in rows)
    return {row[0] for row in table.delta().toDF().where(reduce(Column.__or__, same)).select("id").collect()}


def seen_by_rust(table: Table, rows: Sequence[Row], names: Sequence[str]) -> set[int]:
    queries = QueryBuilder().register("t", DeltaTable(str(table.target.path)))
    told = (" AND ".join(f'"{n}" = {KINDS[n].rust(row[n])}' for n in names) for row in rows)
    found = (pa.table(queries.execute(f"SELECT id FROM t WHERE {text}").read_all()) for text in told)
    return {id for ids in found for id in ids["id"].to_pylist()}


def missed(
    seen: Callable[[Table, Sequence[Row], Sequence[str]], set[int]], table: Table, rows: Sequence[Row]
) -> list[tuple[str, Any]]:
    """The column and value of each row that is not found, by a look at every column of these alone."""
    lost = [row for row in rows if row["id"] not in seen(table, rows, KEY)]
    return [(n, row[n]) for row in lost[:2] for n in KEY if row["id"] not in seen(table, [row], [n])] or [
        ("all", row["id"]) for row in lost
    ]


def no_row_is_missed(spark: SparkSession, place: Path, rows: Sequence[Row]) -> None:
    ours, theirs = (made(spark, place / name, fields=FIELDS) for name in ("delta-rs", "spark"))
    for number, row in enumerate(rows):
        target = DeltaTable(str(ours.target.path))
        merge_rs._committed(target, arrow([row], 0), ours, ["id"], at(number))
    said = rows_of(spark, rows, 0)
    plain = said.drop(KIND).repartitionByRange(len(rows), "id")
    plain.write.format("delta").mode("append").save(theirs.target.path)
    for table in (ours, theirs):
        assert table.delta().toDF().count() == len(rows)
        for seen in (seen_by_spark, seen_by_rust):
            assert not missed(seen, table, rows), f"{seen.__name__} in files of {table}"
        nan = table.delta().toDF().where("float = CAST('NaN' AS DOUBLE)").count()
        assert nan == sum(math.isnan(row["float"]) for row in rows)
    for table, engines in ((ours, (by_spark, merge_rs.merge)), (theirs, (merge_rs.merge, by_spark))):
        for v, merge in enumerate(engines, 1):
            said = rows_of(spark, rows, v)
            done = merge(table, said, key=KEY, progress=at(len(rows) + v), persisted=True)
            assert (done.inserted, done.updated) == (0, len(rows)), f"{merge} into {table}"
        assert table.delta().toDF().count() == len(rows)


def test_values_at_the_limits_are_found_by_every_reader(spark: SparkSession, lake: Path) -> None:
    no_row_is_missed(spark, lake, LIMITS)


@pytest.mark.slow
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # an example takes seconds, and `missed` names the column
)
@given(rows=tables())
def test_many_values_are_found_by_every_reader(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    no_row_is_missed(spark, tmp_path_factory.mktemp("many"), rows)


WRONG = 1234567890123456789
"""As a double it is 1234567890123456768."""
DECIMALS = [T.StructField("k", T.DecimalType(38, 0)), T.StructField("v", T.StringType())]


@pytest.fixture
def old(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table as older bridges left it: two keys in files of delta-rs, a third one deleted by a deletion vector."""
    import deltalake

    monkeypatch.setattr(merge_rs, "writing", lambda fields: deltalake.WriterProperties(compression="SNAPPY"))
    table = made(spark, lake / "old", fields=DECIMALS)
    rows = [("+U", Decimal(WRONG + i), "a") for i in (0, 1, 2)]
    merge_rs.merge(table, frame(table, rows[:1]), key=["k"], progress=at(0))
    merge_rs.merge(table, frame(table, rows[1:]), key=["k"], progress=at(1))
    monkeypatch.undo()
    table.delta().delete("cast(k as string) = '1234567890123456791'")
    return table


def test_wrong_statistics_are_taken_out_and_no_key_is_doubled(spark: SparkSession, old: Table) -> None:
    one, two = Decimal(WRONG), Decimal(WRONG + 1)
    asked = old.delta().toDF().where(col("k").isin(one, two))
    assert asked.count() < 2, "the fault is not there"
    told = mended(old)
    assert told is not None and "2 files had wrong statistics of k, written by delta-rs" in told
    assert mended(old) is None
    assert old.delta().toDF().where(col("k").isin(one, two)).count() == 2
    assert content(old) == {(one, "a"), (two, "a")}, "a deleted row stays deleted"
    version = old.delta().history(1).collect()[0]["version"]
    (info, *adds) = actions(old, version)
    assert info["commitInfo"]["operation"] == "COMPUTE STATS"
    assert [sorted(json.loads(a["add"]["stats"])["minValues"]) for a in adds] == [["v"], ["v"]]
    assert not any(a["add"]["dataChange"] for a in adds)
    feed = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", version)
    assert feed.load(str(old.target.path)).isEmpty()
    for batch, merge in ((2, by_spark), (3, merge_rs.merge)):
        said = frame(old, [("+U", one, str(batch)), ("+U", two, str(batch))])
        assert merge(old, said, key=["k"], progress=at(batch)).updated == 2
    assert content(old) == {(one, "3"), (two, "3")}


def test_a_file_that_is_removed_meanwhile_does_not_come_back(
    old: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, waiting = statistics._without, [f"cast(k as string) = '{WRONG}'"]

    def without(text: str, columns: Collection[str]) -> str:
        while waiting:
            old.delta().delete(waiting.pop())
        return real(text, columns)

    monkeypatch.setattr(statistics, "_without", without)
    told = mended(old)
    assert told is not None and "1 files had wrong statistics" in told
    assert content(old) == {(Decimal(WRONG + 1), "a")}


def test_a_table_without_wide_decimals_is_not_looked_at(spark: SparkSession, lake: Path) -> None:
    fields = [T.StructField("k", T.DecimalType(15, 5)), T.StructField("v", T.StringType())]
    table = made(spark, lake / "t", fields=fields)
    log_file(table, 0).unlink()
    assert mended(table) is None


def test_a_delta_that_cannot_mend_says_so(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", fields=DECIMALS)
    nowhere: dict[str, Any] = {"location": 5}
    with pytest.raises(TableError, match="has no way to look for them"):
        mended(replace(table, **nowhere))


@pytest.mark.parametrize("type", [T.StringType(), T.BinaryType()], ids=["string", "binary"])
def test_commits_do_not_grow_with_the_values(spark: SparkSession, lake: Path, type: T.DataType) -> None:
    table = made(spark, lake / "t", fields=[T.StructField("k", type), T.StructField("v", T.StringType())])
    for batch, (first, second) in enumerate((("a", "b"), ("b", "c"))):
        keys = [
            c * 100_000 if isinstance(type, T.StringType) else c.encode() * 100_000 for c in (first, second)
        ]
        said = frame(table, [("+U", key, str(batch) * 100_000) for key in keys])
        merge_rs.merge(table, said, key=["k"], progress=at(batch))
        assert log_file(table, batch + 1).stat().st_size < 5000
    assert table.delta().toDF().count() == 3
