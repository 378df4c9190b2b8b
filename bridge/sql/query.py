"""Analyses a whole query: WITH, UNION, VALUES, parentheses and SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from bridge.expressions.type_rules import common
from bridge.expressions.typed import type_of
from bridge.schema import DataType
from bridge.sql.analysis import Analysed, Environment
from bridge.sql.clauses import refuse_clauses
from bridge.sql.distribution import union_distribution
from bridge.sql.expressions import is_constant, resolve, translate
from bridge.sql.relation import QueryColumn, Relation
from bridge.sql.scope import Scope
from bridge.sql.select import analyse_select
from bridge.sql.tree import QueryTree
from bridge.sql.window import check_distinct, united

_UNION_CLAUSES = ("this", "expression", "distinct", "with_")


def analyse(node: exp.Expr, env: Environment) -> Analysed:
    """Returns what is known about the result of a query, and the query in Spark SQL.

    Raises DdlError and UnsupportedError with line and column for everything that is unknown, illegal or not supported.
    """
    inner = replace(env, subqueries=dict(env.subqueries)) if node.args.get("with_") else env
    _analyse_with(node, inner)
    if isinstance(node, exp.Select):
        return analyse_select(node, inner, analyse)
    if isinstance(node, exp.Union):
        return _union(node, inner)
    if isinstance(node, exp.Values):
        return _values(node, env)
    if isinstance(node, exp.Subquery):
        refuse_clauses(env.tree, node, ("this",))
        return analyse(node.this, inner)
    raise env.tree.unsupported(f"{node.key.upper()} as a query", "write SELECT, UNION ALL or VALUES", node)


def _analyse_with(node: exp.Expr, env: Environment) -> None:
    """Analyses the queries of WITH; each of them may use those before it."""
    with_ = node.args.get("with_")
    if with_ is None:
        return
    if with_.args.get("recursive"):
        raise env.tree.unsupported("WITH RECURSIVE", "its result has no end in a stream", with_)
    for query in with_.expressions:
        if query.args["alias"].args.get("columns"):
            raise env.tree.unsupported("a list of columns in WITH", "name the columns with AS", query)
        if query.alias in env.subqueries:
            raise env.tree.error(f"WITH defines `{query.alias}` twice", query.args["alias"])
        env.subqueries[query.alias] = analyse(query.this, env)
    node.set("with_", None)


def _union(node: exp.Union, env: Environment) -> Analysed:
    tree = env.tree
    refuse_clauses(tree, node, _UNION_CLAUSES)
    place = node.expression
    left, right = analyse(node.this, env), analyse(node.expression, env)
    widths = len(left.relation.columns), len(right.relation.columns)
    if widths[0] != widths[1]:
        raise tree.error(f"the queries of UNION have {widths[0]} and {widths[1]} columns", place)
    columns = tuple(
        QueryColumn(one.name, _union_type(tree, i, one, other, place))
        for i, (one, other) in enumerate(zip(left.relation.columns, right.relation.columns, strict=True), 1)
    )
    node.set("this", left.spark)
    node.set("expression", right.spark)
    operations = (*left.relation.operations, *right.relation.operations, "union")
    changes = left.relation.changes or right.relation.changes
    distributions = {
        term: both
        for term, one in left.relation.distributions.items()
        if (both := union_distribution(one, right.relation.distributions.get(term))) is not None
        and _is_same_type(left.relation, right.relation, min(term))
    }
    window = united(tree, (left.relation.window, right.relation.window), place)
    relation = Relation(columns, frozenset(), changes, operations, distributions=distributions, window=window)
    if node.args.get("distinct"):
        check_distinct(tree, window, place)
    return Analysed(relation.distinct() if node.args.get("distinct") else relation, node)


def _is_same_type(one: Relation, other: Relation, index: int) -> bool:
    types = [relation.columns[index].type for relation in (one, other)]
    return types[0] is not None and types[1] is not None and types[0].spark() == types[1].spark()


def _union_type(
    tree: QueryTree, position: int, one: QueryColumn, other: QueryColumn, place: exp.Expr
) -> DataType | None:
    type = common((one.type, other.type))
    if type is None and one.type is not None and other.type is not None:
        raise tree.error(
            f"column {position} of the queries of UNION is {one.type.flink()} and {other.type.flink()}, which have no "
            "common type; CAST one of them",
            place,
        )
    return type


def _values(node: exp.Values, env: Environment) -> Analysed:
    tree = env.tree
    refuse_clauses(tree, node, ("expressions",))
    scope = Scope(tree, {})
    rows: list[list[exp.Expr]] = []
    for written in node.expressions:
        row = list(written.expressions) if isinstance(written, exp.Tuple) else [written.unnest()]
        if rows and len(row) != len(rows[0]):
            raise tree.error(f"this row has {len(row)} values, and the first row has {len(rows[0])}", written)
        for value in row:
            resolve(value, scope, aggregates=False)
            if not is_constant(value):
                raise tree.error("VALUES takes constants", value)
        rows.append([translate(value, tree) for value in row])
    columns = tuple(_value_column(tree, i, column) for i, column in enumerate(zip(*rows, strict=True)))
    names = [exp.to_identifier(c.name, quoted=True) for c in columns]
    table = exp.Values(
        expressions=[exp.Tuple(expressions=row) for row in rows],
        alias=exp.TableAlias(this=exp.to_identifier("rows", quoted=True), columns=names),
    )
    select = exp.select(*(exp.column(c.name) for c in columns)).from_(table)
    return Analysed(Relation(columns, operations=("values",)), select)


def _value_column(tree: QueryTree, index: int, values: Sequence[exp.Expr]) -> QueryColumn:
    types = [type_of(value) for value in values]
    type = common(types)
    if type is None and None not in types:
        raise tree.error(
            f"column {index + 1} of VALUES has values without a common type; CAST them", values[0]
        )
    return QueryColumn(f"EXPR${index}", type, len(values) == 1)
