"""Finds rows for which a query fails, by their key, and leaves them out where the user chose so.

Each SELECT is looked at for itself. Of the expressions that are computed for each row of its FROM (WHERE, columns,
GROUP BY, arguments of aggregates) a row fails where the first of them does; so does a row of one table for its side of
ON, and a pair of rows for a part of ON that has columns of both. Of what is computed of a group (HAVING, and columns
around aggregates) the group fails. Columns that no query around it reads are not computed, as in Flink.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from bridge.expressions.failures import (
    failure,
    failure_where,
    first_failure,
    is_of_rows,
    text_of,
    without_failures,
)
from bridge.sql.aggregates import aggregate_call
from bridge.sql.connectors import Table
from bridge.sql.joins import conjuncts
from bridge.sql.positions import POSITION_COLUMNS
from bridge.sql.tree import leftmost, spark_text
from bridge.sql.window_tables import settle_windows

Needed = Collection[int] | None
"""The columns of a query that are read, by their place; None for all."""


def items(select: exp.Select) -> list[exp.Expr]:
    """Returns the tables and subqueries in FROM."""
    return [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]


def has_aggregate(node: exp.Expr) -> bool:
    """Returns whether an aggregate function is called."""
    return any(aggregate_call(part) for part in node.walk())


def is_of_several(rows: exp.Select) -> bool:
    """Returns whether it depends on several rows of a table which rows there are, or what they have."""
    return (
        has_aggregate(rows)
        or rows.find(exp.Group, exp.Window, exp.Distinct) is not None
        or any(join.side for join in rows.find_all(exp.Join))
        or any(union.args.get("distinct") for union in rows.find_all(exp.Union))
    )


def arguments(parts: list[exp.Expr]) -> Iterator[exp.Expr | None]:
    """Yields why what aggregates compute for each row fails: with FILTER only for rows that it takes."""
    for node in (node for part in parts for node in part.walk()):
        aggregate = aggregate_call(node)
        if aggregate is None:
            continue
        fails = first_failure(failure(argument) for argument in aggregate.arguments)
        is_filtered = isinstance(aggregate.node, exp.Filter)
        yield failure_where(aggregate.node.expression.this, fails) if is_filtered else fails


def names(parts: list[exp.Expr]) -> Mapping[str, set[str]] | None:
    """Returns the columns that are read, by the alias of their table; None if it may be any."""
    found: dict[str, set[str]] = {}
    for node in (node for part in parts for node in part.walk()):
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Anonymous):
            return None
        if isinstance(node, exp.Column):
            table, *names = (part.name for part in node.parts)
            if not names:
                return None
            found.setdefault(table, set()).add(names[0])
    return found


def places(item: exp.Subquery, read: Mapping[str, set[str]] | None) -> Needed:
    """Returns the columns of a subquery that are `read`, which are `names`."""
    columns = leftmost(item).expressions
    if read is None or any(isinstance(column, exp.Star) for column in columns):
        return None
    own = read.get(item.alias, set())
    return {n for n, column in enumerate(columns) if column.alias_or_name in own}


def sides(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the conditions of ON, and both sides of those that compare tables."""
    for part in conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ)) and len(owners(part)) > 1:
            yield from (part.left, part.right)
        else:
            yield part


def is_equality(part: exp.Expr, joined: str) -> bool:
    """Returns whether rows of the table that is `joined` are found by it: one side has its columns, the other not."""
    if not isinstance(part, (exp.EQ, exp.NullSafeEQ)):
        return False
    one, other = owners(part.left), owners(part.right)
    return {joined} in (one, other) and bool(one and other) and one.isdisjoint(other)


def owners(part: exp.Expr) -> set[str]:
    """Returns the aliases of the tables whose columns it has."""
    return {column.parts[0].name for column in part.find_all(exp.Column)}


REASON = "__reason"
_NAME = "__failing"


@dataclass(frozen=True)
class FailingRows:
    """The rows, pairs or groups for which a SELECT fails, in Spark SQL: REASON, and a column for each of `columns`,
    which are their keys and positions in `sources`. Each may be there several times."""

    sources: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    """The table and its column; of a group no table, and what it is grouped by."""
    has_no_key: bool
    """Whether these columns do not tell the rows of each source apart."""
    of_several: bool
    """Whether rows fail that depend on several rows of a source, such as groups, so that all rows are needed."""
    spark_sql: str
    stop: bool
    """Whether they stop the run; else the query leaves them out."""

    @property
    def positioned(self) -> frozenset[str]:
        """The sources whose rows are known by POSITION_COLUMNS."""
        return frozenset(table for table, name in self.columns if table and name == POSITION_COLUMNS[0].name)


def leave_out_failing(
    query: exp.Query,
    tables: Mapping[str, Table],
    positioned: Collection[str],
    *,
    stop: bool,
    is_windowed: bool = False,
) -> tuple[FailingRows, ...]:
    """Leaves out, in place, rows for which a translated query fails; returns these. `tables` are those that it reads,
    by name; topics without a key, and those that are `positioned`, have POSITION_COLUMNS. With `stop` the query stays
    as it is. `is_windowed`: its rows come when their windows close."""
    guard = _Guard(tables, positioned, stop, is_windowed)
    guard.query(query.copy() if stop else query, None)
    return tuple(guard.found)


class _Guard:
    def __init__(
        self, tables: Mapping[str, Table], positioned: Collection[str], stop: bool, is_windowed: bool
    ) -> None:
        self.tables, self.positioned, self.stop, self.is_windowed = tables, positioned, stop, is_windowed
        self.found: list[FailingRows] = []

    def query(self, node: exp.Expr, needed: Needed) -> None:
        if isinstance(node, exp.Union):
            both = None if node.args.get("distinct") else needed
            self.query(node.this, both)
            self.query(node.expression, both)
        elif isinstance(node, exp.Subquery):
            self.query(node.this, needed)
        elif isinstance(node, exp.Select) and node.args.get("from_") is not None:
            self._select(node, None if node.args.get("distinct") else needed)

    def _select(self, select: exp.Select, needed: Needed) -> None:
        read = _read(select, needed)
        where, group, having = (select.args.get(clause) for clause in ("where", "group", "having"))
        groups = list(group.expressions) if group is not None else []
        joins = select.args.get("joins") or []
        rest = [part for part in (where, having) if part is not None]
        read_names = names([*read, *groups, *rest, *(join.args.get("on") or exp.Star() for join in joins)])
        for item in items(select):
            if isinstance(item, exp.Subquery):
                self.query(item.this, places(item, read_names))
        for place, join in enumerate(joins):
            if join.args.get("on") is not None:
                self._sides(join, items(select))
                self._pairs(select, place)
        is_grouped = bool(groups) or any(map(has_aggregate, [*read, *rest]))
        computed = [failure(node) for node in (groups if is_grouped else read)]
        if is_grouped:
            computed += arguments([*read, *rest])
        fails = failure_where(where and where.this, first_failure(computed))
        if fails is not None:
            self._add(select, fails)
            _compute_safely(select, is_of_rows if is_grouped else None)
            select.where(_is_null(fails), copy=False)
        if not is_grouped:
            return
        fails = failure_where(having and having.this, first_failure(map(failure, _read(select, needed))))
        if fails is not None:
            self._add(select, fails, ("where", "group"))
            _compute_safely(select, None)
            select.having(_is_null(fails), copy=False)

    def _sides(self, join: exp.Join, tables: list[exp.Expr]) -> None:
        """Leaves out the rows of one table for which its part of ON fails."""
        for item in tables:
            tests = [part for part in sides(join.args["on"]) if owners(part) == {item.alias_or_name}]
            fails = None
            for test in reversed(tests):
                is_condition = test.arg_key == "on" or isinstance(test.parent, (exp.And, exp.Paren))
                fails = failure_where(test, fails) if is_condition else first_failure([failure(test), fails])
            if fails is None:
                continue
            rows = exp.select("*").from_(item.copy())
            self._add(rows, fails)
            rows.where(_is_null(fails), copy=False)
            alias = exp.TableAlias(this=exp.to_identifier(item.alias_or_name, quoted=True))
            item.replace(exp.Subquery(this=rows, alias=alias))
            for test in tests:
                test.replace(without_failures(test))

    def _pairs(self, select: exp.Select, place: int) -> None:
        """Leaves out the pairs of rows for which a part of ON fails that has columns of both, beside the equalities by
        which they meet."""
        joins = select.args["joins"]
        join = joins[place]
        parts = list(conjuncts(join.args["on"]))
        is_mixed = [len(owners(p)) > 1 and not is_equality(p, join.alias_or_name) for p in parts]
        mixed = [part for part, is_one in zip(parts, is_mixed, strict=True) if is_one]
        others = [part for part, is_one in zip(parts, is_mixed, strict=True) if not is_one]
        fails = None
        for part in reversed(mixed):
            fails = failure_where(part, fails)
        if fails is None or not others:
            return
        met = exp.Join(this=join.this.copy(), on=exp.and_(*others))
        pairs = exp.Select(from_=select.args["from_"].copy(), joins=[*(j.copy() for j in joins[:place]), met])
        self._add(pairs, fails)
        join.set("on", exp.and_(*others, *map(without_failures, mixed), _is_null(fails)))

    def _add(self, select: exp.Select, fails: exp.Expr, of_group: Collection[str] = ()) -> None:
        """Adds what fails of a SELECT: its rows, or its groups, which need the clauses `of_group`, too."""
        rows = exp.Select(expressions=[exp.alias_(fails.copy(), REASON, quoted=True)])
        for clause in ("from_", "joins", *of_group):
            value = select.args.get(clause)
            rows.set(clause, [v.copy() for v in value] if isinstance(value, list) else value and value.copy())
        keys = [_group_key(rows)] if of_group else [self._keys(item) for item in items(rows)]
        columns: list[tuple[str, str]] = []
        for table, name, column in (key for found in keys for key in found or ()):
            rows.append("expressions", exp.alias_(column, f"{_NAME}{len(columns)}", quoted=True))
            columns.append((table, name))
        has_no_key = not all(keys)
        of_several = is_of_several(rows)
        settle_windows(rows, is_closed=of_several and self.is_windowed)
        alias = exp.TableAlias(this=exp.to_identifier("rows", quoted=True))
        reason = exp.column(REASON, quoted=True)
        failing = exp.select("*").from_(exp.Subquery(this=rows, alias=alias))
        failing = failing.where(exp.Not(this=exp.Is(this=reason, expression=exp.null())))
        sources = [t.name for t in rows.find_all(exp.Table) if t.name in self.tables]
        self.found.append(
            FailingRows(
                tuple(dict.fromkeys(sources)),
                tuple(columns),
                has_no_key,
                of_several,
                spark_text(failing),
                self.stop,
            )
        )

    def _keys(self, item: exp.Expr) -> list[tuple[str, str, exp.Expr]]:
        """The keys and positions of the rows in FROM: table, column, and the column as it is selected now; empty where
        they are those of no rows of tables."""
        if isinstance(item, exp.Table):
            table = self.tables.get(item.name)
            if table is None:
                return []
            has_positions = table.name in self.positioned or (not table.key and table.topic is not None)
            positions = [c.name for c in POSITION_COLUMNS] if has_positions else []
            return [
                (table.name, name, exp.column(name, table=item.alias_or_name, quoted=True))
                for name in (*table.key, *positions)
            ]
        select = item.this
        if not isinstance(select, exp.Select) or select.args.get("distinct") or not select.args.get("from_"):
            return []
        is_grouped = select.args.get("group") or any(map(has_aggregate, select.expressions))
        keys = [_group_key(select)] if is_grouped else [self._keys(one) for one in items(select)]
        found: list[tuple[str, str, exp.Expr]] = []
        for source, name, column in (key for one in keys for key in one if all(keys)):
            shown = f"{_NAME}_{len(found)}"
            select.append("expressions", exp.alias_(column, shown, quoted=True))
            found.append((source, name, exp.column(shown, table=item.alias_or_name, quoted=True)))
        return found


def _read(select: exp.Select, needed: Needed) -> list[exp.Expr]:
    """The columns of a SELECT that are read, as they are now."""
    return [p.unalias() for n, p in enumerate(select.expressions) if needed is None or n in needed]


def _is_null(fails: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.paren(fails.copy()), expression=exp.null())


def _group_key(select: exp.Select) -> list[tuple[str, str, exp.Expr]]:
    """The columns of GROUP BY, which are of no table."""
    nodes = select.args["group"].expressions if select.args.get("group") else []
    return [("", n.name if isinstance(n, exp.Column) else text_of(n), n.copy()) for n in nodes]


def _compute_safely(select: exp.Select, which: Callable[[exp.Expr], bool] | None) -> None:
    """Makes WHERE, GROUP BY, HAVING and columns NULL where they fail; of HAVING and columns only the parts `which`."""
    for clause in ("where", "group"):
        if select.args.get(clause) is not None:
            select.set(clause, without_failures(select.args[clause]))
    for part in [*select.expressions, *([select.args["having"]] if select.args.get("having") else [])]:
        for node in [part] if which is None else [n for n in part.walk(prune=which) if which(n)]:
            node.replace(without_failures(node))
