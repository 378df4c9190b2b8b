"""Top-N and deduplication: `SELECT ... FROM (SELECT ..., ROW_NUMBER() OVER (...) AS rn FROM t) WHERE rn <= n`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from bridge.schema import MapType, ScalarType
from bridge.sql.analysis import Environment
from bridge.sql.expressions import resolve, translate
from bridge.sql.joins import term_of
from bridge.sql.positions import arrival
from bridge.sql.relation import Changes, Relation
from bridge.sql.scope import Scope
from bridge.sql.tree import Key, QueryTree, Term, column_term, comparable_text

ROW_NUMBER_TYPE = ScalarType("BIGINT", nullable=False)


@dataclass(frozen=True)
class TopN:
    """The pattern in a SELECT: `inner` is the SELECT that has `window` as a column, of which the outer one keeps the
    first `limit` rows of each partition."""

    inner: exp.Select
    window: exp.Window
    limit: int


def match(select: exp.Select) -> TopN | None:
    """Returns the pattern if `select` filters a subquery by its ROW_NUMBER; None otherwise."""
    source = select.args.get("from_")
    subquery = source.this if source is not None else None
    where = select.args.get("where")
    if not isinstance(subquery, exp.Subquery) or not isinstance(subquery.this, exp.Select) or where is None:
        return None
    inner = subquery.this
    for projection in inner.expressions:
        window = projection.unalias()
        called = window.this if isinstance(window, exp.Window) else None
        if isinstance(called, exp.Anonymous) and called.name.upper() == "ROW_NUMBER":
            limit = _limit(where.this, projection.alias)
            return None if limit is None else TopN(inner, window, limit)
    return None


@dataclass(frozen=True)
class Partition:
    """PARTITION BY: `terms` are its columns, None if one of them is an expression; `texts` name its expressions."""

    terms: frozenset[Term] | None
    texts: tuple[str, ...]

    def keys(self, projected: Sequence[str], numbers: Sequence[int], limit: int) -> Iterator[Key]:
        """The keys of ranked rows that select every expression: those whose texts are `projected`, and the number of
        the row at one of `numbers`."""
        if self.terms is None and all(text in projected for text in self.texts):
            places: Key = frozenset(column_term(projected.index(text)) for text in self.texts)
            yield from (places | {column_term(number)} for number in numbers)
            if limit == 1:
                yield places


def resolve_rank(top: TopN, scope: Scope, relation: Relation, env: Environment) -> Partition:
    """Resolves and translates the window in place, and adds to ORDER BY what decides between equal rows: of rows that a
    topic adds the first one, as in Flink, or the last one where Flink deduplicates by event time in descending order;
    of all others the key, or, of rows without one, what is selected of them.

    Raises DdlError for windows without ORDER BY, and UnsupportedError for GROUP BY and DISTINCT beside the window.
    """
    tree, window, inner = scope.tree, top.window, top.inner
    _check(tree, window, inner)
    terms, texts = [], []
    for part in list(window.args.get("partition_by") or ()):
        resolve(part, scope, aggregates=False)
        terms.append(term_of(part))
        texts.append(comparable_text(part))
        translate(part, tree)
    order = window.args["order"]
    for ordered in order.expressions:
        resolve(ordered.this, scope, aggregates=False)
        translate(ordered.this, tree)
    first = order.expressions[0]
    is_last = (
        top.limit == 1
        and len(order.expressions) == 1
        and bool(first.args.get("desc"))
        and _is_event_time(first.this, scope)
    )
    for column in _tie_breakers(top, scope, relation, env):
        order.append("expressions", exp.Ordered(this=column, desc=is_last or None, nulls_first=not is_last))
    known = [t for t in terms if t is not None]
    return Partition(frozenset(known) if len(known) == len(terms) else None, tuple(texts))


def rank_keys(
    top: TopN, partition: frozenset[Term] | None, row_number: Term, keys: frozenset[Key]
) -> frozenset[Key]:
    """Returns the keys of the ranked rows: those of the input, the partition and the row's number in it, and with a
    limit of 1 the partition alone."""
    found = set(keys)
    if partition is not None:
        found.add(partition | {row_number})
        if top.limit == 1:
            found.add(partition)
    return frozenset(found)


def rank_changes(top: TopN) -> Changes:
    """Returns the changes of the ranked rows, with Flink's name of the node."""
    partition = ", ".join(p.name or p.sql() for p in top.window.args.get("partition_by") or ())
    return Changes("update and delete", f"Rank(rankStart=1, rankEnd={top.limit}, partitionBy=[{partition}])")


def _check(tree: QueryTree, window: exp.Window, inner: exp.Select) -> None:
    if window.this.expressions:
        raise tree.error("ROW_NUMBER takes no argument", window)
    if window.args.get("order") is None:
        raise tree.error("ROW_NUMBER requires ORDER BY in its OVER (...)", window)
    if window.args.get("spec") is not None:
        raise tree.error("ROW_NUMBER takes no ROWS or RANGE", window)
    if inner.args.get("group") is not None or inner.args.get("distinct") is not None:
        raise tree.unsupported(
            "GROUP BY or DISTINCT beside ROW_NUMBER", "group in a subquery, and rank its rows", window
        )
    if inner.args.get("with_") is not None:
        raise tree.unsupported("WITH in a ranked subquery", "move WITH to the beginning of the query", window)


def _limit(condition: exp.Expr, name: str) -> int | None:
    """Returns n of `name <= n`, `name < n + 1` or `name = 1`, one of the conditions that are joined by AND."""
    if isinstance(condition, exp.Paren):
        return _limit(condition.this, name)
    if isinstance(condition, exp.And):
        left, right = _limit(condition.left, name), _limit(condition.right, name)
        return left if right is None or (left is not None and left < right) else right
    if isinstance(condition, (exp.GT, exp.GTE)):
        swapped = exp.LT if isinstance(condition, exp.GT) else exp.LTE
        condition = swapped(this=condition.right.copy(), expression=condition.left.copy())
    if not isinstance(condition, (exp.LT, exp.LTE, exp.EQ)):
        return None
    column, number = condition.left, condition.right
    if not isinstance(column, exp.Column) or column.name != name or not number.is_int:
        return None
    limit = int(number.name) - isinstance(condition, exp.LT)
    is_first = not isinstance(condition, exp.EQ) or limit == 1
    return limit if limit >= 1 and is_first else None


def _is_event_time(node: exp.Expr, scope: Scope) -> bool:
    term = term_of(node)
    return term is not None and len(term) == 1 and scope.column(min(term)).event_time is not None


def _tie_breakers(top: TopN, scope: Scope, relation: Relation, env: Environment) -> Iterator[exp.Column]:
    if relation.changes is None and not relation.operations and len(scope.items) == 1:
        found = arrival(top.inner.args["from_"].this, env.catalogue)
        if found is not None:
            env.positioned[found[0]] = None
            yield from found[1]
            return
    plain = [key for key in relation.keys if all(len(term) == 1 for term in key)]
    if not plain:
        yield from _selected(top, scope)
    for term in sorted(min(plain, key=lambda k: (len(k), sorted(map(min, k))), default=()), key=min):
        index = min(term)
        item = scope.owner(index)
        yield exp.column(item.relation.columns[index - item.first].name, table=item.alias)


def _selected(top: TopN, scope: Scope) -> Iterator[exp.Column]:
    """The columns that the ranked rows select: rows that are equal in all of them may change places."""
    found: dict[str, exp.Column] = {}
    for projection in top.inner.expressions:
        if projection.unalias() is not top.window:
            found |= {column.sql(): column for column in projection.find_all(exp.Column)}
    for column in found.values():
        term = column.meta.get("term")
        type = scope.column(min(term)).type if term else None
        if not isinstance(type, MapType):  # which have no order
            yield column.copy()
