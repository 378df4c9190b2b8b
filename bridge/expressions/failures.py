"""Errors that depend on data: why an expression fails for a row, told by an expression that never fails itself.

An expression that `typed.adapt` made fails by RAISE_ERROR alone, where Flink fails, too. Its failure is found in its
tree: a branch of CASE, IF, COALESCE, AND or OR that is not taken does not fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp

from bridge.expressions.precision import written
from bridge.expressions.template import spark

_TYPE, _FAILURE, _TEXT, _OF_ROWS = "type", "failure", "text", "of_rows"
_RAISE = "RAISE_ERROR"
_MAY_FAIL = (exp.Div, exp.Mod, exp.IntDiv, exp.Cast, exp.Anonymous)
_LAZY_CALLS = ("COALESCE", "IFNULL")
_LONGEST = 120
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


def failed(reason: str, type: str) -> str:
    """Returns the text of an expression of Spark type `type` that fails with `reason`, which has no quotes."""
    return f"CAST({_RAISE}('{reason}') AS {type})"


def note_text(root: exp.Expr, *, qualified: bool) -> None:
    """Notes how `root`, and the parts of it that may fail, are written, before they are adapted; errors show it.

    `qualified`: columns have their table's name before them. Equal parts get equal texts, whatever their spelling.
    """
    for node in root.walk():
        if node is root or isinstance(node, _MAY_FAIL):
            node.meta[_TEXT] = _text(node, qualified=qualified)


def text_of(node: exp.Expr) -> str:
    """Returns how an adapted expression is written."""
    return str(node.meta.get(_TEXT) or node.sql("spark"))


def is_lazy(node: exp.Expr) -> bool:
    """Returns whether not all operands of `node` are evaluated for each row."""
    is_call = isinstance(node, exp.Anonymous) and node.name.upper() in _LAZY_CALLS
    return is_call or isinstance(node, (exp.Case, exp.If, exp.And, exp.Or))


def note_failure(made: exp.Expr, text: str | None, operands: Sequence[exp.Expr] | None) -> None:
    """Notes why `made`, which is adapted from an expression that is written as `text`, fails for a row.

    `operands` are the failures of its operands; None if it does not evaluate all of them.
    """
    if text is not None:
        made.meta[_TEXT] = text
        for call in _raised(made):
            call.set("expressions", [exp.Literal.string(f"{call.expressions[0].name} in {text}")])
            call.meta[_TEXT] = text
    found = _within(made, own=operands is not None)
    if found is not None:
        found = without_failures(found)
    total = _first([*(operands or ()), found])
    made.meta.pop(_FAILURE, None)
    if total is not None:
        made.meta[_FAILURE] = total


def note_of_rows(node: exp.Expr) -> None:
    """Notes that a part of what is computed of a group is computed of its rows: an aggregate, or what GROUP BY has. It
    fails for rows, and then the group has none that fail."""
    node.meta[_OF_ROWS] = True
    node.meta.pop(_FAILURE, None)


def is_of_rows(node: exp.Expr) -> bool:
    """Returns whether that was noted."""
    return bool(node.meta.get(_OF_ROWS))


def failure(node: exp.Expr) -> exp.Expr | None:
    """Returns why `node` fails for a row, as a STRING that is NULL where it does not fail; None if it cannot.

    `node` is adapted, or made of adapted nodes. The result never fails.
    """
    found = node.meta.get(_FAILURE) if _TYPE in node.meta else _within(node, own=False)
    return without_failures(found) if isinstance(found, exp.Expr) else None


def own_failure(made: exp.Expr) -> exp.Expr | None:
    """Returns why `made` fails for a row, other than by its adapted operands; None if it cannot."""
    for call in _raised(made):
        call.meta[_TEXT] = ""
    found = _within(made, own=True)
    return None if found is None else without_failures(found)


def first_failure(failures: Iterable[exp.Expr | None]) -> exp.Expr | None:
    """Returns the first failure that a row has, of several; None if there is none."""
    known = {one.sql("spark"): one for one in failures if one is not None}
    return _first(known.values())


def failure_where(condition: exp.Expr | None, fails: exp.Expr | None) -> exp.Expr | None:
    """Returns the failure of `condition`, and `fails` where that is true; `fails` without a condition."""
    if condition is None:
        return fails
    return _taken([(failure(condition), fails, without_failures(condition))], None)


def without_failures(node: exp.Expr) -> exp.Expr:
    """Returns a copy of `node` that is NULL where it fails, and that has no failure."""
    copy = node.copy()
    for part in list(copy.walk()):
        part.meta.pop(_FAILURE, None)
        if _is_raise(part) and _TEXT in part.meta:
            part.replace(exp.null())
    return copy


def _is_raise(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == _RAISE


def _raised(made: exp.Expr) -> list[exp.Expr]:
    """The errors of `made` itself: those of its operands have their text already."""
    return [node for node in made.walk() if _is_raise(node) and _TEXT not in node.meta]


def _within(node: exp.Expr, *, own: bool) -> exp.Expr | None:
    """The failure of a tree. With `own` that of the tree without its adapted operands."""

    def of(part: exp.Expr | None) -> exp.Expr | None:
        if part is None:
            return None
        if _TYPE in part.meta:
            known = part.meta.get(_FAILURE)
            return known.copy() if isinstance(known, exp.Expr) and not own else None
        return _within(part, own=own)

    if _is_raise(node):
        return node.expressions[0].copy() if _TEXT in node.meta else None
    if isinstance(node, exp.Case):
        operand = node.args.get("this")
        arms: list[tuple[exp.Expr | None, exp.Expr | None, exp.Expr]] = []
        for branch in node.args["ifs"]:
            test = (
                branch.this if operand is None else exp.EQ(this=operand.copy(), expression=branch.this.copy())
            )
            arms.append((of(branch.this), of(branch.args["true"]), test))
        return _first([of(operand), _taken(arms, of(node.args.get("default")))])
    if isinstance(node, exp.If):
        arm = (of(node.this), of(node.args["true"]), node.this)
        return _taken([arm], of(node.args.get("false")))
    if isinstance(node, (exp.And, exp.Or)):
        *sides, last = _sides(node)
        is_and = isinstance(node, exp.And)
        known = [(of(s), None, exp.Not(this=exp.paren(s.copy())) if is_and else s) for s in sides]
        return _taken(known, of(last))
    if isinstance(node, exp.Transform) and isinstance(node.expression, exp.Lambda):
        found = of(node.expression.this)
        items = exp.Transform(this=node.this.copy(), expression=node.expression.copy())
        if found is not None:
            items.expression.set("this", found)
            found = spark("TRY_ELEMENT_AT(ARRAY_COMPACT(@0), 1)", items)
        return _first([of(node.this), found])
    if isinstance(node, exp.Anonymous) and is_lazy(node):
        *others, last = node.expressions
        known = [
            (of(o), None, exp.Not(this=exp.Is(this=exp.paren(o.copy()), expression=exp.null())))
            for o in others
        ]
        return _taken(known, of(last))
    return _first(of(child) for child in node.iter_expressions())


def _sides(node: exp.And | exp.Or) -> list[exp.Expr]:
    """All operands of `a AND b AND c`, which is parsed as `(a AND b) AND c`."""
    sides: list[exp.Expr] = [node.right]
    left: exp.Expr = node.left
    while type(left) is type(node) and isinstance(left, (exp.And, exp.Or)):
        sides.append(left.right)
        left = left.left
    return [left, *reversed(sides)]


def _taken(
    arms: Sequence[tuple[exp.Expr | None, exp.Expr | None, exp.Expr]], default: exp.Expr | None
) -> exp.Expr | None:
    """The failure of the first test, or of the branch that it takes, and so on. `arms` are the failures of a test and
    of its branch, and the test."""
    found, branches = default, list[tuple[exp.Expr, exp.Expr | None]]()
    for number, (test_fails, branch_fails, test) in reversed(list(enumerate(arms))):
        branches.insert(0, (test, branch_fails))
        if number and test_fails is None:
            continue
        # Each failure is there once: a chain of tests that had them twice would double with each test.
        if found is not None or any(fails is not None for _, fails in branches):
            case = exp.Case()
            for of, fails in branches:
                case = case.when(of.copy(), fails or exp.null(), copy=False)
            found = case.else_(found, copy=False) if found is not None else case
        found = _first([test_fails, found])
        branches = []
    return found


def _first(failures: Iterable[exp.Expr | None]) -> exp.Expr | None:
    known = [one for one in failures if one is not None]
    if not known:
        return None
    return known[0] if len(known) == 1 else exp.Anonymous(this="COALESCE", expressions=known)


def _text(node: exp.Expr, *, qualified: bool) -> str:
    copy = node.copy()
    columns = list(copy.find_all(exp.Column))
    is_one_table = qualified and len({c.parts[0].name for c in columns if len(c.parts) > 1}) == 1
    for column in columns:
        parts = column.parts[1:] if is_one_table and len(column.parts) > 1 else column.parts
        shown = [p.name if _PLAIN_NAME.fullmatch(p.name) else f"`{p.name}`" for p in parts]
        if column is not copy:
            column.replace(exp.var(".".join(shown)))
    for cast in list(copy.find_all(exp.Cast)):
        cast.set("to", exp.var(written(cast.to).flink()))
    text = str(copy.sql("spark", normalize_functions="upper", comments=False)).replace("\\'", "''")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
