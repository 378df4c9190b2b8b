"""Rows that an inner join of tables gains when these only gain rows.

`SELECT v.id, c.at FROM views AS v JOIN clicks AS c ON v.id = c.id` gains the joined rows of the added views and all
clicks, and those of the added clicks and the views before. With every scan of a table for itself, that holds for joins
of any number of tables, also of a table with itself: one after the other scan gives its added rows, those before it
give the rows before, those after it all rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from bridge.sql.tree import spark_text


@dataclass(frozen=True)
class Scan:
    """One place in a query where a table is read; `name` stands there for the table."""

    name: str
    source: str
    apart: frozenset[str]
    """The scans of the other queries of a UNION ALL, whose rows do not meet those of this one."""


@dataclass(frozen=True)
class JoinedRows:
    """A query in Spark SQL that reads scans; see `joined_rows`."""

    spark_sql: str
    scans: tuple[Scan, ...]


def joined_rows(query: exp.Query, sources: Collection[str]) -> JoinedRows:
    """The query with a name for each scan of its `sources`. It may project, filter, join by inner joins and UNION ALL
    only, so that each of its rows comes from one row of some scans."""
    copy = query.copy()
    # A name with two underscores is no user's; numbers tell the scans of a table apart.
    nodes = [table for table in copy.find_all(exp.Table, bfs=False) if table.name in sources]
    names = {id(table): f"__scan{number}_{table.name}" for number, table in enumerate(nodes)}
    scans = []
    for table in nodes:
        apart = {names[id(other)] for other in nodes if _are_apart(table, other)}
        scans.append(Scan(names[id(table)], table.name, frozenset(apart)))
    for table in nodes:
        table.set("this", exp.to_identifier(names[id(table)], quoted=True))
    return JoinedRows(spark_text(copy), tuple(scans))


def _are_apart(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether the nodes are in different queries of a UNION."""
    above = _with_ancestors(other)
    meeting = next(node for node in _with_ancestors(one) if any(node is found for found in above))
    return one is not other and isinstance(meeting, exp.Union)


def _with_ancestors(node: exp.Expr) -> list[exp.Expr]:
    """The node and those above it, up to the query."""
    found = [node]
    while (above := found[-1].parent) is not None:
        found.append(above)
    return found
