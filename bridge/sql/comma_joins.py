"""Joins whose condition is in WHERE: `FROM a, b WHERE a.id = b.id`, and CROSS JOIN with such a WHERE."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from bridge.errors import DdlError
from bridge.sql.expressions import resolve
from bridge.sql.joins import conjuncts, equal_sides, is_without_condition
from bridge.sql.scope import Item, Scope

__all__ = ["take_condition"]


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
