"""Expressions in SELECT and WHERE of a script, and in projection and filter of a job, over the table of the vectors."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from benchmarks.flink_vectors.corpus import columns
from bridge.sql.connectors import resolve_table
from bridge.sql.inserts import plan_query
from bridge.sql.parse import parse_script
from bridge.sql.scope import Catalogue
from bridge.sql.statements import CreateTable, Explain, QueryText
from tests.cdc_jobs.jobs import SINK, load

SOURCE = "source_orders"
"""The table of the expressions; a job with a table `orders` names it so."""
_TABLE = f"({columns()}, PRIMARY KEY (rid) NOT ENFORCED)"
_OPTIONS = "'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:1'"


def selected(items: str, condition: str = "") -> str:
    """SELECT and WHERE in Spark SQL. Raises DefinitionError where the bridge refuses a part."""
    where = f" WHERE {condition}" if condition else ""
    (explain,) = parse_script(f"EXPLAIN SELECT {items} FROM {SOURCE}{where}", "x.sql")
    assert isinstance(explain, Explain) and isinstance(explain.explained, QueryText)
    return plan_query(explain.explained, _catalogue(), lambda text, _: text)


def transformed(folder: Path, projection: str, condition: str = "") -> str:
    """What a job sends with this projection and filter, in Spark SQL. Raises what `selected` raises."""
    lines = [
        f"    projection: {_yaml(projection)}",
        *([f"    filter: {_yaml(condition)}"] if condition else []),
    ]
    source = (
        "source:\n  type: kafka\n  topic: orders\n  value.format: debezium-json\n  properties.bootstrap.servers: b:1\n"
        f"  ddl: {_yaml(f'CREATE TABLE orders {_TABLE}')}\n"
    )
    script = load(folder, "\n".join([f"{source}{SINK}transform:", "  - source-table: orders", *lines])).script
    assert script is not None
    return script.inserts[0].spark_sql


@cache
def _catalogue() -> Catalogue:
    (table,) = parse_script(
        f"CREATE TABLE {SOURCE} {_TABLE} WITH ({_OPTIONS}, 'value.format' = 'debezium-json')", "x.sql"
    )
    assert isinstance(table, CreateTable)
    catalogue = Catalogue()
    catalogue.add(table, resolve_table(table.ddl, "/", 0))
    return catalogue


def _yaml(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
