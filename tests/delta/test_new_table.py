"""The first commit that the bridge writes is the one that Delta's builder writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.new_table import create_by_commit
from bridge.delta.table import create_table, open_table
from tests.delta.tables import FIELDS, actions, append, content, target

PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "bridge.pipeline": "p",
}
ALL_TYPES = [
    T.StructField(f"c{n}", type)
    for n, type in enumerate(
        (
            T.BooleanType(),
            T.ByteType(),
            T.ShortType(),
            T.IntegerType(),
            T.LongType(),
            T.FloatType(),
            T.DoubleType(),
            T.DecimalType(38, 18),
            T.StringType(),
            T.BinaryType(),
            T.DateType(),
            T.TimestampType(),
        )
    )
]
NAMES = [T.StructField(name, T.LongType()) for name in ("id", "ä.b", 'q"u', "__kept")]
Actions = dict[str, dict[str, Any]]


def by_delta(spark: SparkSession, folder: Path, fields: Sequence[T.StructField]) -> None:
    builder = DeltaTable.createIfNotExists(spark).location(str(folder))
    for f in fields:
        builder = builder.addColumn(f.name, f.dataType)
    for key, value in PROPERTIES.items():
        builder = builder.property(key, value)
    builder.execute()


def first_commit(folder: Path) -> Actions:
    """Without what differs in each commit; features have no order."""
    text = (folder / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8")
    found: Actions = {}
    for line in text.split("\n"):
        found |= json.loads(line) if line else {}
    for name in ("timestamp", "txnId", "engineInfo"):
        found["commitInfo"].pop(name)
    parameters = found["commitInfo"]["operationParameters"]
    parameters["properties"] = json.loads(parameters["properties"])
    for name in ("id", "createdTime"):
        found["metaData"].pop(name)
    found["metaData"]["schemaString"] = json.loads(found["metaData"]["schemaString"])
    for name in ("readerFeatures", "writerFeatures"):
        found["protocol"][name] = sorted(found["protocol"][name])
    return found


@pytest.mark.parametrize(
    "fields",
    [FIELDS, ALL_TYPES, [*FIELDS, T.StructField("at", T.TimestampNTZType())], NAMES],
    ids=["small", "all types", "timestamps without a zone", "names"],
)
def test_the_commit_is_delta_s(spark: SparkSession, lake: Path, fields: Sequence[T.StructField]) -> None:
    by_delta(spark, lake / "theirs", fields)
    assert create_by_commit(spark, target(lake / "ours"), fields, PROPERTIES)
    assert first_commit(lake / "ours") == first_commit(lake / "theirs")
    table = open_table(spark, target(lake / "ours"), fields)
    assert table.delta().toDF().schema == DeltaTable.forPath(spark, str(lake / "theirs")).toDF().schema
    ours, theirs = (
        DeltaTable.forPath(spark, str(lake / name)).detail().first() for name in ("ours", "theirs")
    )
    assert ours is not None and theirs is not None
    for name in (
        "format",
        "properties",
        "minReaderVersion",
        "minWriterVersion",
        "numFiles",
        "clusteringColumns",
    ):
        assert ours[name] == theirs[name]


def test_spark_writes_into_it(spark: SparkSession, lake: Path) -> None:
    table = create_table(spark, target(lake / "t"), FIELDS, pipeline="p")
    assert actions(table, 0)[0]["commitInfo"]["engineInfo"].startswith("changelog-bridge/")
    append(table, [(1, "a"), (2, "b")])
    table.delta().delete("id = 1")
    assert content(table) == {(2, "b")}
    assert any("deletionVector" in a["add"] for a in actions(table, 2) if "add" in a)


def test_a_table_that_is_there_stays(spark: SparkSession, lake: Path) -> None:
    """Also one that another run makes at the same moment."""
    assert create_by_commit(spark, target(lake / "t"), FIELDS, PROPERTIES)
    before = (lake / "t" / "_delta_log" / f"{0:020}.json").read_bytes()
    assert create_by_commit(spark, target(lake / "t"), ALL_TYPES, PROPERTIES)
    assert (lake / "t" / "_delta_log" / f"{0:020}.json").read_bytes() == before


LEFT: dict[str, tuple[Sequence[T.StructField], Mapping[str, str], Mapping[str, Any]]] = {
    "another property": (FIELDS, {**PROPERTIES, "delta.checkpointInterval": "4"}, {}),
    "no vectors": (FIELDS, {**PROPERTIES, "delta.enableDeletionVectors": "false"}, {}),
    "clustering": (FIELDS, PROPERTIES, {"cluster_by": ("id",)}),
    "a nested type": ([T.StructField("a", T.ArrayType(T.LongType()))], PROPERTIES, {}),
    "a length": ([T.StructField("a", T.VarcharType(3))], PROPERTIES, {}),
    "names twice": ([T.StructField("a", T.LongType()), T.StructField("A", T.LongType())], PROPERTIES, {}),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_to_delta(spark: SparkSession, lake: Path, case: str) -> None:
    fields, properties, more = LEFT[case]
    given = DeltaTarget(path=str(lake / "t"), **more)
    assert not create_by_commit(spark, given, fields, properties)
    assert not (lake / "t").exists()
    assert not create_by_commit(spark, DeltaTarget(table="t"), FIELDS, PROPERTIES)
    assert not create_by_commit(spark, DeltaTarget(path="hdfs://nowhere/t"), FIELDS, PROPERTIES)


def test_defaults_of_the_session_are_left_to_delta(spark: SparkSession, lake: Path) -> None:
    name = "spark.databricks.delta.properties.defaults.checkpointInterval"
    spark.conf.set(name, "4")
    try:
        assert not create_by_commit(spark, target(lake / "t"), FIELDS, PROPERTIES)
        table = create_table(spark, target(lake / "t"), FIELDS, pipeline="p")
        assert table.properties["delta.checkpointInterval"] == "4"
    finally:
        spark.conf.unset(name)
