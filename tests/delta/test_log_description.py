"""What the log's files say is what Delta says; where that is not certain, Delta is asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.log_description import TableDescription, describe, newest_commits, newest_version
from bridge.delta.row_constraints import row_constraints
from bridge.delta.table import open_table
from tests.delta.tables import FIELDS, append, commit_by_hand, log_file, made, target

WIDE = (
    *FIELDS,
    T.StructField("d", T.DecimalType(38, 9)),
    T.StructField("at", T.TimestampType()),
    T.StructField("ntz", T.TimestampNTZType()),
    T.StructField(
        "n", T.StructType([T.StructField("a", T.ArrayType(T.MapType(T.StringType(), T.DateType())))])
    ),
)


def asked(spark: SparkSession, place: Path) -> TableDescription:
    """What Delta answers."""
    table = DeltaTable.forPath(spark, str(place))
    detail = table.detail().withColumn("ms", F.unix_millis("createdAt")).collect()[0]
    shape = table.toDF().schema
    about = (detail["id"], detail["properties"], detail["ms"], detail["location"], shape)
    parts = tuple(detail["partitionColumns"])
    constraints = row_constraints(shape, detail["properties"], parts)
    return TableDescription(*about, partitioned_by=parts, constraints=constraints)


@pytest.mark.parametrize("name", ["t", "with space & ünïcode", "a%20b+c"])
def test_a_table_of_the_bridge(spark: SparkSession, lake: Path, name: str) -> None:
    made(spark, lake / name, fields=WIDE, properties={"delta.logRetentionDuration": "interval 90 days"})
    assert describe(spark, target(lake / name)) == asked(spark, lake / name)
    assert describe(spark, target(lake / name)) == describe(spark, DeltaTarget(path=f"file:{lake / name}/"))


def test_a_table_of_others(spark: SparkSession, lake: Path) -> None:
    at = f"delta.`{lake / 't'}`"
    spark.sql(
        f"CREATE TABLE {at} (id BIGINT COMMENT 'a `b` \"c\"', p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES "
        "('delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '2', 'x' = 'y')"
    )
    found = describe(spark, target(lake / "t"))
    assert found == asked(spark, lake / "t") and found.properties == {"x": "y"}


def test_it_follows_changes_and_reads_a_checkpoint(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", properties={"delta.checkpointInterval": "3"})
    spark.sql(f"ALTER TABLE delta.`{lake / 't'}` ADD COLUMNS (more INT)")
    changed = asked(spark, lake / "t")
    assert [f.name for f in changed.schema] == ["id", "v", "more"]
    assert describe(spark, target(lake / "t")) == changed
    for n in range(2):
        append(table, [(n, "a")])
    log = lake / "t" / "_delta_log"
    assert (log / f"{3:020}.checkpoint.parquet").exists()
    for version in (0, 1, 2):
        log_file(table, version).unlink()
    assert describe(spark, target(lake / "t")) == changed
    commit_by_hand(table, 4)
    assert describe(spark, target(lake / "t")) == changed


def _without_a_commit(log: Path) -> None:
    (log / f"{1:020}.json").unlink()


def _torn(log: Path) -> None:
    (log / f"{0:020}.json").write_text('{"metaData": {"id"')


def _other_checkpoint(log: Path) -> None:
    (log / f"{2:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet").write_bytes(b"")


def _feature(log: Path) -> None:
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["new"]}
    (log / f"{2:020}.json").write_text(json.dumps({"protocol": features}))


@pytest.mark.parametrize("change", [_without_a_commit, _torn, _other_checkpoint, _feature, shutil.rmtree])
def test_a_log_that_is_not_certain_is_left_to_delta(
    spark: SparkSession, lake: Path, change: Callable[[Path], None]
) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")])
    commit_by_hand(table, 2)
    assert describe(spark, target(lake / "t")) is not None
    shutil.copytree(lake / "t", lake / "other")  # a log that this process does not follow yet
    change(lake / "other" / "_delta_log")
    assert describe(spark, target(lake / "other")) is None


@pytest.mark.parametrize(
    "ddl",
    [
        "(id BIGINT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "(id BIGINT, v VARCHAR(3)) USING delta",
    ],
)
def test_tables_with_more_to_them_are_left_to_delta(spark: SparkSession, lake: Path, ddl: str) -> None:
    spark.sql(f"CREATE TABLE delta.`{lake / 't'}` {ddl}")
    assert describe(spark, target(lake / "t")) is None
    assert DeltaTable.isDeltaTable(spark, str(lake / "t"))


def test_a_clustered_table_is_described_from_its_log(spark: SparkSession, lake: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{lake / 't'}` (id BIGINT, v STRING) USING delta CLUSTER BY (v, id)")
    found = describe(spark, target(lake / "t"))
    assert found is not None and found.clustered_by == ("v", "id")
    (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{lake / 't'}`").collect()
    assert tuple(detail["clusteringColumns"]) == found.clustered_by


def test_names_and_paths_with_a_version_are_left_to_delta(spark: SparkSession, lake: Path) -> None:
    made(spark, lake / "t@v1")
    assert describe(spark, target(lake / "t@v1")) is None
    assert describe(spark, DeltaTarget(table="default.t")) is None
    assert describe(spark, DeltaTarget(path="hdfs://nowhere:1/t")) is None


def test_the_newest_commits_are_those_of_the_history(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    append(table, [(1, "a")], userMetadata="mine")
    commit_by_hand(table, 2, "by hand")
    columns = ("version", "operation", "operationParameters", "operationMetrics", "userMetadata")
    history = [row.asDict() for row in table.delta().history().select(*columns).collect()]
    assert list(newest_commits(spark, table.target)) == history
    for version in range(3, 40):
        commit_by_hand(table, version)
    assert [c["version"] for c in newest_commits(spark, table.target)] == list(range(39, -1, -1))


def test_the_newest_version_is_that_of_the_history(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t", rows=[(1, "a")], properties={"delta.checkpointInterval": "2"})
    append(table, [(2, "a")])
    assert newest_version(spark, table.target) == 2
    assert newest_version(spark, DeltaTarget(table="default.t")) is None
    log_file(table, 2).unlink()
    assert list((lake / "t" / "_delta_log").glob("*2.checkpoint.parquet"))
    assert newest_version(spark, table.target) is None, "a checkpoint without its commit: Delta is asked"
    shutil.rmtree(lake / "t")
    assert newest_version(spark, table.target) is None


def test_a_session_reads_a_table_without_a_job(spark: SparkSession, lake: Path) -> None:
    made(spark, lake / "t", rows=[(1, "a")])
    context = spark.sparkContext
    context.setJobGroup("opening", "opening")
    try:
        open_table(spark, target(lake / "t"), FIELDS)
        assert list(context.statusTracker().getJobIdsForGroup("opening")) == []
        DeltaTable.forPath(spark, str(lake / "t")).detail().collect()
        assert list(context.statusTracker().getJobIdsForGroup("opening")) != []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
