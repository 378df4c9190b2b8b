"""What must hold before a pipeline touches anything."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND, POSITION, col, struct_type
from bridge.config import refuse_unpublishable, settings_without_effect
from bridge.definition import Definition, Topic
from bridge.delta.ingest_progress import IngestProgress, read_progress
from bridge.delta.schema_evolution import merge_schema
from bridge.delta.table import Table, claim, create_table, exists, open_table
from bridge.delta.table_checks import PIPELINE_PROPERTY
from bridge.errors import DefinitionError, TableError
from bridge.partitioners import TASK_FREE
from bridge.rows import RowKind
from bridge.schema import RowField, RowType, TableSchema

__all__ = [
    "ingest_table",
    "open_ingested_table",
    "open_whole_table",
    "publish_warnings",
    "published_table",
    "refuse_retractions",
    "table_fields",
]


def table_fields(spark: SparkSession, schema: TableSchema) -> list[T.StructField]:
    """The Delta table's columns in DDL order, all nullable; computed ones as Spark types them.

    Raises DefinitionError for an expression Spark cannot resolve.
    """
    physical = tuple(RowField(c.name, c.type) for c in schema.physical)
    metadata = tuple(RowField(c.name, c.type) for c in schema.metadata)
    row = struct_type(RowType(physical + metadata).spark())
    types = {f.name: f.dataType for f in row.fields}
    empty = spark.createDataFrame([], row)
    for column in schema.computed:
        try:
            types[column.name] = empty.select(F.expr(column.spark)).schema[0].dataType
        except PySparkException as error:
            raise DefinitionError(
                f"computed column {column.name!r}: Spark cannot resolve {column.expression!r} over the columns "
                f"{', '.join(empty.columns)}"
            ) from error
    return [T.StructField(name, types[name]) for name in schema.names]


def ingest_table(spark: SparkSession, definition: Definition) -> Table:
    """The table to ingest into, created when it is not there; raises TableError when it is another's.

    Under `delta: {merge-schema: true}` it follows the definition first.
    """
    fields = table_fields(spark, definition.topic.schema)
    if not exists(spark, definition.delta):
        return create_table(
            spark, definition.delta, fields, pipeline=definition.name, appends=definition.topic.appends
        )
    if definition.delta.merge_schema:
        merge_schema(
            spark, definition.delta, fields, pipeline=definition.name, appends=definition.topic.appends
        )
    return claim(
        open_table(spark, definition.delta, fields), definition.name, appends=definition.topic.appends
    )


def published_table(spark: SparkSession, definition: Definition) -> Table:
    """The table to read, which must exist with all columns that a published record carries; it may have more.

    VIRTUAL metadata columns and computed columns are not among them, as in Flink's sinks. Raises OptionError
    for columns that a record cannot carry.
    """
    refuse_unpublishable(definition.topic)
    schema = definition.topic.schema
    left_out = {c.name for c in schema.metadata if c.virtual} | {c.name for c in schema.computed}
    fields = [f for f in table_fields(spark, schema) if f.name not in left_out]
    return open_table(spark, definition.delta, fields, extra_columns=True)


def publish_warnings(topic: Topic) -> list[str]:
    """What a user should know about how this topic will be written."""
    found = list(settings_without_effect(topic, "publish"))
    if topic.key is None and topic.schema.primary_key and topic.sink.partitioner in TASK_FREE:
        found.append(
            "records have no key, so the changes of one row go to several partitions and readers see them in no fixed "
            "order; set 'key.format' and 'key.fields', or 'sink.partitioner' = 'fixed'"
        )
    return found


def refuse_retractions(changes: DataFrame, table: Table) -> None:
    """Raise TableError when changes that are to be appended to a topic take rows away or change them."""
    first = changes.where(col(KIND) != RowKind.INSERT.value).select(KIND, f"{POSITION}.version").head()
    if first is not None:
        raise TableError(
            f"table {table}: version {first['version']} updates or deletes rows, and a 'kafka' table with an "
            "insert-only format doesn't support consuming update and delete changes: nothing was sent. Publish with "
            "'connector' = 'upsert-kafka', or start after that version (publish.start: version:N)"
        )


def open_whole_table(spark: SparkSession, definition: Definition) -> Table:
    """The table with every column of the definition, to look at; it may have more."""
    fields = table_fields(spark, definition.topic.schema)
    return open_table(spark, definition.delta, fields, extra_columns=True, feed=False)


def open_ingested_table(table: Table, definition: Definition) -> tuple[IngestProgress, int] | None:
    """Ingest progress of this pipeline and the version that holds it; None where it never ingested here."""
    if table.properties.get(PIPELINE_PROPERTY) != definition.name:
        return None
    return read_progress(table, definition.name)
