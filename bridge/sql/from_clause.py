"""Resolves FROM: tables, views, subqueries and joins become the scope of a SELECT.

The condition of a join may be in WHERE: `FROM a, b WHERE a.id = b.id`, also with CROSS JOIN.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from bridge.errors import DdlError
from bridge.expressions.precision import cut, loses_digits
from bridge.schema import ComputedColumn, DataType, MetadataColumn, PhysicalColumn
from bridge.sql.analysis import Analyse, Environment
from bridge.sql.connectors import Table
from bridge.sql.expressions import resolve
from bridge.sql.joins import Joined, check_kind, conjuncts, equal_sides, is_without_condition, join
from bridge.sql.relation import Changes, QueryColumn, Relation, scan_distribution
from bridge.sql.scope import Item, Scope, View
from bridge.sql.statements import Name, WindowCall
from bridge.sql.tree import QueryTree, column_term
from bridge.sql.window_tables import window_table


def take_condition(select: exp.Select, node: exp.Join, right: Item, scope: Scope) -> None:
    """Gives a join without ON the equalities of WHERE between its table and the tables before, in place.

    `right` is the last item of the scope. WHERE keeps them, so that its names are resolved over all tables. Nothing is
    added to a join with a condition, or where WHERE has no such equality.
    """
    where = select.args.get("where")
    if where is None or not is_without_condition(node) or node.side:
        return
    found = [part.copy() for part in conjuncts(where.this) if _joins(part, right, scope)]
    if found:
        node.set("on", reduce(lambda one, other: exp.And(this=one, expression=other), found))
        node.set("kind", None)


def _joins(part: exp.Expr, right: Item, scope: Scope) -> bool:
    if not isinstance(part, (exp.EQ, exp.NullSafeEQ)):
        return False
    known = part.copy()
    try:
        resolve(known, Scope(scope.tree, {}, list(scope.items), dict(scope.merged)), aggregates=False)
    except DdlError:  # a name of a table that comes later; or none at all, which WHERE reports
        return False
    return equal_sides(known, right) is not None


_TABLE_ARGS = ("this", "db", "catalog", "alias")


def analyse_from(select: exp.Select, env: Environment, analyse: Analyse) -> tuple[Scope, Joined]:
    """Resolves FROM and its joins, and replaces views and WITH queries in it by subqueries.

    Raises DdlError for unknown names, and what `joins` and the subqueries raise.
    """
    scope = Scope(env.tree, env.reads)
    source = select.args.get("from_")
    if source is None:
        return scope, Joined(frozenset(), None, ("values",))
    item = _add(source.this, scope, env, analyse)
    relation = item.relation
    joined = Joined(
        relation.keys,
        relation.changes,
        relation.operations,
        distributions=relation.distributions,
        window=relation.window,
    )
    is_product = False
    for node in select.args.get("joins") or ():
        at = env.tree.start(node.this)
        check_kind(env.tree, node, after_product=is_product)
        right = _add(node.this, scope, env, analyse)
        is_product = is_product or is_without_condition(node)
        take_condition(select, node, right, scope)
        joined = join(node, joined, right, scope, at)
    return scope, joined


def source_relation(tree: QueryTree, table: Table, name: Name) -> Relation:
    """Returns the rows of a table that is read. Raises DdlError for sinks, and for updates without a key."""
    if not table.is_source:
        raise tree.source.error(f"connector '{table.connector.value}' is for sinks only", name.start)
    if table.is_updating and not table.key:
        raise tree.source.error(
            f"table `{table.name}` has updates and deletes but no PRIMARY KEY, so the row that a change is about "
            "cannot be found; declare PRIMARY KEY (...) NOT ENFORCED",
            name.start,
        )
    watermark = table.ddl.schema.watermark
    columns = tuple(
        _column(column, table.name if watermark and watermark.column == column.name else None)
        for column in table.ddl.schema
    )
    names = table.ddl.schema.names
    key = frozenset(column_term(names.index(n)) for n in table.key)
    node = f"TableSourceScan(table=[[default_catalog, default_database, {table.name}]])"
    changes = Changes("update and delete", node) if table.is_updating else None
    # Several values of the table are one value of a column that is cut, so they are no part of their own.
    whole = [(i, n) for i, n in enumerate(names) if n not in _uncut(table)]
    distributions = {column_term(i): scan_distribution(table.name, n) for i, n in whole}
    return Relation(columns, frozenset({key} if key else ()), changes, distributions=distributions)


def _column(column: object, event_time: str | None) -> QueryColumn:
    assert isinstance(column, (PhysicalColumn, MetadataColumn, ComputedColumn))
    # Spark derives the types of computed columns.
    type = None if isinstance(column, ComputedColumn) else column.type
    return QueryColumn(column.name, type, event_time=event_time)


def _add(node: exp.Expr, scope: Scope, env: Environment, analyse: Analyse) -> Item:
    tree = env.tree
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise tree.unsupported(
            "a list of columns after the alias of a table", "name the columns with AS", node
        )
    if isinstance(node, exp.Subquery):
        _refuse_args(tree, node, ("this", "alias"))
        if not isinstance(node.this, exp.Query):
            raise tree.unsupported("a join in parentheses", "write the joins one after another", node.this)
        inner = analyse(node.this, env)
        name = node.alias or f"subquery{len(scope.items) + 1}"
        node.replace(_derived(inner.spark, name))
        return scope.add(name, inner.relation, None, node)
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise tree.unsupported(f"{node.key.upper()} in FROM", "name a table, a view or a subquery", node)
    _refuse_args(tree, node, _TABLE_ARGS)
    return _add_table(node, scope, env)


def _add_table(node: exp.Table, scope: Scope, env: Environment) -> Item:
    call = env.tree.window(node)
    if call is not None:
        return _add_window(node, call, scope, env)
    return _add_named(node, env.tree.name(node), node.alias or node.name, scope, env)


def _add_named(node: exp.Table, name: Name, alias: str, scope: Scope, env: Environment) -> Item:
    """Adds a query of WITH, a view or a table of the script."""
    if name.text in env.subqueries:
        query = env.subqueries[name.text]
        node.replace(_derived(query.spark.copy(), alias))
        return scope.add(alias, query.relation, None, node)
    entry = env.catalogue.find(env.tree.source, name)
    if isinstance(entry, View):
        env.views[entry.name] = None
        env.positioned |= entry.positioned
        for table, columns in entry.reads.items():
            env.reads.setdefault(table, {}).update(columns)
        node.replace(_derived(entry.spark.copy(), alias))
        return scope.add(alias, entry.relation, None, node)
    relation = source_relation(env.tree, entry, name)
    item = scope.add(alias, relation, entry.name, node)
    scope.proctime |= dict.fromkeys(entry.proctime, entry.name)
    env.reads.setdefault(entry.name, {}).update(dict.fromkeys(entry.key))
    named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    rows = exp.Table(this=exp.to_identifier(entry.name, quoted=True), alias=named)
    longer = _uncut(entry)
    if longer:
        values = [
            exp.alias_(cut(exp.column(n, table=alias, quoted=True), longer[n]), n, quoted=True)
            if n in longer
            else exp.column(n, table=alias, quoted=True)
            for n in entry.ddl.schema.names
        ]
        node.replace(_derived(exp.select(*values).from_(rows), alias))
    else:
        node.replace(rows)
    return item


def _uncut(table: Table) -> dict[str, DataType]:
    """Returns the columns of a Delta table that may have more digits of time than their types; an ingest cuts them."""
    written = (PhysicalColumn, MetadataColumn)
    columns = (
        {c.name: c.type for c in table.ddl.schema if isinstance(c, written)}
        if table.delta is not None
        else {}
    )
    return {name: type for name, type in columns.items() if loses_digits(None, type)}


def _add_window(node: exp.Table, call: WindowCall, scope: Scope, env: Environment) -> Item:
    """Adds the rows of a window table function. Like a subquery they have all columns of their table."""
    inner = Scope(env.tree, env.reads)
    table = exp.Table(this=exp.to_identifier(call.table.text, quoted=True))
    select = exp.Select(expressions=[exp.Star()]).from_(table, copy=False)
    item = _add_named(table, call.table, call.table.text, inner, env)
    list(inner.read_all())
    relation, spark = window_table(env.tree, call, item.relation, select)
    name = node.alias or call.table.text
    node.replace(_derived(spark, name))
    return scope.add(name, relation, None, node)


def _derived(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))


def _refuse_args(tree: QueryTree, node: exp.Expr, legal: tuple[str, ...]) -> None:
    for name, value in node.args.items():
        if value and name not in legal:
            what = f"{name.rstrip('_').replace('_', ' ').upper()} of a table in FROM"
            raise tree.unsupported(what, "remove it", node)
