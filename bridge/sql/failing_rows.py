"""Rows for which a query fails: they are found by their key, and left out where the user chose so.

Each SELECT is looked at for itself. Of the expressions that are computed for each row of its FROM (WHERE, columns,
GROUP BY, arguments of aggregates) a row fails where the first of them does; so does a row of one table for its side of
ON. Columns that no query around it reads are not computed, as in Flink. What is computed of groups fails as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from bridge.expressions.failures import failure, failure_where, first_failure, without_failures
from bridge.sql.aggregates import aggregate_call
from bridge.sql.connectors import Table
from bridge.sql.joins import conjuncts
from bridge.sql.positions import POSITION_COLUMNS
from bridge.sql.tree import leftmost, spark_text
from bridge.sql.window_tables import settle_windows

__all__ = ["REASON", "FailingRows", "leave_out_failing"]

REASON = "__reason"
_NAME = "__failing"
Needed = Collection[int] | None
"""The columns of a query that are read, by their place; None for all."""


@dataclass(frozen=True)
class FailingRows:
    """The rows for which a SELECT fails, in Spark SQL: REASON, and a column for each of `columns`, which are the keys
    and positions of the rows of `sources`. Each row is there once, unless a source `has_no_key`."""

    sources: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    """The table and its column."""
    has_no_key: bool
    spark_sql: str
    stop: bool
    """Whether they stop the run; else the query leaves them out."""


def leave_out_failing(
    query: exp.Query, tables: Mapping[str, Table], positioned: Collection[str], *, stop: bool
) -> tuple[FailingRows, ...]:
    """Leaves out, in place, rows for which a translated query fails; returns these. `tables` are those that it reads,
    by name, and `positioned` those that have POSITION_COLUMNS. With `stop` the query stays as it is."""
    guard = _Guard(tables, positioned, stop)
    guard.query(query.copy() if stop else query, None)
    return tuple(guard.found)


class _Guard:
    def __init__(self, tables: Mapping[str, Table], positioned: Collection[str], stop: bool) -> None:
        self.tables, self.positioned, self.stop = tables, positioned, stop
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
        read = [p.unalias() for n, p in enumerate(select.expressions) if needed is None or n in needed]
        where, group = select.args.get("where"), select.args.get("group")
        groups = list(group.expressions) if group is not None else []
        joins = select.args.get("joins") or []
        rest = [part for part in (where, select.args.get("having")) if part is not None]
        names = _names([*read, *groups, *rest, *(join.args.get("on") or exp.Star() for join in joins)])
        items = [select.args["from_"].this, *(join.this for join in joins)]
        for item in items:
            if isinstance(item, exp.Subquery):
                self.query(item.this, _places(item, names))
        for join in joins:
            if join.args.get("on") is not None:
                self._sides(join, items)
        items = [select.args["from_"].this, *(join.this for join in joins)]
        is_grouped = bool(groups) or any(aggregate_call(n) for p in [*read, *rest] for n in p.walk())
        computed = [failure(node) for node in (groups if is_grouped else read)]
        if is_grouped:
            computed += _arguments([*read, *rest])
        fails = failure_where(where and where.this, first_failure(computed))
        if fails is None:
            return
        self._add(select, items, fails)
        _compute_safely(select, groups if is_grouped else None)
        select.where(exp.Is(this=exp.paren(fails.copy()), expression=exp.null()), copy=False)

    def _sides(self, join: exp.Join, items: list[exp.Expr]) -> None:
        """Leaves out the rows of one table for which its part of ON fails."""
        for item in items:
            tests = [part for part in _parts(join.args["on"]) if _owners(part) == {item.alias_or_name}]
            fails = None
            for test in reversed(tests):
                is_condition = test.arg_key == "on" or isinstance(test.parent, (exp.And, exp.Paren))
                fails = failure_where(test, fails) if is_condition else first_failure([failure(test), fails])
            if fails is None:
                continue
            rows = exp.select("*").from_(item.copy())
            self._add(rows, [rows.args["from_"].this], fails)
            rows.where(exp.Is(this=exp.paren(fails.copy()), expression=exp.null()), copy=False)
            alias = exp.TableAlias(this=exp.to_identifier(item.alias_or_name, quoted=True))
            item.replace(exp.Subquery(this=rows, alias=alias))
            for test in tests:
                test.replace(without_failures(test))

    def _add(self, select: exp.Select, items: list[exp.Expr], fails: exp.Expr) -> None:
        rows = exp.Select(expressions=[exp.alias_(fails.copy(), REASON, quoted=True)])
        for clause in ("from_", "joins"):
            value = select.args.get(clause)
            rows.set(clause, [v.copy() for v in value] if isinstance(value, list) else value and value.copy())
        copies = [rows.args["from_"].this, *(join.this for join in rows.args.get("joins") or [])]
        keys = [self._keys(item) for item in copies]
        columns: list[tuple[str, str]] = []
        for table, name, column in (key for found in keys for key in found or ()):
            rows.append("expressions", exp.alias_(column, f"{_NAME}{len(columns)}", quoted=True))
            columns.append((table, name))
        has_no_key = not all(keys)
        settle_windows(rows, is_closed=False)
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
                spark_text(failing if has_no_key else failing.distinct()),
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
            positions = [c.name for c in POSITION_COLUMNS] if table.name in self.positioned else []
            return [
                (table.name, name, exp.column(name, table=item.alias_or_name, quoted=True))
                for name in (*table.key, *positions)
            ]
        select = item.this
        if not isinstance(select, exp.Select) or select.args.get("distinct") or not select.args.get("from_"):
            return []
        if select.args.get("group") or any(aggregate_call(n) for p in select.expressions for n in p.walk()):
            return []
        inner = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
        keys = [self._keys(one) for one in inner]
        found: list[tuple[str, str, exp.Expr]] = []
        for source, name, column in (key for one in keys for key in one if all(keys)):
            shown = f"{_NAME}_{len(found)}"
            select.append("expressions", exp.alias_(column, shown, quoted=True))
            found.append((source, name, exp.column(shown, table=item.alias_or_name, quoted=True)))
        return found


def _compute_safely(select: exp.Select, groups: list[exp.Expr] | None) -> None:
    """Makes what is computed for each row NULL where it fails; of an aggregate, what is computed of its `groups` fails
    as it is."""
    texts = {spark_text(node) for node in groups or ()}
    for clause in ("where", "group"):
        if select.args.get(clause) is not None:
            select.set(clause, without_failures(select.args[clause]))
    parts = [*select.expressions, *([select.args["having"]] if select.args.get("having") else [])]
    for part in parts:
        if groups is None:
            part.replace(without_failures(part))
            continue
        for node in list(part.walk(prune=lambda n: _is_of_rows(n, texts))):
            if _is_of_rows(node, texts):
                node.replace(without_failures(node))


def _is_of_rows(node: exp.Expr, groups: Collection[str]) -> bool:
    return aggregate_call(node) is not None or (bool(groups) and spark_text(node) in groups)


def _arguments(parts: list[exp.Expr]) -> Iterator[exp.Expr | None]:
    """What aggregates compute for each row: with FILTER only for rows that it takes."""
    for node in (node for part in parts for node in part.walk()):
        aggregate = aggregate_call(node)
        if aggregate is None:
            continue
        fails = first_failure(failure(argument) for argument in aggregate.arguments)
        is_filtered = isinstance(aggregate.node, exp.Filter)
        yield failure_where(aggregate.node.expression.this, fails) if is_filtered else fails


def _names(parts: list[exp.Expr]) -> Mapping[str, set[str]] | None:
    """The columns that are read, by the alias of their table; None if it may be any."""
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


def _places(item: exp.Subquery, names: Mapping[str, set[str]] | None) -> Needed:
    columns = leftmost(item).expressions
    if names is None or any(isinstance(column, exp.Star) for column in columns):
        return None
    read = names.get(item.alias, set())
    return {n for n, column in enumerate(columns) if column.alias_or_name in read}


def _parts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions of ON, and both sides of those that compare tables."""
    for part in conjuncts(condition):
        if isinstance(part, (exp.EQ, exp.NullSafeEQ)) and len(_owners(part)) > 1:
            yield from (part.left, part.right)
        else:
            yield part


def _owners(part: exp.Expr) -> set[str]:
    return {column.parts[0].name for column in part.find_all(exp.Column)}
