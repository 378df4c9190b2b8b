"""The clauses of a query that are supported; all others are refused by name."""

from __future__ import annotations

from sqlglot import exp

from bridge.sql.tree import QueryTree

__all__ = ["SELECT_CLAUSES", "refuse_clauses"]

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
