"""Keys of a query that the types of the sink make equal, and times that a type cuts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.errors import TableError
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script
from tests.delta.tables import create_fed

SOURCE = (
    "CREATE TABLE t (id INT, ts TIMESTAMP({digits}), v DECIMAL(10, 2), g STRING, PRIMARY KEY (id) NOT ENFORCED) "
    "WITH ('connector' = 'delta', 'path' = 't');\n"
)


def create(spark: SparkSession, lake: Path, rows: str) -> None:
    create_fed(spark, f"{lake}/t", "id INT, ts TIMESTAMP_NTZ, v DECIMAL(10, 2), g STRING")
    add(spark, lake, rows)


def add(spark: SparkSession, lake: Path, rows: str) -> None:
    spark.sql(f"INSERT INTO delta.`{lake}/t` VALUES {rows}")


def run(
    spark: SparkSession,
    lake: Path,
    sinks: dict[str, tuple[str, str, str]],
    digits: int = 6,
    *,
    drop: bool = False,
) -> None:
    """`sinks` are columns, key and query by name."""
    text = "SET 'table.exec.sink.not-null-enforcer' = 'DROP';\n" * drop
    text += SOURCE.format(digits=digits) + "".join(
        f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}) NOT ENFORCED) "
        f"WITH ('connector' = 'delta', 'path' = '{name}');\nINSERT INTO {name} {query};\n"
        for name, (columns, key, query) in sinks.items()
    )
    run_script(spark, load_script(lake / "casts.sql", text=text))


def rows(spark: SparkSession, lake: Path, name: str) -> list[tuple[str, ...]]:
    frame = spark.read.format("delta").load(f"{lake}/{name}")
    return sorted(tuple(map(str, row)) for row in frame.collect())


DAY = "2020-01-01 00:00:00"


def test_times_are_cut_where_they_are_cast_written_and_read(spark: SparkSession, lake: Path) -> None:
    create(spark, lake, f"(1, '{DAY}.123456', 1, 'a'), (2, '{DAY}.123999', 2, 'b'), (3, '{DAY}.9', 3, NULL)")
    sinks = {
        "seconds": (
            "s TIMESTAMP(0), n BIGINT",
            "s",
            "SELECT CAST(ts AS TIMESTAMP(0)), COUNT(*) FROM t GROUP BY CAST(ts AS TIMESTAMP(0))",
        ),
        "written": (
            "id INT, ts TIMESTAMP(1), m TIMESTAMP(0)",
            "id",
            "SELECT id, MIN(ts), MAX(ts) FROM t GROUP BY id",
        ),
    }
    run(spark, lake, sinks)
    assert rows(spark, lake, "seconds") == [(DAY, "3")]
    first = f"{DAY}.100000"
    assert rows(spark, lake, "written") == [("1", first, DAY), ("2", first, DAY), ("3", f"{DAY}.900000", DAY)]

    # A Delta table whose rows have more digits than its DDL: of one group a row is added, and one is deleted.
    read = {"read": ("ts TIMESTAMP(3), n BIGINT", "ts", "SELECT ts, COUNT(*) FROM t GROUP BY ts")}
    run(spark, lake, read, digits=3)
    add(spark, lake, f"(4, '{DAY}.123001', 4, 'a')")
    run(spark, lake, read, digits=3)
    assert rows(spark, lake, "read") == [(f"{DAY}.123000", "3"), (f"{DAY}.900000", "1")]
    spark.sql(f"DELETE FROM delta.`{lake}/t` WHERE id IN (1, 3)")
    run(spark, lake, read, digits=3)
    assert rows(spark, lake, "read") == [(f"{DAY}.123000", "2")]


def test_a_number_that_the_decimal_of_the_sink_does_not_hold_is_null(spark: SparkSession, lake: Path) -> None:
    """As in Flink 2.0.2, which was asked."""
    create(spark, lake, f"(1, '{DAY}', 123456.78, 'a'), (2, '{DAY}', 1.5, 'b')")
    columns = "id INT, v DECIMAL(5, 2), total DECIMAL(5, 2)"
    items = ("id INT, vs ARRAY<DECIMAL(5, 2)>", "id", "SELECT id, ARRAY[v, v] FROM t")
    run(spark, lake, {"s": (columns, "id", "SELECT id, MAX(v), SUM(v) FROM t GROUP BY id"), "items": items})
    assert rows(spark, lake, "s") == [("1", "None", "None"), ("2", "1.50", "1.50")]
    half = "Decimal('1.50')"
    assert rows(spark, lake, "items") == [("1", "[None, None]"), ("2", f"[{half}, {half}]")]


@pytest.mark.parametrize(
    ("columns", "query", "key"),
    [
        ("k DECIMAL(10, 0), n BIGINT", "SELECT v, COUNT(*) FROM t GROUP BY v", "2"),
        ("k DECIMAL(10, 0), g STRING", "SELECT v, g FROM (SELECT DISTINCT v, 'x' AS g FROM t) AS d", "2"),
        ("k TIMESTAMP(3), n BIGINT", "SELECT ts, COUNT(*) FROM t GROUP BY ts", f"{DAY}.123000"),
    ],
)
def test_rows_to_which_a_cast_gives_one_key_are_refused(
    spark: SparkSession, lake: Path, columns: str, query: str, key: str
) -> None:
    create(spark, lake, f"(1, '{DAY}.123456', 1.6, 'a'), (2, '{DAY}', 3, 'b')")
    sink = {"s": (columns, "k", query)}
    run(spark, lake, sink)
    before = rows(spark, lake, "s")
    add(spark, lake, f"(3, '{DAY}.123999', 2.4, 'c')")
    with pytest.raises(TableError) as error:
        run(spark, lake, sink)
    assert str(error.value) == (
        f"INSERT s: 1 rows of the query have a key (k) that another row has, too, such as (k: {key}), so it is not "
        "known which one counts; nothing was written. To go on, declare the query's type in the sink, which has fewer "
        "digits; group the rows, or keep one of each key with ROW_NUMBER()"
    )
    assert rows(spark, lake, "s") == before


def test_such_rows_are_found_in_the_part_that_is_computed_again(spark: SparkSession, lake: Path) -> None:
    """The rows of one part have the key that two of them get by a cast."""
    create(spark, lake, f"(1, '{DAY}', 1.6, 'a')")
    ranked = "SELECT v, g, ROW_NUMBER() OVER (PARTITION BY v, g ORDER BY id) AS r FROM t"
    query = f"SELECT v, g FROM ({ranked}) AS d WHERE r = 1"
    sink = {"s": ("k DECIMAL(10, 0), g STRING", "k, g", query)}
    run(spark, lake, sink)
    add(spark, lake, f"(2, '{DAY}', 2.4, 'a')")
    with pytest.raises(TableError, match=r"such as \(k: 2, g: a\)"):
        run(spark, lake, sink)


def test_null_on_both_sides_of_a_full_join(spark: SparkSession, lake: Path) -> None:
    """Flink stops, too, unless it leaves such rows out."""
    create(spark, lake, f"(NULL, '{DAY}', 1, 'a'), (1, '{DAY}', 1, 'a')")
    query = "SELECT COALESCE(a.id, b.id), a.g, b.g FROM t AS a FULL JOIN t AS b ON a.id = b.id"
    sink = {"s": ("id INT, g STRING, h STRING", "id", query)}
    with pytest.raises(TableError) as error:
        run(spark, lake, sink)
    assert (
        "such as (id: None), so it is not known which one counts; nothing was written. To go on, leave out rows with "
        "NULL in the key, as Flink does with SET 'table.exec.sink.not-null-enforcer' = 'DROP'; group the rows"
    ) in str(error.value)
    run(
        spark,
        lake,
        {**sink, "n": ("g STRING, n BIGINT", "g", "SELECT g, COUNT(*) FROM t GROUP BY g")},
        drop=True,
    )
    assert rows(spark, lake, "s") == [("1", "a", "a")]
    assert rows(spark, lake, "n") == [("a", "2")]
    add(spark, lake, f"(2, '{DAY}', 1, NULL)")
    run(
        spark,
        lake,
        {**sink, "n": ("g STRING, n BIGINT", "g", "SELECT g, COUNT(*) FROM t GROUP BY g")},
        drop=True,
    )
    assert rows(spark, lake, "s") == [("1", "a", "a"), ("2", "None", "None")]
    assert rows(spark, lake, "n") == [("a", "2")]
