"""Joins: which are supported, and which keys their results have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise

from sqlglot import exp

from bridge.ddl.part import unsupported
from bridge.expressions.type_rules import compare_exactly
from bridge.sql.expressions import resolve, translate
from bridge.sql.relation import Changes, Distribution, Relation, union_distribution
from bridge.sql.scope import Item, Scope
from bridge.sql.tree import Key, QueryTree, Term, column_term
from bridge.sql.window import Window
from bridge.sql.window import joined as joined_windows

_MOST_KEYS = 16
_KINDS = {"": "InnerJoin", "LEFT": "LeftOuterJoin", "RIGHT": "RightOuterJoin", "FULL": "FullOuterJoin"}
_PRODUCT = (
    "its result grows with the product of both tables; write JOIN ... ON a = b, or an equality with a table before it "
    "in WHERE"
)


@dataclass(frozen=True)
class Joined:
    """The tables of FROM that are joined so far. `equal` are terms that have the same value in every row."""

    keys: frozenset[Key]
    changes: Changes | None
    operations: tuple[str, ...]
    equal: dict[Term, set[Term]] = field(default_factory=dict)
    distributions: Mapping[Term, Distribution] = field(default_factory=dict)
    window: Window | None = None


@dataclass(frozen=True)
class _Condition:
    """`pairs` are terms (left, right) that are equal; `has_more` says whether there are other conditions."""

    pairs: tuple[tuple[Term, Term], ...]
    equalities: int
    has_more: bool


def join(node: exp.Join, left: Joined, right: Item, scope: Scope, at: int) -> Joined:
    """Joins the last item of the scope, which starts at offset `at`, to the items before it.

    Raises UnsupportedError for joins without an equality of both sides. A side without a key leaves the join without
    one: its rows are told apart by what selects from the join, or by `row_keys`.
    """
    source, side = scope.tree.source, node.side.upper()
    if is_without_condition(node):
        raise unsupported(source, "a join without ON (a comma between tables, or CROSS JOIN)", _PRODUCT, at)
    condition = _condition(node, right, scope)
    if not condition.equalities:
        raise unsupported(source, "a join without an equality", "write ON with left.a = right.b", at)
    windows = left.window, right.relation.window and right.relation.window.shifted(right.first)
    window = joined_windows(scope.tree, windows, condition.pairs, side, node)
    shifted = _shifted(right.relation, right.first)
    keys, equal = set(_keys(side, left.keys, shifted, condition)), {k: set(v) for k, v in left.equal.items()}
    if side == "":
        for one, other in condition.pairs:
            equal.setdefault(one, set()).add(other)
            equal.setdefault(other, set()).add(one)
    changes = left.changes or right.relation.changes
    if window is not None:
        changes = None
    elif changes is not None or side:
        on = ", ".join(_condition_texts(node))
        changes = Changes("update and delete", f"Join(joinType=[{_KINDS[side]}], where=[{on}])")
    operations = (*left.operations, *right.relation.operations, "join")
    best = sorted(keys, key=lambda k: (len(k), sorted(map(sorted, k))))
    distributions = _distributions(side, left, right, condition, scope)
    return Joined(frozenset(best[:_MOST_KEYS]), changes, operations, equal, distributions, window)


def check_kind(tree: QueryTree, node: exp.Join, *, after_product: bool = False) -> None:
    """Raises UnsupportedError for kinds of joins that are not supported; `after_product` says that a join without ON
    comes before, to whose tables together an outer join would add rows."""
    kind, side, method = node.kind.upper(), node.side.upper(), str(node.args.get("method") or "").upper()
    if side not in _KINDS or kind not in ("", "INNER", "OUTER", "CROSS") or method:
        what = " ".join(filter(None, (method, side, kind, "JOIN")))
        raise tree.unsupported(what, "the supported joins are [INNER], LEFT, RIGHT and FULL JOIN", node)
    if after_product and side in ("RIGHT", "FULL"):
        raise tree.unsupported(
            f"{side} JOIN after a comma or CROSS JOIN", "write JOIN ... ON before it", node
        )


def is_without_condition(node: exp.Join) -> bool:
    """Whether a join has neither ON nor USING: a comma between tables, or CROSS JOIN."""
    return node.args.get("on") is None and not node.args.get("using")


def _condition(node: exp.Join, right: Item, scope: Scope) -> _Condition:
    if node.args.get("using"):
        same = tuple(_using(node, right, scope))
        exact = tuple(pair for pair in same if pair is not None)
        return _Condition(exact, len(same), len(exact) < len(same))
    resolve(node.args["on"], scope, aggregates=False)
    node.set("on", translate(node.args["on"], scope.tree))
    pairs: list[tuple[Term, Term]] = []
    equalities, more = 0, False
    for part in conjuncts(node.args["on"]):
        sides = equal_sides(part, right)
        equalities += sides is not None
        more = more or sides is None
        if sides is not None:
            one, other = term_of(sides[0]), term_of(sides[1])
            if one is not None and other is not None and _compare_exactly((one, other), scope):
                pairs.append((one, other))
            else:
                more = True
    return _Condition(tuple(pairs), equalities, more)


def _using(node: exp.Join, right: Item, scope: Scope) -> Iterator[tuple[Term, Term] | None]:
    """Yields the columns of USING of both sides, None where equal ones may differ, and makes each one column."""
    for name in node.args["using"]:
        column = exp.column(name.name, table=right.alias)
        column.this.meta.update(name.meta)
        column.args["table"].meta.update(name.meta)
        scope.resolve(column)
        other: Term = column.meta["term"]
        one = scope.merged.get(name.name)
        if one is None:
            before = Scope(scope.tree, scope.reads, scope.items[:-1], scope.merged)
            plain = exp.column(name.name)
            plain.this.meta.update(name.meta)
            before.resolve(plain)
            one = plain.meta["term"]
        side = node.side.upper()
        exact = _compare_exactly((one, other), scope)
        scope.merged[name.name] = one | other if side == "FULL" else other if side == "RIGHT" else one
        yield (one, other) if exact else None


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the conditions that are joined by AND, in their order."""
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    elif isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    else:
        yield condition


def equal_sides(part: exp.Expr, right: Item) -> tuple[exp.Expr, exp.Expr] | None:
    """Returns the expressions of the left and the right side that are equal; None if this is no such equality."""
    if not isinstance(part, (exp.EQ, exp.NullSafeEQ)):
        return None
    one, other = _is_right(part.left, right), _is_right(part.right, right)
    if one is None or other is None or one == other:
        return None
    return (part.right, part.left) if one else (part.left, part.right)


def _is_right(expression: exp.Expr, right: Item) -> bool | None:
    """Whether all columns are of the right side (True) or of the left side (False); None if they are mixed."""
    terms = [n.meta.get("term") for n in expression.find_all(exp.Column)]
    owners = {min(t) >= right.first if t else None for t in terms}
    return owners.pop() if len(owners) == 1 else None


def term_of(expression: exp.Expr) -> Term | None:
    """Returns the term that an expression is: a column, or COALESCE of columns."""
    if isinstance(expression, exp.Paren):
        return term_of(expression.this)
    if isinstance(expression, exp.Column):
        term = expression.meta.get("term")
        return frozenset(term) if term else None
    if isinstance(expression, exp.Anonymous) and expression.name.upper() == "COALESCE":
        terms = [term_of(argument) for argument in expression.expressions]
        known = [t for t in terms if t is not None]
        return frozenset().union(*known) if len(known) == len(terms) else None
    return None


def _shifted(relation: Relation, first: int) -> frozenset[Key]:
    return frozenset(frozenset(column_term(min(t) + first) for t in key) for key in relation.keys)


def _keys(side: str, left: frozenset[Key], right: frozenset[Key], condition: _Condition) -> Iterator[Key]:
    ones = frozenset(one for one, _ in condition.pairs)
    others = frozenset(other for _, other in condition.pairs)
    right_is_unique = any(key <= others for key in right)
    left_is_unique = any(key <= ones for key in left)
    if right_is_unique and side in ("", "LEFT"):
        yield from left
    if left_is_unique and side in ("", "RIGHT"):
        yield from right
    if side == "FULL" and not condition.has_more and ones in left and others in right:
        # Every row of one side meets at most one of the other, so the merged columns are a key.
        yield frozenset(one | other for one, other in condition.pairs)
    yield from islice((one | other for one in left for other in right), _MOST_KEYS)


def _distributions(
    side: str, left: Joined, right: Item, condition: _Condition, scope: Scope
) -> dict[Term, Distribution]:
    """The distributions by columns that the join makes equal. A column of the side that an outer join fills with NULL
    has none, as a NULL there says nothing about the rows that it comes from."""
    found: dict[Term, Distribution] = {}
    shifted = {column_term(min(t) + right.first): d for t, d in right.relation.distributions.items()}
    for one, other in condition.pairs:
        both = union_distribution(left.distributions.get(one), shifted.get(other))
        if both is None or not _same_type(one, other, scope):
            continue
        # Columns with the same distribution have the same value in every row.
        ones = [term for term, d in left.distributions.items() if d == left.distributions[one]]
        others = [term for term, d in shifted.items() if d == shifted[other]]
        terms = {"": [*ones, *others], "LEFT": ones, "RIGHT": others, "FULL": [one | other]}[side]
        found |= dict.fromkeys(terms, both)
    return found


def _compare_exactly(terms: Iterable[Term], scope: Scope) -> bool:
    """Whether columns that a condition finds equal have the same value: of BIGINT and DOUBLE several may be equal to
    one. Types that only Spark can derive may be such."""
    types = [scope.column(index).type for term in terms for index in term]
    return all(one is not None and compare_exactly(one, other) for one, other in pairwise(types))


def _same_type(one: Term, other: Term, scope: Scope) -> bool:
    """Whether Spark compares the columns without a cast, so that equal values are the same value."""
    types = [scope.column(index).type for index in one | other]
    return None not in types and len({type.spark() for type in types if type is not None}) == 1


def _condition_texts(node: exp.Join) -> list[str]:
    if node.args.get("using"):
        return [name.name for name in node.args["using"]]
    return [str(part.sql(comments=False)) for part in conjuncts(node.args["on"])]
