"""What the analysis of a query reads and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from bridge.schema import DataType
from bridge.sql.accumulators import Accumulator
from bridge.sql.grouping import JoinedGroups
from bridge.sql.relation import Distribution, Relation
from bridge.sql.scope import Catalogue, Reads
from bridge.sql.tree import QueryTree


@dataclass(frozen=True)
class JoinColumn:
    """A column of a SELECT's FROM by which its joined rows are computed in parts, whether it is selected or not."""

    node: exp.Column
    type: DataType
    distribution: Distribution


@dataclass(frozen=True)
class Analysed:
    """A query that is analysed: what is known about its result, and the query in Spark SQL."""

    relation: Relation
    spark: exp.Query
    groups: JoinedGroups | None = None
    """Those of an aggregate over a join; None for every other query, and for one that selects from such a query."""
    accumulators: tuple[Accumulator | None, ...] = ()
    """Of the columns of an aggregate whose input only adds rows; empty for every other query."""
    join_column: JoinColumn | None = None
    """That of a join whose rows are projected and filtered only."""


@dataclass
class Environment:
    """What a query may refer to. `reads` collects the columns of tables that it uses, `views` the views."""

    tree: QueryTree
    catalogue: Catalogue
    reads: Reads = field(default_factory=dict)
    views: dict[str, None] = field(default_factory=dict)
    positioned: dict[str, None] = field(default_factory=dict)
    """The topics of whose rows it needs the positions; see `positions`."""
    subqueries: dict[str, Analysed] = field(default_factory=dict)
    """The queries of WITH, by name; they hide tables and views of the same name."""


Analyse = Callable[[exp.Expr, Environment], Analysed]
"""Analyses a query inside of another one."""


_RESERVED = frozenset(
    (
        "ALL AND ANY AS BETWEEN BY CASE CAST CROSS DISTINCT ELSE END EXCEPT EXISTS FALSE FETCH FILTER FOR FROM FULL "
        "GROUP HAVING IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT NATURAL NOT NULL OFFSET ON OR "
        "ORDER OUTER OVER PARTITION RIGHT ROW ROWS SELECT SET SOME TABLE TABLESAMPLE THEN TRUE UNION UNKNOWN USING "
        "VALUES WHEN WHERE WINDOW WITH WITHIN"
    ).split()
)
"""Words that Flink reserves, which sqlglot takes for aliases where they have no other meaning."""

SELECT_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")
_NAMES = {
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
}
_WAY_OUT = {
    "order": "a table has no order; remove it, or use ROW_NUMBER() OVER (...) <= n",
    "limit": "a result that is kept up to date has no limit; use ROW_NUMBER() OVER (...) <= n",
}


def refuse_clauses(tree: QueryTree, query: exp.Expr, legal: tuple[str, ...]) -> None:
    """Raises UnsupportedError for clauses of a query that are not in `legal`."""
    for clause, value in query.args.items():
        if value and clause not in legal:
            node = value[0] if isinstance(value, list) else value
            what = _NAMES.get(clause, clause.rstrip("_").replace("_", " ").upper())
            at = node if isinstance(node, exp.Expr) else query
            raise tree.unsupported(what, _WAY_OUT.get(clause, "remove it"), at)
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        raise tree.unsupported("DISTINCT ON", "use ROW_NUMBER() OVER (...) <= 1", distinct)


def refuse_reserved_aliases(tree: QueryTree) -> None:
    """Raises DdlError for an alias that is a reserved word and not quoted: something is missing before or after it."""
    for node in tree.root.find_all(exp.Alias, exp.TableAlias):
        alias = node.args.get("alias") if isinstance(node, exp.Alias) else node.this
        if isinstance(alias, exp.Identifier) and not alias.quoted and alias.name.upper() in _RESERVED:
            raise tree.error(
                f"{alias.name.upper()} is a reserved word and no name; quote it with `...`, or complete what it begins",
                alias,
            )
