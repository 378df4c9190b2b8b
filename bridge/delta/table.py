"""Opens, checks and creates the Delta table of a pipeline.

    table = create_table(spark, definition.delta, fields, pipeline="orders")
    table = claim(open_table(spark, definition.delta, fields), "orders")      # a table created by others

A new table is created by writing its first commit, without Spark: Delta's builder needs seconds for it in a new
process. What it would write is known for the tables that the bridge makes: without clustering, and without a property
of Delta but those that the bridge sets. Others are left to it. Format: "Delta Transaction Log Protocol"
(PROTOCOL.md), actions `commitInfo`, `metaData` and `protocol`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge import storage
from bridge.backend import HandleOfTable, backend_of
from bridge.backend.plans import analyzed
from bridge.columns import col, data_type
from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import error_names, table_errors
from bridge.delta.log_description import TableDescription, describe, log_store
from bridge.delta.newest_snapshot import newest_snapshot
from bridge.delta.row_constraints import identity_columns, row_constraints
from bridge.delta.table_checks import (
    CHANGE_FEED_PROPERTY,
    OWN_COLUMNS_PREFIX,
    PIPELINE_PROPERTY,
    READ_TIME_FEED,
    ROW_TRACKING,
    SEMANTICS_PROPERTY,
    ExtraColumns,
    is_on,
    new_properties,
    property_of,
    refuse_clustering,
    refuse_hidden_loss,
    refuse_identities,
    refuse_names,
    refuse_schema_mismatch,
    refuse_unfit_properties,
    semantics_property,
    sql_name,
)
from bridge.errors import TableError
from bridge.formats.sql import literal
from bridge.lake.commit import write_commit
from bridge.lake.store import UnknownOutcome
from bridge.log_layout import LOG_FOLDER
from bridge.schema import RowConstraint, quote
from bridge.spark_versions import or_public
from bridge.version import own_version
from bridge.ways import NotThisWay


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
    identities: Mapping[str, bool] = field(default_factory=dict, compare=False)
    """As `TableDescription` has them."""
    hides_by: tuple[T.StructField, ...] = ()
    """Columns: readers leave out the rows in which one is not null. That of `delta.soft-delete`, or the ends of a
    history's rows under `publish.history: current`. Empty where all rows count, and for those who write them."""

    def __str__(self) -> str:
        return str(self.target)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def change_fields(self) -> tuple[T.StructField, ...]:
        """The columns that a change has: those of the definition but for what a history has beside them, and that of
        `delta.soft-delete`."""
        own = (*self.target.history_columns, self.target.soft_delete)
        return tuple(f for f in self.fields if f.name not in own)

    @property
    def deletion_vectors(self) -> bool:
        """True when a MERGE marks rows as deleted instead of rewriting their files."""
        return is_on(self.properties, "delta.enableDeletionVectors")

    @property
    def read_fields(self) -> tuple[T.StructField, ...]:
        """The columns to read: `fields`, and `hides_by`, for `live`."""
        return (*self.fields, *(field for field in self.hides_by if field.name not in self.columns))

    def unhidden(self) -> Table:
        """The same table for those who write its rows: with `read_fields`, and all rows."""
        return replace(self, fields=self.read_fields, hides_by=())

    def live(self, rows: DataFrame) -> DataFrame:
        """Leave out of rows with `read_fields` those that `hides_by` hides."""
        for hiding in self.hides_by:
            rows = rows.where(col(hiding.name).isNull())
        return rows

    def on(self, spark: SparkSession) -> Table:
        """The same table in another session (foreachBatch passes a clone with settings of its own)."""
        return replace(self, spark=spark)

    def delta(self) -> HandleOfTable:
        """Delta's handle, bound to `spark`. Raises TableError when the table no longer exists."""
        return handle(self.spark, self.target)

    def is_empty(self) -> bool:
        """True when the newest version has no row."""
        with table_errors(self.target):
            return bool(self.delta().toDF().limit(1).isEmpty())

    def read(self, options: Mapping[str, str]) -> DataFrame:
        """A lazy batch read of all columns with Delta's reader options; see `delta_errors` for Spark's exceptions."""
        reader = self.spark.read.format("delta").options(**options)
        return analyzed(
            reader.table(self.target.table) if self.target.table else reader.load(self.target.path)
        )


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
        if backend_of(spark).is_table(target.path):
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
        properties[property_of(target, SEMANTICS_PROPERTY)] = semantics
    if not exists(spark, target) and not create_by_commit(spark, target, fields, properties):
        storage.make_local_folder(spark, target.path)
        try:
            with table_errors(target):
                create_by_sql(spark, target, fields, properties)
        except TableError:
            raise
        except Exception as error:
            # Delta refuses names and properties of the definition here; its message contains no payload.
            reason = str(error).split(". ")[0].splitlines()[0][:300]
            raise TableError(f"Delta refused to create {target}: {reason}") from error


def create_by_sql(
    spark: SparkSession,
    target: DeltaTarget,
    fields: Sequence[T.StructField],
    properties: Mapping[str, str] = MappingProxyType({}),
    comments: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Create a table with these columns, all nullable, unless there is one. Raises Delta's errors."""
    columns = ", ".join(
        f"{quote(f.name)} {_type_sql(f.dataType)}"
        + (f" COMMENT {literal(comments[f.name])}" if f.name in comments else "")
        for f in fields
    )
    statement = f"CREATE TABLE IF NOT EXISTS {sql_name(target)} ({columns}) USING delta"
    if target.cluster_by:
        statement += f" CLUSTER BY ({', '.join(map(quote, target.cluster_by))})"
    if properties:
        statement += f" TBLPROPERTIES ({_properties_sql(properties)})"
    spark.sql(statement)


def _type_sql(type: T.DataType) -> str:
    known = data_type(type)
    return type.simpleString() if known is None else known.spark()


def _properties_sql(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


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
            + (READ_TIME_FEED if is_on(found.properties, ROW_TRACKING) else "")
        )
    about = found.properties, found.created_ms, found.location, found.clustered_by, found.partitioned_by
    return Table(spark, target, found.id, tuple(fields), *about, found.constraints, found.identities)


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
        as_logged = T.StructType.fromJson(json.loads(logged))
        rules = row_constraints(as_logged, properties, partitions or ())
        about = id, dict(properties), created_ms, location, schema, tuple(clustered or ())
        return TableDescription(*about, tuple(partitions or ()), rules, identity_columns(as_logged))


def claim(table: Table, pipeline: str, *, appends: bool = False, changes: bool = True) -> Table:
    """Mark a table that others created as the table of `pipeline`, unless it is marked already, or without `changes`.

    The mark is a commit of its own. Raises TableError when the table belongs to another pipeline, for properties with
    which an ingest would fail or would not be protected against applying a batch twice, for identity columns that it
    would write, and when the table is not clustered as its target defines.
    """
    refuse_unfit_properties(str(table), table.properties, pipeline, appends=appends)
    refuse_identities(table.target, table.columns, table.identities, appends=appends)
    refuse_clustering(table.target, table.clustered_by)
    if OWN_COLUMNS_PREFIX + pipeline in table.properties:
        raise TableError(
            f"table {table}: pipeline {pipeline!r} has merged into columns of its own, and its file no longer has "
            "`delta.merge-columns`. Set it again, or give the pipeline another table; if no other pipeline writes this "
            f"one, UNSET the table property {OWN_COLUMNS_PREFIX + pipeline!r}"
        )
    if PIPELINE_PROPERTY in table.properties or not changes:
        return table
    set_properties(table.spark, table.target, {PIPELINE_PROPERTY: pipeline})
    return replace(table, properties={**table.properties, PIPELINE_PROPERTY: pipeline})


def set_properties(spark: SparkSession, target: DeltaTarget, properties: Mapping[str, str]) -> None:
    """Set properties of a table, in a commit of its own."""
    with table_errors(target):
        spark.sql(f"ALTER TABLE {sql_name(target)} SET TBLPROPERTIES ({_properties_sql(properties)})")


def unset_properties(spark: SparkSession, target: DeltaTarget, *names: str) -> None:
    """Remove properties of a table, those that it has, in a commit of its own."""
    listed = ", ".join(map(literal, names))
    with table_errors(target):
        spark.sql(f"ALTER TABLE {sql_name(target)} UNSET TBLPROPERTIES IF EXISTS ({listed})")


def newest_in_history(delta: HandleOfTable) -> int:
    """Returns the newest version as Delta's history has it: a query, by public means."""
    return int(delta.history(1).select("version").collect()[0][0])


def handle(spark: SparkSession, target: DeltaTarget) -> HandleOfTable:
    """Delta's handle of an existing table. Raises TableError when there is none."""
    with table_errors(target):
        return backend_of(spark).table(target.table, target.path)


def _in_catalog(spark: SparkSession, name: str) -> bool:
    try:
        if not spark.catalog.tableExists(name):
            return False
    except Exception as error:
        raise TableError(
            f"`delta.table`: {name!r} cannot be looked up; write [catalog.]schema.table"
        ) from error
    try:
        backend_of(spark).table(name, None)
    except Exception as error:
        if "DELTA_MISSING_DELTA_TABLE" not in error_names(error):
            raise
        raise TableError(
            f"{name} is a table or view, but not a Delta table; choose another `delta.table`"
        ) from error
    return True


_KNOWN = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
"""The properties of Delta that a table must have, and no others: they decide its protocol."""
_DEFAULTS = (
    "spark.databricks.delta.properties.defaults.",
    "spark.databricks.delta.min",
    "spark.databricks.delta.schema.",
)
"""How settings of a session begin that change what Delta's builder writes."""
_TYPES = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


def create_by_commit(
    spark: SparkSession, target: DeltaTarget, fields: Sequence[T.StructField], properties: Mapping[str, str]
) -> bool:
    """Create the table with these columns, all nullable, if its folder has none; False where Delta's builder must do
    it, which leaves a table that is there. Of several writers at once one creates it. Raises OSError where the disk
    does not allow it."""
    store = log_store(spark, target)
    is_known = (
        store is not None
        and not target.cluster_by
        and {name: value for name, value in properties.items() if name.startswith("delta.")} == _KNOWN
        and all(_is_known(f.dataType) and not f.metadata for f in fields)
        and len({f.name.lower() for f in fields}) == len(fields)
        and not any(name.startswith(_DEFAULTS) for name in spark.conf.getAll)
    )
    if not is_known or store is None:
        return False
    try:
        write_commit(store, 0, _actions(fields, properties))
    except (NotThisWay, UnknownOutcome):
        return False  # Delta finds the table, or reaches the store another way
    return True


def _is_known(type: T.DataType) -> bool:
    return isinstance(type, _TYPES) or type == T.StringType()


def _actions(fields: Sequence[T.StructField], properties: Mapping[str, str]) -> list[Mapping[str, object]]:
    now = int(time.time() * 1000)
    schema = T.StructType([T.StructField(f.name, f.dataType) for f in fields])
    readers = ["deletionVectors"]
    if any(isinstance(f.dataType, T.TimestampNTZType) for f in fields):
        readers.append("timestampNtz")
    return [
        {
            "commitInfo": {
                "timestamp": now,
                "operation": "CREATE TABLE",
                "operationParameters": {
                    "partitionBy": "[]",
                    "clusterBy": "[]",
                    "description": None,
                    "isManaged": "false",
                    "properties": json.dumps(dict(properties), separators=(",", ":")),
                },
                "isolationLevel": "Serializable",
                "isBlindAppend": True,
                "operationMetrics": {},
                "engineInfo": f"changelog-bridge/{own_version()}",
                "txnId": str(uuid.uuid4()),
            }
        },
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema.json(),
                "partitionColumns": [],
                "configuration": dict(properties),
                "createdTime": now,
            }
        },
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": readers,
                "writerFeatures": [*readers, "changeDataFeed", "invariants", "appendOnly"],
            }
        },
    ]
