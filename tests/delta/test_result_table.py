"""The table of results: created, appended to, extended by columns, and refused where it is another table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.definition import DeltaTarget
from bridge.delta.result_table import QUALITY_COLUMNS, QUALITY_RESULTS
from bridge.errors import TableError

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
ROW = {"run_id": "r1", "pipeline": "orders", "started": STARTED, "columns": ["a", "b"], "row_count": 7}


@pytest.fixture
def target(lake: Path) -> DeltaTarget:
    return DeltaTarget(path=str(lake / "orders_quality"))


def test_a_run_is_one_commit_and_one_file(spark: SparkSession, target: DeltaTarget) -> None:
    assert QUALITY_RESULTS.stored(spark, target) is None
    QUALITY_RESULTS.append(spark, target, [ROW, {**ROW, "number": 2}])
    QUALITY_RESULTS.append(spark, target, [{**ROW, "run_id": "r2"}])
    frame = QUALITY_RESULTS.stored(spark, target)
    assert frame is not None and frame.columns == list(QUALITY_COLUMNS)
    stored = [(r["run_id"], r["number"], r["started"].astimezone(timezone.utc)) for r in frame.collect()]
    assert sorted(stored, key=str) == [("r1", 2, STARTED), ("r1", None, STARTED), ("r2", None, STARTED)]
    history = spark.sql(f"DESCRIBE HISTORY delta.`{target.path}`").orderBy("version").collect()
    assert [(h["operation"], h["operationMetrics"].get("numFiles")) for h in history] == [
        ("CREATE TABLE", None),
        ("WRITE", "1"),
        ("WRITE", "1"),
    ]


def test_a_table_of_an_older_bridge_grows_and_is_read_before_it_has(
    spark: SparkSession, target: DeltaTarget
) -> None:
    old = spark.createDataFrame([("r0", "orders")], "run_id string, pipeline string")
    old.write.format("delta").save(str(target.path))
    frame = QUALITY_RESULTS.stored(spark, target)
    assert frame is not None
    assert [(r["run_id"], r["lag"], r["columns"]) for r in frame.collect()] == [("r0", None, None)]
    QUALITY_RESULTS.append(spark, target, [ROW])
    assert set(QUALITY_COLUMNS) == set(spark.read.format("delta").load(str(target.path)).columns)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("run_id int", "column 'run_id' is int, in a table of quality results it is string"),
        ("id bigint", r"is not a table of quality results \(it has no column 'run_id'\)"),
    ],
)
def test_another_table_is_refused(spark: SparkSession, target: DeltaTarget, columns: str, words: str) -> None:
    spark.createDataFrame([], columns).write.format("delta").save(str(target.path))
    with pytest.raises(TableError, match=words):
        QUALITY_RESULTS.stored(spark, target)


def test_a_table_of_the_catalog_and_of_a_newer_bridge(
    spark: SparkSession, unique: Callable[[str], str]
) -> None:
    target = DeltaTarget(table=unique("results").replace("-", "_"))
    QUALITY_RESULTS.append(spark, target, [ROW])
    comments = {f.name: f.metadata.get("comment") for f in spark.table(str(target.table)).schema}
    assert comments == {name: meaning for name, (_, meaning) in QUALITY_COLUMNS.items()}
    spark.sql(f"ALTER TABLE {target.table} ADD COLUMN (mood string)")
    QUALITY_RESULTS.append(spark, target, [ROW])
    assert "mood" in spark.table(str(target.table)).columns
    frame = QUALITY_RESULTS.stored(spark, target)
    assert frame is not None and frame.count() == 2 and "mood" not in frame.columns
    spark.sql(f"DROP TABLE {target.table}")


def test_a_place_that_takes_nothing_is_loud(spark: SparkSession, target: DeltaTarget) -> None:
    QUALITY_RESULTS.append(spark, target, [ROW])
    spark.sql(f"ALTER TABLE delta.`{target.path}` ADD CONSTRAINT long CHECK (seconds IS NULL OR seconds > 1)")
    with pytest.raises(TableError, match="breaks the constraint long; nothing"):
        QUALITY_RESULTS.append(spark, target, [{**ROW, "seconds": 0.5}])


def test_a_place_that_cannot_be_is_loud(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(TableError, match="quality results cannot be written there"):
        QUALITY_RESULTS.append(spark, DeltaTarget(path=str(tmp_path / "file" / "orders_quality")), [ROW])


def test_another_table_is_left_alone(spark: SparkSession, target: DeltaTarget) -> None:
    spark.createDataFrame([], "run_id int, pipeline date").write.format("delta").save(str(target.path))
    with pytest.raises(TableError, match="'run_id' is int, in a table of quality results it is string"):
        QUALITY_RESULTS.append(spark, target, [ROW])
