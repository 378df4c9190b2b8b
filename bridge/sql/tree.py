"""A query as sqlglot's tree, whose nodes know their place in the script."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from bridge.ddl.dialect import Respelled, Tree, parse_tree, respell
from bridge.ddl.tokens import Cursor
from bridge.sql.statements import Name, QueryText, WindowCall
from bridge.sql.sums import with_wrapping_sums

Substitute = Callable[[str, int], str]
"""Returns a string of the script with its references (`${env:X}`) substituted; called with its offset."""


class QueryTree(Tree):
    """The tree of one query, and the places of its nodes in the script."""

    def __init__(self, root: exp.Expr, query: QueryText, respelled: Respelled) -> None:
        super().__init__(root, query.part, respelled)
        self._query = query

    def window(self, table: exp.Table) -> WindowCall | None:
        """Returns the window table function for which a table in FROM stands."""
        return self._query.windows.get(table.name)

    def start(self, node: exp.Expr) -> int:
        """Returns the offset in the script at which `node` starts; for a query, that of its SELECT."""
        at = super().start(node)
        if isinstance(node, exp.Query):
            selects = [
                t.start for t in self._query.tokens if t.start <= at and t.keyword in ("SELECT", "VALUES")
            ]
            at = max(selects, default=at)
        return at

    def name(self, table: exp.Table) -> Name:
        """Returns the dotted name of a table in FROM."""
        return Name(".".join(part.name for part in table.parts), self.start(table.parts[0]))


def parse_query(query: QueryText, substitute: Substitute) -> QueryTree:
    """Parses a query and substitutes references in its strings.

    Raises DdlError with the position of what cannot be parsed, and DefinitionError for references without a value.
    """
    part = query.parsed or query.part
    c = Cursor(part.source, part.tokens)
    respelled = respell(c, 0, len(part.tokens) - 1)
    root = parse_tree(c, respelled, None, "this query")
    tree = QueryTree(root, query, respelled)
    if not isinstance(root, (exp.Query, exp.Values)):
        raise tree.error("this is not a query; write SELECT or VALUES", root)
    for string in root.find_all(exp.Literal):
        if string.is_string and "${" in string.name:
            string.set("this", substitute(string.name, tree.start(string)))
    return tree


def leftmost(query: exp.Query) -> exp.Select:
    """Returns the SELECT that names the columns of a query: itself, or the first one of a UNION."""
    node: exp.Expr = query
    while not isinstance(node, exp.Select):
        node = node.this
    return node


def name_columns(query: exp.Query, names: Sequence[str]) -> None:
    """Names the columns of a query in place."""
    select = leftmost(query)
    aliased = [
        exp.alias_(node.unalias(), exp.to_identifier(name, quoted=True), copy=False)
        for node, name in zip(select.expressions, names, strict=True)
    ]
    select.set("expressions", aliased)


def comparable_text(node: exp.Expr) -> str:
    """Returns a text that is the same for equal expressions, whatever the case of their functions."""
    text = str(node.sql("spark", identify=True, normalize_functions="upper", comments=False))
    # Spark's types of times have no digits.
    digits = [cast.to.sql() for cast in node.find_all(exp.Cast) if cast.to.find(exp.DataTypeParam)]
    return f"{text} {' '.join(digits)}" if digits else text


def spark_text(tree: exp.Expr) -> str:
    """Returns Spark SQL in which all names are quoted."""
    tree = with_wrapping_sums(tree)
    return str(tree.sql("spark", identify=True, normalize_functions=False, comments=False))


Term = frozenset[int]
"""A column by its index; several columns are COALESCE of them, as the merged key columns of a full join."""

Key = frozenset[Term]
"""Columns that together identify a row, and by which a changed row replaces its former value."""


def column_term(index: int) -> Term:
    """Returns the term of one column."""
    return frozenset((index,))
