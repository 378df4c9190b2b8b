"""Gives a key to rows whose sink has none: the keys of joined tables; topic, partition and offset of appended records.

A sink such as `print`, or `debezium-json` without a PRIMARY KEY, takes updates and deletes of rows by their values.
The result must still know which of its rows an update is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from bridge.schema import DataType, MetadataColumn, PhysicalColumn
from bridge.sql.analysis import JoinColumn
from bridge.sql.connectors import Table
from bridge.sql.positions import POSITION_COLUMNS
from bridge.sql.relation import Relation

PART = "__part"
_NAME = "__key"
_POSITION = POSITION_COLUMNS[:3]


@dataclass(frozen=True)
class RowKey:
    """Columns of the key that the result has beside those of the sink, and the topics of which they are positions; and
    the column PART, if it has that."""

    columns: tuple[tuple[str, DataType], ...] = ()
    positioned: tuple[str, ...] = ()
    part: JoinColumn | None = None

    @property
    def kept(self) -> tuple[tuple[str, DataType], ...]:
        """All of these columns."""
        return (*self.columns, *(((PART, self.part.type),) if self.part is not None else ()))


def can_have_row_key(sink: Table, relation: Relation) -> bool:
    """Whether rows of this query may get a key: joined, projected and filtered ones, in a table of the bridge's own."""
    return not sink.key and sink.delta is None and not set(relation.operations) - {"join"}


def add_row_key(query: exp.Query, tables: Mapping[str, Table], part: JoinColumn | None) -> RowKey | None:
    """Adds the key to a translated query in place, and with `part` a column of its FROM by which it is computed in
    parts. None, and then the query is of no more use, where a table in it has neither a PRIMARY KEY nor positions, or
    rows of a table are there more than once."""
    positioned: dict[str, None] = {}
    found = _added(query, tables, positioned)
    if found is None:
        return None
    if part is not None:
        query.append("expressions", exp.alias_(part.node, exp.to_identifier(PART, quoted=True), copy=False))
    return RowKey(tuple(found), tuple(positioned), part)


def _added(
    query: exp.Expr, tables: Mapping[str, Table], positioned: dict[str, None]
) -> list[tuple[str, DataType]] | None:
    source = query.args.get("from_")
    if not isinstance(query, exp.Select) or source is None or query.args.get("distinct"):
        return None
    if any(isinstance(column, exp.Star) for column in query.expressions):  # of a window table function
        return None
    added: list[tuple[str, DataType]] = []
    for node in (source.this, *(join.this for join in query.args.get("joins") or ())):
        if isinstance(node, exp.Subquery):
            columns = _added(node.this, tables, positioned)
        else:
            table = tables.get(node.name) if isinstance(node, exp.Table) else None
            columns = list(_key_columns(table, positioned)) if table is not None else None
        if not columns:
            return None
        for name, type in columns:
            value = exp.column(name, table=node.alias, quoted=True)
            new = f"{_NAME}{len(added)}"
            query.append("expressions", exp.alias_(value, exp.to_identifier(new, quoted=True), copy=False))
            added.append((new, type))
    return added


def _key_columns(table: Table, positioned: dict[str, None]) -> Iterator[tuple[str, DataType]]:
    if table.key:
        types = {c.name: c.type for c in table.ddl.schema if isinstance(c, (PhysicalColumn, MetadataColumn))}
        yield from ((name, types[name]) for name in table.key)
    elif table.topic is not None:
        positioned[table.name] = None
        yield from ((column.name, column.type) for column in _POSITION)
