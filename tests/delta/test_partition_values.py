"""Tables that Spark has partitioned: no engine in the driver writes into them, and no value becomes another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND
from bridge.definition import DeltaTarget, Engine, MergeSettings
from bridge.delta.append import append_batch
from bridge.delta.append_files import FileAppends
from bridge.delta.engine_choice import Engines
from bridge.delta.optimize_vacuum import optimize
from bridge.delta.table import Table, claim, open_table
from bridge.errors import TableError
from bridge.ways import NotThisWay
from tests.delta.tables import VECTORS, at, by_marks, by_spark, create_fed

VALUES = {
    "s STRING": (
        "NULL",
        "'%'",
        "'%2F'",
        "'a/b'",
        "'a=b'",
        "' '",
        "'a\\'b'",
        "'\"'",
        "'é'",
        "'日本'",
        "'😀'",
        "'\\n'",
        "'+?#:'",
        "'\\\\'",
        "'{}[]|^~'",
        "'..'",
    ),
    "b BINARY": ("NULL", "X'01'", "X'41'", "X'C3A9'"),
    "d DOUBLE": (
        "NULL",
        "1e300D",
        "-1.7976931348623157E308D",
        "4.9E-324D",
        "double('NaN')",
        "double('Infinity')",
    ),
    "f FLOAT": ("NULL", "float(1e30)", "1.4E-45F", "float('-Infinity')"),
    "n DECIMAL(38,10)": (
        "NULL",
        "cast('9999999999999999999999999999.9999999999' as decimal(38,10))",
        "cast('-0.0000000001' as decimal(38,10))",
    ),
    "l BIGINT": ("NULL", "9223372036854775807L", "-9223372036854775808L"),
    "i INT": ("NULL", "2147483647", "-2147483648"),
    "h SMALLINT": ("NULL", "32767S", "-32768S"),
    "y TINYINT": ("NULL", "127Y", "-128Y"),
    "o BOOLEAN": ("NULL", "true", "false"),
    "t DATE": ("NULL", "date'0001-01-01'", "date'9999-12-31'"),
    "z TIMESTAMP": ("NULL", "timestamp'0001-01-01 00:00:00.000001'", "timestamp'9999-12-31 23:59:59.999999'"),
    "w TIMESTAMP_NTZ": (
        "NULL",
        "timestamp_ntz'0001-01-01 00:00:00.000001'",
        "timestamp_ntz'9999-12-31 00:00:00'",
    ),
}
NAMES = [column.split()[0] for column in VALUES]
KEY = ["id", "s", "b", "l", "t", "z"]
_EMPTY = (
    "column 's' is a partition column of the table, where Delta takes an empty STRING for NULL; send another value, or "
    "let the table have no partitions (CLUSTER BY keeps every value)"
)


def rows(spark: SparkSession, v: str) -> DataFrame:
    """A row for each of the most values of a type; shorter lists begin anew."""
    most = max(map(len, VALUES.values()))
    lines = (
        f"({n}L, '{v}', {', '.join(values[n % len(values)] for values in VALUES.values())})"
        for n in range(most)
    )
    return spark.sql(f"SELECT * FROM VALUES {', '.join(lines)} AS (id, v, {', '.join(NAMES)})")


def changes(frame: DataFrame, kind: str) -> DataFrame:
    return frame.withColumn(KIND, F.lit(kind)).persist()


def partitioned(spark: SparkSession, folder: Path, columns: str, by: str) -> Table:
    create_fed(spark, folder, columns, f"PARTITIONED BY ({by})", VECTORS)
    fields = T._parse_datatype_string(columns).fields  # type: ignore[attr-defined]
    return claim(open_table(spark, DeltaTarget(path=str(folder)), fields), "p")


def shown(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows as texts, which tell NaN, and times beyond those of Python."""
    texts = [F.hex("b") if name == "b" else F.col(name).cast("string") for name in ("id", "v", *NAMES)]
    return sorted((tuple(row) for row in frame.select(*texts).collect()), key=str)


def test_rows_of_all_partition_types_are_merged_by_spark_alone(spark: SparkSession, lake: Path) -> None:
    table = partitioned(spark, lake / "t", f"id BIGINT, v STRING, {', '.join(VALUES)}", ", ".join(NAMES))
    assert table.partitioned_by == tuple(NAMES)
    reason = f"the table is partitioned by {', '.join(NAMES)}"
    with pytest.raises(NotThisWay) as caught:
        by_marks(table, changes(rows(spark, "a"), "+U"), key=KEY, progress=at(0))
    assert str(caught.value) == reason
    with pytest.raises(NotThisWay) as caught:
        FileAppends(table)
    assert str(caught.value) == reason
    with pytest.raises(TableError, match=f"`merge.engine: driver` is not possible, as {reason}; leave"):
        Engines(MergeSettings(Engine.DRIVER)).merge(
            table, changes(rows(spark, "a"), "+U"), key=KEY, adds=1, progress=at(0)
        )
    engines, wanted = Engines(MergeSettings()), rows(spark, "a")
    done = engines.merge(table, changes(wanted, "+U"), key=KEY, adds=wanted.count(), progress=at(0))
    assert (done.engine, done.inserted) == (
        f"spark ({reason}; the table was empty, so nothing was merged)",
        wanted.count(),
    )
    assert shown(table.delta().toDF()) == shown(wanted)
    optimize(table)
    done = engines.merge(table, changes(rows(spark, "b"), "+U"), key=KEY, adds=wanted.count(), progress=at(1))
    assert (done.updated, done.inserted) == (wanted.count(), 0)
    assert shown(table.delta().toDF()) == shown(rows(spark, "b"))
    gone = rows(spark, "b").where("id % 2 = 0")
    done = engines.merge(table, changes(gone, "-D"), key=KEY, adds=0, progress=at(2))
    assert done.deleted == gone.count()
    assert shown(table.delta().toDF()) == shown(rows(spark, "b").where("id % 2 = 1"))


def test_a_value_that_a_partition_column_does_not_hold_is_never_written(
    spark: SparkSession, lake: Path
) -> None:
    table = partitioned(spark, lake / "t", "id BIGINT, s STRING, b BINARY", "s, b")
    for number, (value, reason) in enumerate(
        (
            ("'', X'41'", _EMPTY),
            ("'x', X''", _EMPTY.replace("'s'", "'b'").replace("STRING", "BINARY")),
            (
                "'__HIVE_DEFAULT_PARTITION__', X'41'",
                "column 's' is a partition column of the table, where __HIVE_DEFAULT_PARTITION__ is NULL",
            ),
            (
                "'x', X'00'",
                "column 'b' is a partition column of the table, where a BINARY with a zero byte has no folder",
            ),
            (
                "'x', X'FF'",
                "column 'b' is a partition column of the table, where Delta keeps only a BINARY that is",
            ),
        )
    ):
        frame = spark.sql(f"SELECT 1L AS id, s, b FROM VALUES ({value}) AS (s, b)")
        with pytest.raises(TableError) as caught:
            by_spark(table, changes(frame, "+U"), key=["id", "s"], progress=at(number))
        assert str(caught.value).startswith(f"table {table}: a row was not written: {reason}")
        with pytest.raises(TableError) as caught:
            append_batch(replace(table, properties={}), frame, rows=1, progress=at(number))
        assert str(caught.value).startswith(f"table {table}: a row was not written: {reason}")
    nulls = spark.sql("SELECT 1L AS id, CAST(NULL AS STRING) AS s, CAST(NULL AS BINARY) AS b")
    by_spark(table, changes(nulls, "+U"), key=["id", "s"], progress=at(7))
    empty = spark.sql("SELECT 1L AS id, '' AS s, CAST(NULL AS BINARY) AS b")
    # No row has the empty text, so that its deletion finds none: not the one with NULL.
    done = by_spark(table, changes(empty, "-D"), key=["id", "s"], progress=at(8))
    assert (done.deleted, table.delta().toDF().count()) == (0, 1)
    done = by_spark(table, changes(nulls, "-D"), key=["id", "s"], progress=at(9))
    assert (done.deleted, table.delta().toDF().count()) == (1, 0)
