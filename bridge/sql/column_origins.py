"""From which columns of the sources the columns of an INSERT's result come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from bridge.sql.plan import InsertPlan
from bridge.sql.positions import POSITION_COLUMNS

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
