"""GROUP BY: its expressions, and that the other expressions use nothing else outside of aggregate functions.

An aggregate over inner joins may be grouped by a column that not every source has:
`SELECT u.city, COUNT(*) FROM orders AS o JOIN users AS u ON o.user_id = u.id GROUP BY u.city` is computed in parts by
`users.city`, although a change of an order names no city. Which groups a batch changes is asked of the join itself: of
the changed rows of one source, joined to all rows of the others, those before their changes included. An inner join has
no other way to gain or lose a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from bridge.expressions.failures import note_of_rows
from bridge.sql.aggregates import aggregate_call
from bridge.sql.expressions import resolve
from bridge.sql.joins import term_of
from bridge.sql.relation import Distribution
from bridge.sql.scope import Scope
from bridge.sql.tree import QueryTree, column_term, comparable_text


@dataclass(frozen=True)
class Group:
    """An expression of GROUP BY; `text` is the same for equal expressions."""

    node: exp.Expr
    text: str


def group_expressions(select: exp.Select, scope: Scope) -> list[Group]:
    """Resolves the expressions of GROUP BY; empty without GROUP BY.

    Raises UnsupportedError for GROUPING SETS and the like, and DdlError for positions, which only Spark knows.
    """
    group = select.args.get("group")
    if group is None:
        return []
    for clause, value in group.args.items():
        if value and clause != "expressions":
            what = f"GROUP BY {clause.replace('_', ' ').upper()}"
            raise scope.tree.unsupported(what, "list the columns", group)
    for node in group.expressions:
        if isinstance(node, (exp.GroupingSets, exp.Cube, exp.Rollup)):
            raise scope.tree.unsupported(f"GROUP BY {node.key.upper()}", "group by one set of columns", node)
        if isinstance(node.unnest(), exp.Literal):
            raise scope.tree.error("GROUP BY takes columns, not positions; write the expression", node)
        resolve(node, scope, aggregates=False)
    return [Group(node, comparable_text(node)) for node in group.expressions]


def check_grouped(tree: QueryTree, expressions: Sequence[exp.Expr], groups: Sequence[Group]) -> None:
    """Raises DdlError, with Flink's message, for a column that is neither grouped nor in an aggregate function. Notes
    which parts are grouped or aggregates: they have their values before the rest is computed of a group."""
    texts = {group.text for group in groups}
    for expression in expressions:
        _check(tree, expression, texts)


def _check(tree: QueryTree, node: exp.Expr, texts: set[str]) -> None:
    if aggregate_call(node) is not None or comparable_text(node) in texts:
        note_of_rows(node)
        return
    if isinstance(node, exp.Column):
        raise tree.error(
            f"Expression '{node.name}' is not being grouped; add it to GROUP BY, or use it in an aggregate function",
            node,
        )
    for child in node.iter_expressions():
        if not isinstance(child, exp.Identifier):
            _check(tree, child, texts)


@dataclass(frozen=True)
class JoinedGroups:
    """`columns` are the distributions of the grouped columns of the result, by index; `join` is what the query selects
    from, with its WHERE."""

    columns: Mapping[int, Distribution]
    join: exp.Select

    def query(self, names: Mapping[int, str]) -> exp.Select:
        """The groups of the joined rows, each once: the columns of these indexes, with these names."""
        chosen = [e for e in self.join.expressions if int(e.alias) in names]
        columns = [
            exp.alias_(e.unalias().copy(), exp.to_identifier(names[int(e.alias)], quoted=True))
            for e in chosen
        ]
        query = self.join.copy()
        query.set("expressions", columns)
        return query.distinct()


def joined_groups(
    select: exp.Select, scope: Scope, groups: Sequence[Group], selected: Mapping[str, Sequence[int]]
) -> JoinedGroups | None:
    """The groups of a translated SELECT; `selected` are the columns of the result by the text of a group. None for
    anything but an inner join of tables, each there once, and of projected and filtered ones; and without a column in
    GROUP BY."""
    if not _is_inner_join(select, scope):
        return None
    columns: dict[int, Distribution] = {}
    nodes: list[exp.Expr] = []
    for group in groups:
        term = term_of(group.node)
        if term is None or len(term) != 1 or not selected[group.text]:
            continue
        (index,) = term
        item = scope.owner(index)
        distribution = item.relation.distributions.get(column_term(index - item.first))
        if distribution is None:
            continue
        at = selected[group.text][0]
        columns[at] = distribution
        nodes.append(exp.alias_(group.node.copy(), str(at)))
    if not columns:
        return None
    join = exp.Select(expressions=nodes)
    for clause in ("from_", "joins", "where"):
        value = select.args.get(clause)
        join.set(clause, [v.copy() for v in value] if isinstance(value, list) else value and value.copy())
    return JoinedGroups(columns, join)


def _is_inner_join(select: exp.Select, scope: Scope) -> bool:
    """Whether each row comes from one row of each table, and no table is there twice."""
    parts = [select.args["from_"], *(select.args.get("joins") or ())] if select.args.get("from_") else []
    tables = [table.name for part in parts for table in part.find_all(exp.Table)]
    is_outer = any(join.side for part in parts for join in part.find_all(exp.Join))
    relations = [item.relation for item in scope.items]
    is_plain = all(r.window is None and not set(r.operations) - {"join"} for r in relations)
    return len(parts) > 1 and len(set(tables)) == len(tables) and not is_outer and is_plain
