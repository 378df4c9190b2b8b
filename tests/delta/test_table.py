"""Opening, checking and creating tables.

The first commit that the bridge writes is the one that Delta's builder writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.table import claim, create_by_commit, create_table, exists, open_table
from bridge.errors import BridgeError, DefinitionError, TableError
from tests.delta.tables import FIELDS, actions, append, content, create_fed, log_file, made, target


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table made by the bridge, for tests that only read it."""
    place = tmp_path_factory.mktemp("tables") / "made"
    made(spark, place, rows=[(1, "a")])
    return place


def test_created_table_has_the_columns_feed_vectors_and_mark(spark: SparkSession, folder: Path) -> None:
    table = open_table(spark, target(folder), FIELDS)
    assert table.columns == ("id", "v")
    assert [f.name for f in table.delta().toDF().schema] == ["id", "v"]
    assert table.properties == {
        "delta.enableChangeDataFeed": "true",
        "delta.enableDeletionVectors": "true",
        "bridge.pipeline": "p",
    }
    assert table.deletion_vectors
    assert table.id == next(a["metaData"]["id"] for a in actions(table, 0) if "metaData" in a)


def test_create_leaves_an_existing_table_as_it_is(spark: SparkSession, folder: Path) -> None:
    table = create_table(spark, target(folder), FIELDS, pipeline="p")
    assert content(table) == {(1, "a")}
    assert not log_file(table, 2).exists()


def test_catalog_table_is_created_and_found_by_name(
    spark: SparkSession, unique: Callable[[str], str]
) -> None:
    named = DeltaTarget(table="default." + unique("t").replace("-", "_"))
    assert not exists(spark, named)
    created = create_table(spark, named, FIELDS, pipeline="p")
    assert exists(spark, named)
    assert created.read({}).columns == ["id", "v"]
    spark.sql(f"DROP TABLE {named.table}")
    with pytest.raises(TableError, match=f"no Delta table at {named.table}"):
        open_table(spark, named, FIELDS)
    with pytest.raises(TableError, match=f"no Delta table at {named.table}"):
        created.delta()


def test_users_properties_go_on_top(spark: SparkSession, lake: Path) -> None:
    properties = {"delta.enableDeletionVectors": "false", "delta.logRetentionDuration": "interval 90 days"}
    table = made(spark, lake / "t", properties=properties)
    assert not table.deletion_vectors
    assert table.properties["delta.logRetentionDuration"] == "interval 90 days"


@pytest.mark.parametrize("name", ["a.b", "a b", "a,b;{c}(d)=e", "ü"])
def test_any_column_name_works(spark: SparkSession, lake: Path, name: str) -> None:
    fields = [
        T.StructField(name, T.StringType()),
        T.StructField("n", T.StructType([T.StructField("x", T.LongType())])),
    ]
    table = made(spark, lake / "t", fields=fields, rows=[("v", (1,))])
    assert table.read({}).columns == [name, "n"]
    assert table.properties.get("delta.columnMapping.mode") == (
        "name" if " " in name or "," in name else None
    )


def test_a_forbidden_name_inside_a_struct_switches_mapping_on(spark: SparkSession, lake: Path) -> None:
    inner = T.ArrayType(T.MapType(T.StringType(), T.StructType([T.StructField("a b", T.LongType())])))
    table = made(spark, lake / "t", fields=[T.StructField("n", inner)])
    assert table.properties["delta.columnMapping.mode"] == "name"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"delta.enableChangeDataFeed": "false"}, "'delta.enableChangeDataFeed' must stay on"),
        ({"delta.appendOnly": "true"}, "an ingest updates and deletes rows; unset the property"),
        (
            {"delta.setTransactionRetentionDuration": "interval 1 day"},
            "Delta would forget which batches it has",
        ),
        ({"bridge.pipeline": "x"}, "'bridge.pipeline' is set by the bridge; leave it out"),
    ],
)
def test_properties_that_break_the_bridge_are_refused(
    spark: SparkSession, lake: Path, properties: dict[str, str], message: str
) -> None:
    with pytest.raises(DefinitionError, match=f"^delta.properties: .*{re.escape(message)}"):
        create_table(spark, target(lake / "t", properties), FIELDS, pipeline="p")
    assert not (lake / "t").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("_Commit_Version", "column '_Commit_Version': the change data feed uses that name"),
        ("a`b", "column 'a`b': Delta cannot MERGE a name with a backquote; rename it"),
    ],
)
def test_names_the_change_feed_cannot_carry_are_refused(
    spark: SparkSession, lake: Path, name: str, message: str
) -> None:
    fields = [T.StructField(name, T.LongType())]
    for act in (open_table, lambda s, t, f: create_table(s, t, f, pipeline="p")):
        with pytest.raises(DefinitionError, match=message):
            act(spark, target(lake / "t"), fields)


@pytest.mark.parametrize(
    ("fields", "properties", "reason"),
    [
        ([*FIELDS, T.StructField("ID", T.LongType())], {}, "The column `id` already exists"),
        (FIELDS, {"delta.nonsense": "1"}, "Unknown configuration was specified: delta.nonsense"),
        (FIELDS, {"delta.logRetentionDuration": "soon"}, "soon is not a valid INTERVAL"),
    ],
)
def test_what_delta_refuses_is_told_in_one_line(
    spark: SparkSession, lake: Path, fields: list[T.StructField], properties: dict[str, str], reason: str
) -> None:
    with pytest.raises(TableError, match=re.escape(reason)) as caught:
        create_table(spark, target(lake / "t", properties), fields, pipeline="p")
    assert str(caught.value).startswith(f"Delta refused to create {lake / 't'}: ")
    assert _fits_one_screen(caught.value)


def test_missing_other_and_extra_columns_are_all_named(spark: SparkSession, folder: Path) -> None:
    wanted = [T.StructField("id", T.IntegerType()), T.StructField("w", T.DecimalType(10, 2))]
    with pytest.raises(TableError) as caught:
        open_table(spark, target(folder), wanted)
    assert str(caught.value).splitlines()[:4] == [
        f"table {folder} does not fit the definition:",
        "  missing: `w` decimal(10,2)",
        "  other type: `id` is bigint, wanted int",
        "  not in the definition: `v` string",
    ]


def test_extra_columns_are_accepted_on_request(spark: SparkSession, folder: Path) -> None:
    table = open_table(spark, target(folder), FIELDS[:1], extra_columns="unused")
    assert table.columns == ("id",)


def test_nullability_does_not_count(spark: SparkSession, folder: Path) -> None:
    assert open_table(spark, target(folder), [_required(f) for f in FIELDS])


def _required(field: T.StructField) -> T.StructField:
    return T.StructField(field.name, field.dataType, nullable=False)


def test_feed_switched_off_is_refused_with_the_statement_that_mends_it(
    spark: SparkSession, lake: Path
) -> None:
    folder = lake / "t"
    made(spark, folder)
    spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    with pytest.raises(TableError, match="the change data feed is off") as caught:
        open_table(spark, target(folder), FIELDS)
    assert open_table(spark, target(folder), FIELDS, feed=False)
    statement = next(line for line in str(caught.value).splitlines() if "ALTER TABLE" in line)
    spark.sql(statement)
    open_table(spark, target(folder), FIELDS)


def test_a_folder_with_other_files_is_refused(spark: SparkSession, lake: Path) -> None:
    (lake / "other").mkdir()
    assert not exists(spark, target(lake / "other"))
    (lake / "other" / "part-0.parquet").touch()
    for act in (exists, lambda s, t: create_table(s, t, FIELDS, pipeline="p")):
        with pytest.raises(
            TableError, match=r"other contains files, but is not a Delta table; choose another `delta.path`"
        ):
            act(spark, target(lake / "other"))


def test_a_catalog_table_of_another_kind_is_refused(
    spark: SparkSession, unique: Callable[[str], str]
) -> None:
    name = "default." + unique("pq").replace("-", "_")
    spark.sql(f"CREATE TABLE {name} (id INT) USING parquet")
    with pytest.raises(TableError, match=f"{name} is a table or view, but not a Delta table"):
        exists(spark, DeltaTarget(table=name))
    spark.sql(f"DROP TABLE {name}")
    with pytest.raises(TableError, match=r"'a b c' cannot be looked up; write \[catalog.\]schema.table"):
        exists(spark, DeltaTarget(table="a b c"))


def test_no_table_and_no_file_system(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(TableError, match=r"no Delta table at .*/none: `bridge ingest` creates it"):
        open_table(spark, target(lake / "none"), FIELDS)
    with pytest.raises(TableError, match=r"no file system for moon://lake/t; add the jar") as caught:
        exists(spark, DeltaTarget(path="moon://lake/t"))
    assert _fits_one_screen(caught.value)


def test_unknown_table_features_are_refused(spark: SparkSession, lake: Path) -> None:
    table = made(spark, lake / "t")
    features = '["deletionVectors", "teleport"]'
    log_file(table, 1).write_text(
        '{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, '
        f'"readerFeatures": {features}, "writerFeatures": {features}}}}}\n'
    )
    with pytest.raises(
        TableError, match="uses Delta features that this version of Delta cannot handle"
    ) as caught:
        open_table(spark, table.target, FIELDS)
    assert _fits_one_screen(caught.value)


@pytest.mark.parametrize("key", ["spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"])
def test_settings_that_hide_loss_are_refused(spark: SparkSession, folder: Path, key: str) -> None:
    other = spark.newSession()
    other.conf.set(key, "true")
    with pytest.raises(DefinitionError, match=f"{key} = true hides lost data; set it to false"):
        open_table(other, target(folder), FIELDS)


def test_claim_marks_a_foreign_table_once_and_keeps_others_out(spark: SparkSession, lake: Path) -> None:
    folder = lake / "t"
    create_fed(spark, folder, "id BIGINT, v STRING")
    claimed = claim(open_table(spark, target(folder), FIELDS), "it's")
    assert claimed.properties["bridge.pipeline"] == "it's"
    again = open_table(spark, target(folder), FIELDS)
    assert again == claimed
    assert claim(again, "it's") == again
    assert not log_file(again, 2).exists()
    with pytest.raises(
        TableError, match="belongs to pipeline \"it's\", not 'p': two pipelines would overwrite"
    ):
        claim(again, "p")


def test_a_new_table_is_clustered_as_its_target_says(spark: SparkSession, lake: Path) -> None:
    clustered = DeltaTarget(path=str(lake / "t"), cluster_by=("v", "id"))
    table = create_table(spark, clustered, FIELDS, pipeline="p")
    assert table.clustered_by == ("v", "id") == claim(table, "p").clustered_by
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{lake / 't'}`").collect()[0]
    assert detail["clusteringColumns"] == ["v", "id"]


def test_a_table_that_is_clustered_otherwise_is_refused_with_what_mends_it(
    spark: SparkSession, folder: Path
) -> None:
    clustered = replace(target(folder), cluster_by=("id",))
    with pytest.raises(
        TableError, match=r"is clustered by nothing, but `delta.cluster-by` names id. Leave it out"
    ) as e:
        claim(open_table(spark, clustered, FIELDS), "p")
    assert _fits_one_screen(e.value)
    spark.sql(str(e.value).splitlines()[-1])
    assert claim(open_table(spark, clustered, FIELDS), "p").clustered_by == ("id",)
    with pytest.raises(TableError, match=r"is clustered by id, but `delta.cluster-by` names v"):
        claim(open_table(spark, replace(clustered, cluster_by=("v",)), FIELDS), "p")
    assert claim(open_table(spark, target(folder), FIELDS), "p").clustered_by == ("id",), (
        "none are configured"
    )


def test_a_table_can_move_to_another_session(spark: SparkSession, folder: Path) -> None:
    other = spark.newSession()
    table = open_table(spark, target(folder), FIELDS).on(other)
    assert table.spark is other
    assert table.delta().toDF().sparkSession._jsparkSession.equals(other._jsparkSession)
    assert replace(table, spark=spark) == table


def _fits_one_screen(error: BridgeError) -> bool:
    text = str(error)
    return len(text.splitlines()) <= 6 and "\tat " not in text and "Exception" not in text


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
