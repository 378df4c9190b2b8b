"""The clauses of a query that are supported; all others are refused by name."""

from __future__ import annotations

from sqlglot import exp

from bridge.sql.tree import QueryTree

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
