"""Sums that overflow as Flink's do: those of integers wrap in the type of their argument, a DECIMAL is NULL.

A translated query has them as calls of SUM with a note, so that they stay what they are until its text is written.
Spark's SUM gives a BIGINT, and raises an error where that overflows. A sum of BIGINTs is therefore one of their upper
and one of their lower 32 bits, which takes more than 2 billion rows to overflow.
"""

from __future__ import annotations

from sqlglot import exp

from bridge.expressions.arithmetic import cut_decimal, wrapped
from bridge.expressions.template import spark
from bridge.schema import ScalarType

MOST_DIGITS, MORE_DIGITS = 38, 10
"""Of a DECIMAL in Spark, and those by which SUM widens one."""
LONGEST = MOST_DIGITS - MORE_DIGITS
"""The digits of a DECIMAL of which SUM has all the digits that it wants."""
_TYPES = "sum_of"
_UPPER, _LOWER = "SHIFTRIGHT(@0, 32)", "@0 & 4294967295L"


def note_sum(node: exp.Expr, argument: str, result: str) -> exp.Expr:
    """Notes that a SUM, or the FILTER around it, of integers of type `argument` wraps in type `result`; one of
    DECIMALs is NULL if it overflows."""
    node.meta[_TYPES] = (argument, result)
    return node


def has_long_sum(tree: exp.Expr) -> bool:
    """Returns whether a sum of DECIMALs may overflow. A group whose sum is NULL for that does not say so, and rows that
    are added to it would begin a new sum."""
    return any(node.meta.get(_TYPES, ("",))[0] == "DECIMAL" for node in tree.walk())


def with_wrapping_sums(tree: exp.Expr) -> exp.Expr:
    """Returns a tree in which the sums that were noted wrap in Spark; the same one if it has none."""
    if not any(_TYPES in node.meta for node in tree.walk()):
        return tree
    # Below another node, so that the root can be replaced, too.
    top = exp.Paren(this=tree.copy())
    for node in reversed([node for node in top.walk() if _TYPES in node.meta]):
        node.replace(_wrapping(node, *node.meta.pop(_TYPES)))
    made: exp.Expr = top.this
    return made


def wrapping_sum(column: str, type: str) -> str:
    """Returns, in Spark SQL, the sum of a column of integers of this type, which wraps in it."""
    total = exp.Anonymous(this="SUM", expressions=[exp.column(column, quoted=True)])
    return str(_wrapping(total, type, type).sql("spark", identify=True, normalize_functions=False))


def _wrapping(node: exp.Expr, argument: str, result: str) -> exp.Expr:
    if argument == "DECIMAL":
        return _of(node, "@0", "TRY_SUM")
    if argument != "BIGINT":
        return wrapped(node, result)
    call = node.this if isinstance(node, exp.Filter) else node
    if isinstance(call.expressions[0], exp.Distinct):  # values that differ may have equal halves
        exact = _of(node, "CAST(@0 AS DECIMAL(20, 0))")
        return cut_decimal(exact, ScalarType("DECIMAL", (38, 0)), result)
    upper, lower = _of(node, _UPPER), _of(node, _LOWER)
    carried = "SHIFTLEFT(@0 + SHIFTRIGHT(@1, 32), 32)"
    return wrapped(exp.paren(spark(f"{carried} | (@1 & 4294967295L)", upper, lower)), result)


def _of(node: exp.Expr, text: str, function: str = "SUM") -> exp.Expr:
    """A copy of the SUM, with its DISTINCT and FILTER, of another expression of its argument."""
    copy = node.copy()
    call = copy.this if isinstance(copy, exp.Filter) else copy
    call.set("this", function)
    holder = call.expressions[0] if isinstance(call.expressions[0], exp.Distinct) else call
    holder.set("expressions", [spark(text, *holder.expressions)])
    return copy
