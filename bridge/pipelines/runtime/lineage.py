"""What commands over a pipeline file read and write, for lineage: datasets by OpenLineage's rules of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.definition import Definition, DeltaTarget, GateAction, Topic
from bridge.delta.table import described, exists
from bridge.kafka import admin
from bridge.metrics import Listener, ignore
from bridge.metrics.datasets import Dataset, Flow, Origin
from bridge.metrics.lineage import tracked
from bridge.schema import Column, ComputedColumn, MetadataColumn, PhysicalColumn, TableSchema

_OBJECT_STORES = ("abfs", "abfss", "gs", "s3", "wasb", "wasbs")


def ingest_flow(spark: SparkSession, definition: Definition) -> Flow:
    """Topics to a table, and to its quarantine. Raises KafkaError where a pattern of topics cannot be looked up."""
    counted = ("ingest", definition.name)
    topics = topic_datasets(definition.topic, counted)
    schema = definition.topic.schema
    origins = {
        column.name: tuple(o for topic in topics for o in _column_origins(column, topic)) for column in schema
    }
    tables = [table_dataset(spark, definition.delta, schema, counted, origins)]
    if definition.quarantine is not None:
        tables.append(table_dataset(spark, definition.quarantine))
    return _flow(spark, definition, topics, tables)


def publish_flow(spark: SparkSession, definition: Definition) -> Flow:
    """A table to topics."""
    counted = ("publish", definition.name)
    table = table_dataset(spark, definition.delta, definition.topic.schema, counted)
    written = [
        c.name
        for c in definition.topic.schema
        if isinstance(c, PhysicalColumn) or (isinstance(c, MetadataColumn) and not c.virtual)
    ]
    origins = {name: (table.origin(name),) for name in written}
    return _flow(spark, definition, [table], topic_datasets(definition.topic, counted, origins))


def check_flow(spark: SparkSession, definition: Definition) -> Flow:
    """A table to the results of its checks."""
    counted = ("check", definition.name)
    table = table_dataset(spark, definition.delta, definition.topic.schema, counted)
    results = [table_dataset(spark, definition.quality.results)] if definition.quality else []
    return Flow((table,), tuple(results), spark.version)


def verify_flow(spark: SparkSession, definition: Definition, ledger: DeltaTarget | None) -> Flow:
    """Topics and their table to the results of their comparisons."""
    counted = ("verify", definition.name)
    table = table_dataset(spark, definition.delta, definition.topic.schema, counted)
    results = () if ledger is None else (table_dataset(spark, ledger),)
    return Flow((*topic_datasets(definition.topic, counted), table), results, spark.version)


def replay_flow(spark: SparkSession, definition: Definition) -> Flow:
    """Topics and the quarantine to a table."""
    flow = ingest_flow(spark, definition)
    return replace(flow, inputs=(*flow.inputs, *flow.outputs[1:]), outputs=flow.outputs[:1])


def once_flow(spark: SparkSession, definition: Definition, source: Topic | DeltaTarget | str) -> Flow:
    """Other topics, a table, or files at a path, to the table of a pipeline."""
    counted = ("ingest", definition.name)
    outputs = [table_dataset(spark, definition.delta, definition.topic.schema, counted)]
    if isinstance(source, Topic):
        return _flow(spark, definition, topic_datasets(source, counted), outputs)
    if isinstance(source, DeltaTarget):
        return _flow(spark, definition, [table_dataset(spark, source)], outputs)
    return _flow(spark, definition, [Dataset(*_place(source), is_table=False)], outputs)


def tracked_command(
    spark: SparkSession, definition: Definition, verb: str, flow: Callable[[SparkSession, Definition], Flow]
) -> AbstractContextManager[Listener]:
    """Around a command that makes no reports: its lineage, where `run.lineage` asks for it."""
    named = definition.run_name(verb)
    return tracked(definition.run.monitoring.lineage, ignore, named, partial(flow, spark, definition))


def topic_datasets(
    topic: Topic, counted: tuple[str, str], origins: Mapping[str, tuple[Origin, ...]] | None = None
) -> list[Dataset]:
    """Each topic of a DDL, with the columns that its records have. Raises KafkaError for a pattern without topics."""
    # By its first server, as other integrations name it.
    server = topic.bootstrap_servers.split(",")[0].strip().rpartition("//")[2]
    columns = tuple(
        (c.name, c.type.flink()) for c in topic.schema if isinstance(c, (PhysicalColumn, MetadataColumn))
    )
    names = admin.resolve(topic).names
    return [
        Dataset(
            f"kafka://{server}",
            name,
            is_table=False,
            columns=columns,
            origins=origins or {},
            counted=(counted,),
            shares_counts=len(names) > 1,
        )
        for name in names
    ]


def table_dataset(
    spark: SparkSession,
    target: DeltaTarget,
    schema: TableSchema | None = None,
    counted: tuple[str, str] | None = None,
    origins: Mapping[str, tuple[Origin, ...]] | None = None,
) -> Dataset:
    """A Delta table by its location, also one in a catalog, so that those who know its path mean the same one."""
    namespace, name = _place(target.path if target.path is not None else _location(spark, str(target.table)))
    symlink = (
        (str(backend_of(spark).setting("spark.sql.warehouse.dir")), target.table) if target.table else None
    )
    columns = tuple(
        (c.name, c.type.spark() if isinstance(c, (PhysicalColumn, MetadataColumn)) else None)
        for c in schema or ()
    )
    return Dataset(
        namespace,
        name,
        is_table=True,
        columns=columns,
        origins=origins or {},
        symlink=symlink,
        counted=() if counted is None else (counted,),
    )


def _flow(
    spark: SparkSession, definition: Definition, inputs: Sequence[Dataset], outputs: Sequence[Dataset]
) -> Flow:
    return Flow(
        tuple(inputs),
        tuple(outputs),
        spark.version,
        is_streaming=definition.run.trigger_seconds is not None,
        gate=None if definition.gate is None else definition.gate.action is GateAction.FAIL,
    )


def _column_origins(column: Column, topic: Dataset) -> list[Origin]:
    if not isinstance(column, ComputedColumn):
        return [topic.origin(column.name)]
    known = {name for name, _ in topic.columns}
    used = set(column.reads)
    return [topic.origin(name, "TRANSFORMATION") for name in sorted(used & known)]


def _location(spark: SparkSession, name: str) -> str:
    """Where a table of the catalog is, or will be when an ingest creates it."""
    target = DeltaTarget(table=name)
    if exists(spark, target):
        return described(spark, target).location
    schema, _, table = name.rpartition(".")
    folder = spark.catalog.getDatabase(schema or spark.catalog.currentDatabase()).locationUri
    return f"{folder.rstrip('/')}/{table.lower()}"


def _place(location: str) -> tuple[str, str]:
    """Namespace and name of a path or URI."""
    uri = urlsplit(location)
    if uri.scheme in ("", "file"):
        path = unquote(uri.path) if uri.scheme else location
        return "file", path.rstrip("/")
    scheme = {"s3a": "s3", "s3n": "s3"}.get(uri.scheme, uri.scheme)
    path = uri.path.strip("/") if scheme in _OBJECT_STORES else uri.path.rstrip("/")
    return f"{scheme}://{uri.netloc}", path or "/"
