"""Spark SQL text as the way to build large expressions.

Column objects cost a call into the JVM per operator; a text costs one call and can be read in a log. Every
subexpression that is used twice is bound to a lambda variable, so Spark evaluates it once and an expression's
size stays linear in the schema's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.schema import quote

__all__ = ["Names", "apply", "first", "let", "literal", "member", "null", "struct", "with_sql_column"]


def literal(text: str) -> str:
    """`text` as a SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def member(value: str, name: str) -> str:
    """Field `name` of the struct `value`."""
    return f"{value}.{quote(name)}"


def null(type: str) -> str:
    """A null of a Spark type."""
    return f"CAST(NULL AS {type})"


def struct(**fields: str) -> str:
    """A struct of expressions by plain names."""
    return "named_struct(" + ", ".join(f"'{n}', {e}" for n, e in fields.items()) + ")"


def first(array: str) -> str:
    """The first element that is not null, or null."""
    return f"get(filter({array}, found -> found IS NOT NULL), 0)"


class Names:
    """Variable names, each used once in an expression."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def fresh(self) -> str:
        return f"v{next(self._count)}"

    def bind(self, value: str, body: Callable[[str], str]) -> str:
        # A fold over nothing: unlike transform, aggregate copies neither the value nor what is made of it.
        variable = self.fresh()
        return (
            f"aggregate(array(), {value}, ({variable}, none) -> {variable}, {variable} -> {body(variable)})"
        )

    def lambdas(self) -> Names:
        """Names to go on with where a value is to be made only if its branch is taken, and in a lambda function."""
        return self


class _Columns(Names):
    """Binds values to columns of a frame, in `bound`."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix
        self.bound: dict[str, str] = {}

    def bind(self, value: str, body: Callable[[str], str]) -> str:
        column = f"{self._prefix}_{len(self.bound)}"
        self.bound[column] = value
        return body(column)

    def lambdas(self) -> Names:
        return Names()


def let(names: Names, value: str, body: Callable[[str], str]) -> str:
    """`body` of a variable that holds `value`, which is evaluated once."""
    return names.bind(value, body)


def with_sql_column(
    frame: DataFrame, column: Column, name: str, body: Callable[[str, Names], str]
) -> DataFrame:
    """`frame` with the column `name`: the SQL expression `body` of a name that stands for `column`.

    Each `let` of `body` becomes a column of its own, which Spark compiles; a lambda function it interprets. So a
    value is made for every row, those too whose branch of `body` has no use for it: it must not raise for any. Inside
    of a lambda function use other names than those that `body` is given.
    """
    names, value = _Columns(name), f"{name}_value"
    made = body(value, names)
    steps = frame.withColumn(value, column)
    for bound, sql in names.bound.items():
        steps = steps.withColumn(bound, F.expr(sql))
    return steps.withColumn(name, F.expr(made)).drop(value, *names.bound)


def apply(column: Column, body: str, variable: str) -> Column:
    """The SQL expression `body`, in which `variable` stands for `column`."""
    merge, finish = F.expr(f"({variable}, none) -> {variable}"), F.expr(f"{variable} -> {body}")
    return F.call_function("aggregate", F.array(), column, merge, finish)
