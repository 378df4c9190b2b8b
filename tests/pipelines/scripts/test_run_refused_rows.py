"""Rows of an INSERT that its Delta table refuses or would change: the run stops, names what refuses them, and shows no
value."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from bridge.errors import TableError
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script

SCRIPT = """
SET 'bridge.state' = 'state';
CREATE TABLE source (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'source');
CREATE TABLE sink (id BIGINT, name STRING, key) WITH ('connector' = 'delta', 'path' = 'sink');
INSERT INTO sink SELECT id, name FROM source;
"""
KEYS = {"keyed": "PRIMARY KEY (id) NOT ENFORCED", "by the column": "PRIMARY KEY (id, name) NOT ENFORCED"}
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def create(spark: SparkSession, lake: Path, name: str = "name STRING", parts: str = "") -> None:
    for table, column, by in (("source", "name STRING", ""), ("sink", name, parts)):
        spark.sql(
            f"CREATE TABLE delta.`{lake}/{table}` (id BIGINT, {column}) USING delta {by} "
            "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        )


def inserted(spark: SparkSession, lake: Path, key: str, values: str) -> None:
    """Runs the script after more rows of its source."""
    spark.sql(f"INSERT INTO delta.`{lake}/source` VALUES {values}")
    text = SCRIPT.replace(", key)", f", {key})") if key else SCRIPT.replace(", key)", ")")
    if not key:
        text = text.replace(", PRIMARY KEY (id) NOT ENFORCED", "")
    elif "name" in key:
        text = text.replace(KEYS["keyed"], key)
    (lake / "script.sql").write_text(text)
    run_script(spark, load_script(lake / "script.sql"))


def rows(spark: SparkSession, lake: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.read.format("delta").load(f"{lake}/sink").collect())


@pytest.mark.slow
@pytest.mark.parametrize("key", ["keyed", ""], ids=["keyed", "appended"])
@pytest.mark.parametrize("constraint", ["check", "not null", "length"])
def test_a_constraint_is_named(spark: SparkSession, lake: Path, key: str, constraint: str) -> None:
    column, named, bad = {
        "check": ("name STRING", "breaks the constraint short; nothing", "'secret'"),
        "not null": ("name STRING NOT NULL", "breaks NOT NULL of column name; nothing", "NULL"),
        "length": (
            "name VARCHAR(3)",
            r"a CHAR or VARCHAR column: .*length\(name\) <= 3\)\); nothing",
            "'secret'",
        ),
    }[constraint]
    create(spark, lake, column)
    if constraint == "check":
        spark.sql(f"ALTER TABLE delta.`{lake}/sink` ADD CONSTRAINT short CHECK (length(name) < 4)")
    inserted(spark, lake, KEYS.get(key, ""), "(1, 'a')")
    version = DeltaTable.forPath(spark, f"{lake}/sink").history(1).collect()[0]["version"]
    with pytest.raises(TableError, match=named) as stopped:
        inserted(spark, lake, KEYS.get(key, ""), f"(2, {bad}), (3, 'c')")
    assert "secret" not in str(stopped.value) and str(lake / "sink") in str(stopped.value)
    assert rows(spark, lake) == [(1, "a")]
    assert DeltaTable.forPath(spark, f"{lake}/sink").history(1).collect()[0]["version"] == version


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("keyed", ""),
        pytest.param("", "", marks=pytest.mark.slow),
        pytest.param("by the column", "", marks=pytest.mark.slow),
        pytest.param("", NULL_FOLDER, marks=pytest.mark.slow),
        pytest.param("by the column", NULL_FOLDER, marks=pytest.mark.slow),
    ],
)
def test_a_value_that_a_partition_column_does_not_hold(
    spark: SparkSession, lake: Path, key: str, value: str
) -> None:
    create(spark, lake, parts="PARTITIONED BY (name)")
    inserted(spark, lake, KEYS.get(key, ""), "(1, 'a'), (2, 'é')")
    with pytest.raises(TableError) as stopped:
        inserted(spark, lake, KEYS.get(key, ""), f"(3, 'c'), (4, '{value}')")
    why = f"where {NULL_FOLDER} is NULL" if value else "where Delta takes an empty STRING for NULL"
    assert (
        f"a row was not written: column 'name' is a partition column of the table, {why}; send another value"
        in str(stopped.value)
    )
    assert rows(spark, lake) == [(1, "a"), (2, "é")]


@pytest.mark.slow
def test_a_char_is_no_key(spark: SparkSession, lake: Path) -> None:
    """Delta fills its values with spaces: each refresh would add the row of a shorter key once more."""
    create(spark, lake, "name CHAR(3)")
    with pytest.raises(
        TableError, match="column 'name' of the PRIMARY KEY is a CHAR, to whose shorter values"
    ):
        inserted(spark, lake, KEYS["by the column"], "(1, 'a')")
