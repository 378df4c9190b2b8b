"""Rows of which the position of their record says which one came first: a query selects it, too.

Rows that replace each other by the key of their sink, although their source only adds rows: the last one counts. And
rows that ROW_NUMBER finds equal: see `top_n`. That is possible for a SELECT from one topic, of which each record gives
at most one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from bridge.schema import MetadataColumn, ScalarType
from bridge.sql.connectors import Table
from bridge.sql.scope import Catalogue
from bridge.sql.statements import Insert
from bridge.sql.tree import QueryTree

POSITION_COLUMNS = (
    MetadataColumn("__topic", ScalarType("STRING"), "topic", virtual=True),
    MetadataColumn("__partition", ScalarType("INT"), "partition", virtual=True),
    MetadataColumn("__offset", ScalarType("BIGINT"), "offset", virtual=True),
    MetadataColumn("__timestamp", ScalarType("TIMESTAMP_LTZ", (3,)), "timestamp", virtual=True),
)
"""Columns that the state of a topic has beside those of the script, for such an INSERT. Users' names cannot begin with
two underscores."""


def select_positions(
    insert: Insert, sink: Table, query: exp.Query, sources: Sequence[Table], tree: QueryTree
) -> None:
    """Adds POSITION_COLUMNS to the query in place. Raises UnsupportedError where no record has a row's position."""
    if len(sources) != 1 or sources[0].topic is None or not _add(query):
        raise tree.unsupported(
            f"rows that replace each other by the PRIMARY KEY of `{sink.name}`, from anything but one topic",
            "which of two rows of one key is the last one is not known. Select from one topic, or keep one row of each "
            "key with ROW_NUMBER() OVER (PARTITION BY key ORDER BY ...) = 1",
            tree.root,
        )


def arrival(source: exp.Expr, catalogue: Catalogue) -> tuple[str, tuple[exp.Column, ...]] | None:
    """Adds POSITION_COLUMNS to what a SELECT without a join reads in FROM; returns the topic's table, and the columns
    by which rows are in the order of their records: the order of a partition, and any other one between partitions.

    None, and nothing is added, for anything but rows of one topic that only adds rows; see `relation.operations`.
    """
    select: exp.Select | None = None
    table: exp.Expr | None = source
    while isinstance(table, exp.Subquery) and isinstance(table.this, exp.Select):
        select = table.this
        table = select.args["from_"].this if select.args.get("from_") else None
    entry = catalogue.entries.get(table.name) if isinstance(table, exp.Table) else None
    if not isinstance(entry, Table) or entry.topic is None or not entry.topic.appends:
        return None
    if select is not None:
        _add(source.this)
    names = ("__offset", "__timestamp", "__topic", "__partition")
    return entry.name, tuple(exp.column(name, table=source.alias, quoted=True) for name in names)


def _add(query: exp.Expr) -> bool:
    """Adds the columns to a SELECT and to the views and subqueries that it selects from; False if it is anything else.

    GROUP BY and Top-N need no look: their rows are updated.
    """
    from_ = query.args.get("from_")
    is_one_table = isinstance(query, exp.Select) and not query.args.get("joins")
    if not is_one_table or query.args.get("distinct") or from_ is None:
        return False
    source = from_.this
    if not isinstance(source, exp.Table) and not (isinstance(source, exp.Subquery) and _add(source.this)):
        return False
    if any(isinstance(column, exp.Star) for column in query.expressions):
        return True
    for column in POSITION_COLUMNS:
        node = exp.column(column.name, table=source.alias, quoted=True)
        query.append("expressions", exp.alias_(node, exp.to_identifier(column.name, quoted=True), copy=False))
    return True
