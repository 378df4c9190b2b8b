"""Analyses a whole query: WITH, UNION, VALUES, parentheses and SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from bridge.expressions.type_rules import common
from bridge.expressions.typed import type_of
from bridge.schema import DataType
from bridge.sql.accumulators import Accumulator, accumulator
from bridge.sql.aggregates import aggregate_call
from bridge.sql.analysis import SELECT_CLAUSES, Analyse, Analysed, Environment, JoinColumn, refuse_clauses
from bridge.sql.expressions import check_condition, is_constant, resolve, translate
from bridge.sql.from_clause import analyse_from
from bridge.sql.grouping import Group, check_grouped, group_expressions, joined_groups
from bridge.sql.joins import Joined, term_of
from bridge.sql.relation import (
    Distribution,
    QueryColumn,
    Relation,
    grouped_changes,
    project_distributions,
    project_keys,
    union_distribution,
)
from bridge.sql.scope import Scope
from bridge.sql.top_n import ROW_NUMBER_TYPE, TopN, match, rank_changes, rank_keys, resolve_rank
from bridge.sql.tree import Key, QueryTree, Term, column_term, comparable_text
from bridge.sql.window import check_distinct, grouped, united, window_keys
from bridge.sql.window import ranked as ranked_window

_UNION_CLAUSES = ("this", "expression", "distinct", "with_")


def analyse(node: exp.Expr, env: Environment) -> Analysed:
    """Returns what is known about the result of a query, and the query in Spark SQL.

    Raises DdlError and UnsupportedError with line and column for everything that is unknown, illegal or not supported.
    """
    inner = replace(env, subqueries=dict(env.subqueries)) if node.args.get("with_") else env
    _analyse_with(node, inner)
    if isinstance(node, exp.Select):
        return _analyse_select(node, inner, analyse)
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


@dataclass(frozen=True)
class _Projection:
    """One column of SELECT before it is translated; `term` is the column of the scope that it is, if it is one."""

    name: str
    node: exp.Expr
    term: Term | None
    text: str
    is_constant: bool


def _analyse_select(
    select: exp.Select, env: Environment, analyse: Analyse, ranked: TopN | None = None
) -> Analysed:
    """Analyses a SELECT and translates it in place. `analyse` is called for the subqueries in FROM.

    `ranked` says that this SELECT is the inner one of a Top-N. Raises DdlError and UnsupportedError, with the position,
    for unknown names, illegal expressions, and everything that is not supported.
    """
    tree = env.tree
    refuse_clauses(tree, select, SELECT_CLAUSES)
    top = match(select)

    def subquery(node: exp.Expr, inner_env: Environment) -> Analysed:
        if top is not None and node is top.inner:
            return _analyse_select(top.inner, inner_env, analyse, top)
        return analyse(node, inner_env)

    scope, joined = analyse_from(select, env, subquery)
    _expand_stars(select, scope)
    # In the order of the text, so that the first mistake is reported.
    projections = _projections(select, scope, ranked)
    where, having = select.args.get("where"), select.args.get("having")
    if where is not None:
        resolve(where.this, scope, aggregates=False)
    groups = group_expressions(select, scope)
    if having is not None:
        resolve(having.this, scope, aggregates=True)
    input_relation = _input(scope, joined)
    partition = resolve_rank(ranked, scope, input_relation, env) if ranked else None
    aggregates = bool(groups) or having is not None or _has_aggregate(projections)
    window = joined.window
    if aggregates:
        window = grouped(tree, window, [term_of(group.node) for group in groups], select)
        check_grouped(tree, [p.node for p in projections] + ([having.this] if having else []), groups)
    is_distinct = bool(select.args.get("distinct"))
    found_accumulators: tuple[Accumulator | None, ...] = ()
    if aggregates and having is None and joined.changes is None and not is_distinct:
        texts = {group.text for group in groups}
        found_accumulators = tuple(
            accumulator(p.node, is_group=p.text in texts or p.is_constant) for p in projections
        )
    columns = _translate(select, tree, projections, scope, ranked)
    if aggregates and not groups:
        _leave_out_empty(select)
    relation = _relation(columns, projections, replace(joined, window=window), groups if aggregates else None)
    if ranked is not None and partition is not None:
        row_number = column_term(scope.width)
        keys = rank_keys(ranked, partition.terms, row_number, joined.keys)
        numbers = [i for i, p in enumerate(projections) if p.node is ranked.window]
        outputs = _outputs(projections) | {row_number: numbers}
        window = ranked_window(tree, window, partition.terms or (), ranked.window)
        expressions = partition.keys([p.text for p in projections], numbers, ranked.limit)
        relation = replace(
            relation,
            keys=project_keys(window_keys(keys, window), outputs, joined.equal) | frozenset(expressions),
            changes=None if window is not None else rank_changes(ranked),
            window=window and window.projected(outputs),
            operations=(*joined.operations, "top-n"),
            # Ranks are those of a whole partition.
            distributions=_distributions(joined, {t: outputs.get(t, ()) for t in partition.terms or ()}),
        )
    found = joined_groups(select, scope, groups, _selected(groups, projections)) if groups else None
    if is_distinct:
        check_distinct(tree, relation.window, select)
    is_plain = not aggregates and not is_distinct and ranked is None
    column = _join_column(scope, joined) if is_plain else None
    return Analysed(
        relation.distinct() if is_distinct else relation, select, found, found_accumulators, column
    )


def _join_column(scope: Scope, joined: Joined) -> JoinColumn | None:
    for term in sorted((t for t in joined.distributions if len(t) == 1), key=min):
        index = min(term)
        item, column = scope.owner(index), scope.column(index)
        if column.type is not None and "join" in joined.operations:
            node = exp.column(column.name, table=item.alias, quoted=True)
            return JoinColumn(node, column.type, joined.distributions[term])
    return None


def _expand_stars(select: exp.Select, scope: Scope) -> None:
    expanded: list[exp.Expr] = []
    for projection in select.expressions:
        if isinstance(projection, exp.Star):
            if (
                projection.args.get("except_")
                or projection.args.get("replace")
                or projection.args.get("rename")
            ):
                raise scope.tree.unsupported("EXCEPT or REPLACE of *", "list the columns", projection)
            expanded += scope.star(None, projection)
        elif isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star):
            expanded += scope.star(projection.table, projection.this)
        else:
            expanded.append(projection)
    select.set("expressions", expanded)


def _input(scope: Scope, joined: Joined) -> Relation:
    columns = tuple(c for item in scope.items for c in item.relation.columns)
    return Relation(columns, joined.keys, joined.changes, joined.operations)


def _projections(select: exp.Select, scope: Scope, ranked: TopN | None) -> list[_Projection]:
    found = []
    for index, written in enumerate(select.expressions):
        node = written.unalias()
        name = written.alias or (node.name if isinstance(node, exp.Column) else f"EXPR${index}")
        if ranked is not None and node is ranked.window:
            found.append(_Projection(name, node, None, "", False))
            continue
        resolve(node, scope, aggregates=True)
        term = term_of(node)
        inherited = term is not None and len(term) == 1 and scope.column(min(term)).is_constant
        found.append(_Projection(name, node, term, comparable_text(node), inherited or is_constant(node)))
    return found


def _has_aggregate(projections: list[_Projection]) -> bool:
    return any(aggregate_call(node) for p in projections for node in p.node.walk())


def _translate(
    select: exp.Select, tree: QueryTree, projections: list[_Projection], scope: Scope, ranked: TopN | None
) -> tuple[QueryColumn, ...]:
    """Translates all clauses in place; returns the columns of the result."""
    group = select.args.get("group")
    for clause in ("where", "having"):
        if select.args.get(clause) is not None:
            check_condition(translate(select.args[clause].this, tree), tree)
    for expression in list(group.expressions) if group is not None else ():
        translate(expression, tree)
    columns, spark = [], []
    for projection in projections:
        is_rank = ranked is not None and projection.node is ranked.window
        node = projection.node if is_rank else translate(projection.node, tree)
        type = ROW_NUMBER_TYPE if is_rank else type_of(node)
        event_time = _event_time(projection, scope)
        columns.append(QueryColumn(projection.name, type, projection.is_constant, event_time))
        spark.append(exp.alias_(node, exp.to_identifier(projection.name, quoted=True), copy=False))
    select.set("expressions", spark)
    return tuple(columns)


def _with_equal(
    outputs: dict[Term, list[int]], equal: Mapping[Term, Iterable[Term]]
) -> dict[Term, list[int]]:
    """The columns that are exactly a term, or a term that an inner join makes equal to it."""
    return {
        term: [i for same in (term, *sorted(equal.get(term, ()), key=min)) for i in outputs.get(same, ())]
        for term in {*outputs, *equal}
    }


def _event_time(projection: _Projection, scope: Scope) -> str | None:
    """A time attribute stays one where a SELECT has one table and does not change the column."""
    if projection.term is None or len(projection.term) != 1 or len(scope.items) != 1:
        return None
    return scope.column(min(projection.term)).event_time


def _outputs(projections: list[_Projection]) -> dict[Term, list[int]]:
    outputs: dict[Term, list[int]] = {}
    for index, projection in enumerate(projections):
        if projection.term is not None:
            outputs.setdefault(projection.term, []).append(index)
    return outputs


def _leave_out_empty(select: exp.Select) -> None:
    """Without GROUP BY an aggregate of no rows is a row in Spark. In Flink there is none until the first row comes, and
    none again when the last one is deleted."""
    select.having("COUNT(*) > 0", dialect="spark", copy=False)


def _distributions(joined: Joined, outputs: Mapping[Term, Iterable[int]]) -> dict[Term, Distribution]:
    found = project_distributions(joined.distributions, outputs)
    return {column_term(index): distribution for index, distribution in found.items()}


def _selected(groups: Sequence[Group], projections: Sequence[_Projection]) -> dict[str, list[int]]:
    """The columns of the result that are exactly an expression of GROUP BY, by its text."""
    return {group.text: [n for n, p in enumerate(projections) if p.text == group.text] for group in groups}


def _relation(
    columns: tuple[QueryColumn, ...],
    projections: list[_Projection],
    joined: Joined,
    groups: Sequence[Group] | None,
) -> Relation:
    if groups is None:
        outputs = _outputs(projections)
        keys = project_keys(window_keys(joined.keys, joined.window), outputs, joined.equal)
        distributions = _distributions(joined, outputs)
        window = joined.window and joined.window.projected(_with_equal(outputs, joined.equal))
        return Relation(
            columns, keys, joined.changes, joined.operations, distributions=distributions, window=window
        )
    key: Key = frozenset(column_term(i) for i in range(len(groups)))
    selected = _selected(groups, projections)
    places: dict[Term, list[int]] = {}
    for i, group in enumerate(groups):
        if (term := term_of(group.node)) is not None:
            places.setdefault(term, []).append(i)
    group_keys = window_keys([key], joined.window and joined.window.projected(places))
    keys = project_keys(group_keys, {column_term(i): selected[group.text] for i, group in enumerate(groups)})
    grouped_terms = {term: selected[groups[indexes[-1]].text] for term, indexes in places.items()}
    names = tuple(g.text.replace("`", "").split(".")[-1] for g in groups)
    window = joined.window and joined.window.projected(grouped_terms)
    return Relation(
        columns,
        keys,
        grouped_changes(joined.changes, names) if window is None else None,
        (*joined.operations, "aggregate"),
        names,
        _distributions(joined, grouped_terms),
        window,
    )
