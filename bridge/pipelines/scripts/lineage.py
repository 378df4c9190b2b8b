"""What a script reads and writes, for lineage: its sources and sinks, and no tables of its state between them.

The origins of a result's columns are read from its query by sqlglot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from bridge.metrics.datasets import Dataset, Flow, Origin, joined
from bridge.pipelines.runtime.lineage import table_dataset, topic_datasets
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import InsertPlan, Script
from bridge.sql.positions import POSITION_COLUMNS
from bridge.sql.statements import CreateView, Insert


def script_flow(spark: SparkSession, state: ScriptState, *, is_streaming: bool) -> Flow:
    """The sources and sinks of all INSERTs; `print` is none. Raises KafkaError for a pattern without topics."""
    script = state.script
    sources = {source.name: _source(spark, state, source.name) for source in script.sources}
    sinks = [dataset for plan in script.inserts for dataset in _sink(spark, state, plan, sources)]
    inputs = (dataset for datasets in sources.values() for dataset in datasets)
    return Flow(joined(inputs), joined(sinks), spark.version, is_streaming, _sql(script))


def _source(spark: SparkSession, state: ScriptState, name: str) -> list[Dataset]:
    table = state.tables[name]
    ingest = state.ingest(table)
    if ingest is not None and table.topic is not None:
        return topic_datasets(table.topic, ("ingest", ingest.name))
    return [table_dataset(spark, state.source_target(table), table.ddl.schema)]


def _sink(
    spark: SparkSession, state: ScriptState, plan: InsertPlan, sources: Mapping[str, list[Dataset]]
) -> list[Dataset]:
    table = state.tables[plan.sink]
    origins = {column: tuple(_origins(found, sources)) for column, found in column_origins(plan).items()}
    publish = state.publish(plan)
    if publish is not None:
        return topic_datasets(publish.topic, ("publish", publish.name), origins)
    if table.delta is None:
        return []
    counted = ("insert", state.result_name(plan))
    return [table_dataset(spark, table.delta, table.ddl.schema, counted, origins)]


def _origins(
    found: tuple[tuple[str, str, str], ...], sources: Mapping[str, list[Dataset]]
) -> Iterator[Origin]:
    for source, column, subtype in found:
        for dataset in sources[source]:
            yield dataset.origin(column, subtype)


def _sql(script: Script) -> str:
    """The views and INSERTs as they are written: the options in WITH and SET, which other statements have, may be
    secret."""
    written = (s for s in script.statements if isinstance(s, (CreateView, Insert)))
    return "\n".join(f"{s.source.text[s.start : s.query.tokens[-1].end]};" for s in written)


SourceColumn = tuple[str, str, str]
"""Table, column, and OpenLineage's subtype of what is done with it: IDENTITY, TRANSFORMATION or AGGREGATION."""


def column_origins(plan: InsertPlan) -> Mapping[str, tuple[SourceColumn, ...]]:
    """Returns the columns whose values a value of a column is made of, without those that only choose or order rows.
    A column that is made of none, or of which this cannot be said, is left out."""
    own = [column.name for column in POSITION_COLUMNS]
    schema = {source.name: dict.fromkeys((*source.columns, *own), "STRING") for source in plan.sources}
    found = {}
    for column in plan.columns:
        try:
            root = lineage(f"`{column.name}`", plan.spark_sql, schema=schema, dialect="spark")
        except (SqlglotError, ValueError):
            continue
        leaves = {(table, name): None for table, name in _leaves(root) if name in schema.get(table, ())}
        subtype = _subtype(root)
        if leaves:
            found[column.name] = tuple((table, name, subtype) for table, name in leaves)
    return found


def _leaves(root: Node) -> Iterator[tuple[str, str]]:
    for node in root.walk():
        if not node.downstream and isinstance(node.source, exp.Table):
            yield node.source.name, parse_one(node.name).name


def _subtype(root: Node) -> str:
    made = [node.expression for node in root.walk() if not isinstance(node.expression, exp.Table)]
    if any(expression.find(exp.AggFunc) for expression in made):
        return "AGGREGATION"
    return "IDENTITY" if all(isinstance(e.unalias(), exp.Column) for e in made) else "TRANSFORMATION"
