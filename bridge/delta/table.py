"""Opens, checks and creates the Delta table of a pipeline.

table = create_table(spark, definition.delta, fields, pipeline="orders")
table = claim(open_table(spark, definition.delta, fields), "orders")      # a table created by others
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge import storage
from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import error_names, table_errors
from bridge.delta.log_description import TableDescription, describe
from bridge.delta.new_table import create_by_commit
from bridge.delta.newest_snapshot import newest_snapshot
from bridge.delta.row_constraints import row_constraints
from bridge.delta.table_checks import (
    CHANGE_FEED_PROPERTY,
    OWN_COLUMNS_PREFIX,
    PIPELINE_PROPERTY,
    SEMANTICS_PROPERTY,
    ExtraColumns,
    is_on,
    new_properties,
    refuse_clustering,
    refuse_hidden_loss,
    refuse_names,
    refuse_schema_mismatch,
    refuse_unfit_properties,
    semantics_property,
    sql_name,
)
from bridge.errors import TableError
from bridge.formats.sql import literal
from bridge.log_layout import LOG_FOLDER
from bridge.schema import RowConstraint
from bridge.spark_versions import or_public

__all__ = [
    "Table",
    "claim",
    "create_if_absent",
    "create_table",
    "described",
    "exists",
    "handle",
    "open_table",
    "refuse_claim",
    "set_properties",
    "unset_property",
]


@dataclass(frozen=True)
class Table:
    """A checked table. It has no snapshot: every read sees the newest version, unless it names a version."""

    spark: SparkSession = field(repr=False, compare=False)
    """The session for all work on this table; settings of a MERGE are set on it."""
    target: DeltaTarget
    id: str
    """Delta's id of the table: another id is another table, even with the same name or path."""
    fields: tuple[T.StructField, ...]
    """The definition's columns, in its order; the table may have more."""
    properties: Mapping[str, str]
    """Table properties as they were when the table was opened."""
    created_ms: int = field(compare=False)
    """When it was created, in epoch milliseconds."""
    location: str = field(default="", compare=False)
    """URI of its folder."""
    clustered_by: tuple[str, ...] = field(default=(), compare=False)
    """Its clustering columns when it was opened."""
    partitioned_by: tuple[str, ...] = field(default=(), compare=False)
    """Its partition columns; those of one table never change."""
    constraints: tuple[RowConstraint, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return str(self.target)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def deletion_vectors(self) -> bool:
        """True when a MERGE marks rows as deleted instead of rewriting their files."""
        return is_on(self.properties, "delta.enableDeletionVectors")

    def on(self, spark: SparkSession) -> Table:
        """The same table in another session (foreachBatch passes a clone with settings of its own)."""
        return replace(self, spark=spark)

    def delta(self) -> DeltaTable:
        """Delta's handle, bound to `spark`. Raises TableError when the table no longer exists."""
        return handle(self.spark, self.target)

    def is_empty(self) -> bool:
        """True when the newest version has no row."""
        with table_errors(self.target):
            return self.delta().toDF().limit(1).isEmpty()

    def read(self, options: Mapping[str, str]) -> DataFrame:
        """A lazy batch read of all columns with Delta's reader options; see `delta_errors` for Spark's exceptions."""
        reader = self.spark.read.format("delta").options(**options)
        return reader.table(self.target.table) if self.target.table else reader.load(self.target.path)


def exists(spark: SparkSession, target: DeltaTarget) -> bool:
    """True for a Delta table, False where there is nothing, or an empty folder.

    Raises TableError for a path or name of something else.
    """
    if target.table:
        return _in_catalog(spark, target.table)
    assert target.path is not None
    if describe(spark, target) is not None:
        return True
    with table_errors(target):
        if DeltaTable.isDeltaTable(spark, target.path):
            return True
    # A folder with a log alone is that of a table which another run is making at this moment.
    if set(storage.list_names(spark, target.path)) - {LOG_FOLDER}:
        raise TableError(
            f"{target.path} contains files, but is not a Delta table; choose another `delta.path`, or empty the folder"
        )
    return False


def create_table(
    spark: SparkSession,
    target: DeltaTarget,
    fields: Sequence[T.StructField],
    *,
    pipeline: str,
    appends: bool = False,
) -> Table:
    """Create the table when it is absent as `create_if_absent` does, then open and check it as `open_table` does."""
    create_if_absent(spark, target, fields, pipeline=pipeline, appends=appends)
    return open_table(spark, target, fields)


def create_if_absent(
    spark: SparkSession,
    target: DeltaTarget,
    fields: Sequence[T.StructField],
    *,
    pipeline: str,
    appends: bool = False,
    mark: Mapping[str, str] | None = None,
) -> None:
    """Create the table when it is absent.

    Its columns are nullable and in the order of `fields`. Change data feed and deletion vectors are on, unless the
    properties of `target` override them; it is clustered as `target` defines, and marked as the table of `pipeline`, or
    with the properties `mark`.
    Column mapping is on only for names that Parquet forbids.

    Raises TableError for what Delta refuses, DefinitionError for properties that the bridge refuses.
    """
    properties = new_properties(fields, target.properties, pipeline, appends=appends, mark=mark)
    if semantics := semantics_property(target):
        properties[SEMANTICS_PROPERTY] = semantics
    if not exists(spark, target) and not create_by_commit(spark, target, fields, properties):
        storage.make_local_folder(spark, target.path)
        builder = DeltaTable.createIfNotExists(spark)
        builder = builder.tableName(target.table) if target.table else builder.location(str(target.path))
        for f in fields:
            builder = builder.addColumn(f.name, f.dataType)
        for key, value in properties.items():
            builder = builder.property(key, value)
        if target.cluster_by:
            builder = builder.clusterBy(*target.cluster_by)
        try:
            with table_errors(target):
                builder.execute()
        except TableError:
            raise
        except Exception as error:
            # Delta refuses names and properties of the definition here; its message contains no payload.
            reason = str(error).split(". ")[0].splitlines()[0][:300]
            raise TableError(f"Delta refused to create {target}: {reason}") from error


def open_table(
    spark: SparkSession,
    target: DeltaTarget,
    fields: Sequence[T.StructField],
    *,
    extra_columns: ExtraColumns = "refused",
    feed: bool = True,
) -> Table:
    """Open an existing table and check that it has all `fields`, with the same types, nullable or not.

    `extra_columns`: whether the table may have more columns than `fields`. `feed`: its change data feed must be on.
    Raises TableError that names the differences and the way out, DefinitionError for column names and session settings
    with which rows would be lost or refused.
    """
    # It makes `spark` the active session of this thread, which Delta asks for when a checkpoint is read.
    spark.createDataFrame([], T.StructType([]))
    refuse_hidden_loss(spark)
    refuse_names(fields)
    found = described(spark, target)
    refuse_schema_mismatch(target, found.schema, fields, extra_columns)
    if feed and not is_on(found.properties, CHANGE_FEED_PROPERTY):
        raise TableError(
            f"table {target}: the change data feed is off; switch it on with\n"
            f"  ALTER TABLE {sql_name(target)} SET TBLPROPERTIES ({CHANGE_FEED_PROPERTY} = true)\n"
            "(changes made before that cannot be published; start from a snapshot)"
        )
    about = found.properties, found.created_ms, found.location, found.clustered_by
    return Table(spark, target, found.id, tuple(fields), *about, found.partitioned_by, found.constraints)


def described(spark: SparkSession, target: DeltaTarget) -> TableDescription:
    """Describe the newest version of a table. Raises TableError where there is none."""
    return describe(spark, target) or _described_by_delta(spark, target)


def _described_by_delta(spark: SparkSession, target: DeltaTarget) -> TableDescription:
    if not exists(spark, target):
        raise TableError(f"no Delta table at {target}: `bridge ingest` creates it; or check the path or name")
    opened = handle(spark, target)
    with table_errors(target):
        created = F.unix_millis("createdAt").alias("created_ms")
        wanted = ("id", "properties", created, "location", "clusteringColumns", "partitionColumns")
        row = opened.detail().select(*wanted).collect()[0]
        id, properties, created_ms, location, clustered, partitions = row
        schema = opened.toDF().schema
        logged = or_public(lambda: newest_snapshot(spark, opened).metadata().schemaString(), schema.json)
        rules = row_constraints(T.StructType.fromJson(json.loads(logged)), properties, partitions or ())
        about = id, dict(properties), created_ms, location, schema
        return TableDescription(*about, tuple(clustered or ()), tuple(partitions or ()), rules)


def claim(table: Table, pipeline: str, *, appends: bool = False) -> Table:
    """Mark a table that others created as the table of `pipeline`, unless it is marked already.

    The mark is a commit of its own. Raises TableError as `refuse_claim` does.
    """
    refuse_claim(table, pipeline, appends=appends)
    if PIPELINE_PROPERTY in table.properties:
        return table
    set_properties(table.spark, table.target, {PIPELINE_PROPERTY: pipeline})
    return replace(table, properties={**table.properties, PIPELINE_PROPERTY: pipeline})


def refuse_claim(table: Table, pipeline: str, *, appends: bool = False) -> None:
    """Raise TableError when the table belongs to another pipeline, for properties with which an ingest would fail or
    would not be protected against applying a batch twice, and when the table is not clustered as its target defines.
    """
    refuse_unfit_properties(str(table), table.properties, pipeline, appends=appends)
    refuse_clustering(table.target, table.clustered_by)
    if OWN_COLUMNS_PREFIX + pipeline in table.properties:
        raise TableError(
            f"table {table}: pipeline {pipeline!r} has merged into columns of its own, and its file no longer has "
            "`delta.merge-columns`. Set it again, or give the pipeline another table; if no other pipeline writes this "
            f"one, UNSET the table property {OWN_COLUMNS_PREFIX + pipeline!r}"
        )


def set_properties(spark: SparkSession, target: DeltaTarget, properties: Mapping[str, str]) -> None:
    """Set properties of a table, in a commit of its own."""
    shown = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    with table_errors(target):
        spark.sql(f"ALTER TABLE {sql_name(target)} SET TBLPROPERTIES ({shown})")


def unset_property(spark: SparkSession, target: DeltaTarget, name: str) -> None:
    """Remove a property of a table, if it has it, in a commit of its own."""
    with table_errors(target):
        spark.sql(f"ALTER TABLE {sql_name(target)} UNSET TBLPROPERTIES IF EXISTS ({literal(name)})")


def handle(spark: SparkSession, target: DeltaTarget) -> DeltaTable:
    """Delta's handle of an existing table. Raises TableError when there is none."""
    with table_errors(target):
        if target.table:
            return DeltaTable.forName(spark, target.table)
        return DeltaTable.forPath(spark, str(target.path))


def _in_catalog(spark: SparkSession, name: str) -> bool:
    try:
        if not spark.catalog.tableExists(name):
            return False
    except Exception as error:
        raise TableError(
            f"`delta.table`: {name!r} cannot be looked up; write [catalog.]schema.table"
        ) from error
    try:
        DeltaTable.forName(spark, name)
    except Exception as error:
        if "DELTA_MISSING_DELTA_TABLE" not in error_names(error):
            raise
        raise TableError(
            f"{name} is a table or view, but not a Delta table; choose another `delta.table`"
        ) from error
    return True
