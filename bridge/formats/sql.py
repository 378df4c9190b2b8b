"""Builds large expressions as Spark SQL text.

Column objects cost a call into the JVM per operator; a text costs one call and can be read in a log. A subexpression
that is used twice is bound to a lambda variable, so that Spark evaluates it once and the size of an expression is
linear in the size of the schema.
"""

from __future__ import annotations

import itertools
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.schema import RowType, quote

INSERT = "'+I'"
"""The kind of a row of an insert-only format."""


def literal(text: str) -> str:
    """Return `text` as a SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def member(value: str, name: str) -> str:
    """Return field `name` of the struct `value`."""
    return f"{value}.{quote(name)}"


def null(type: str) -> str:
    """Return a null of a Spark type."""
    return f"CAST(NULL AS {type})"


def struct(**fields: str) -> str:
    """Return a struct of expressions by plain names."""
    return "named_struct(" + ", ".join(f"'{n}', {e}" for n, e in fields.items()) + ")"


def first(array: str) -> str:
    """Return the first element that is not null, or null."""
    return f"get(filter({array}, element -> element IS NOT NULL), 0)"


def ascii_digits(text: str) -> str:
    """Return `text`, cheap to repeat, with the digits of all scripts as 0 to 9: Java's parsers read these, too."""
    digits, ascii = _digits()
    translated = f"translate({text}, {literal(digits)}, '{ascii}')"
    return f"IF(octet_length({text}) = length({text}), {text}, {translated})"


@cache
def _digits() -> tuple[str, str]:
    """The digits beyond ASCII that are one char of Java, and those of ASCII in the same order."""
    digits = [chr(c) for c in range(0x80, 0x10000) if unicodedata.category(chr(c)) == "Nd"]
    return "".join(digits), "".join(str(unicodedata.decimal(digit)) for digit in digits)


class Names:
    """Variable names, each used once in an expression."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def fresh(self) -> str:
        return f"v{next(self._count)}"

    def bind(self, value: str, body: Callable[[str], str]) -> str:
        # An aggregate over no elements: unlike transform, it copies neither the value nor the result.
        variable = self.fresh()
        return (
            f"aggregate(array(), {value}, ({variable}, none) -> {variable}, {variable} -> {body(variable)})"
        )

    def lambdas(self) -> Names:
        """Return names for lambda functions, and for values to be evaluated only where their branch is taken."""
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
    """Return `body` of a variable that holds `value`, which is evaluated once."""
    return names.bind(value, body)


def with_sql_column(
    frame: DataFrame, column: Column, name: str, body: Callable[[str, Names], str]
) -> DataFrame:
    """Return `frame` with the column `name`: the SQL that `body` makes of a column that holds `column`.

    Each `let` of `body` becomes a column, which Spark compiles, instead of a lambda function, which it interprets. So
    the value is evaluated for every row, even where the branch that uses it is not taken: it must not raise for any.
    Inside of a lambda function use `Names.lambdas()`.
    """
    names, value = _Columns(name), f"{name}_value"
    made = body(value, names)
    frame = frame.withColumn(value, column)
    for bound, sql in names.bound.items():
        frame = frame.withColumn(bound, F.expr(sql))
    return frame.withColumn(name, F.expr(made)).drop(value, *names.bound)


def apply(column: Column, body: str, variable: str) -> Column:
    """Return the SQL expression `body` as a column, with the value of `column` in `variable`."""
    merge, finish = F.expr(f"({variable}, none) -> {variable}"), F.expr(f"{variable} -> {body}")
    return F.call_function("aggregate", F.array(), column, merge, finish)


_D = TypeVar("_D", bound="RowDecoder")


class RowDecoder:
    """What a `formats.base.Decoder` of insert-only documents that name no schema needs beside `decode`."""

    row: RowType
    skips_errors = False
    has_unavailable = False

    def for_payloads(self: _D, payloads: DataFrame) -> _D:
        """See Decoder.for_payloads."""
        return self

    def good(self, value: str, names: Names) -> str:
        """Return the decoded column for the row of a document."""
        return struct(rows=f"array({struct(kind=INSERT, row=value)})", error=null("STRING"))

    def bad(self, error: str) -> str:
        """Return the decoded column without a row; `error` is SQL."""
        return struct(rows=null(f"ARRAY<STRUCT<kind: STRING, row: {self.row.spark()}>>"), error=error)


class SqlDecoder(RowDecoder, ABC):
    """A `formats.base.FastPathDecoder` by one SQL expression."""

    @abstractmethod
    def document(self, payload: str, names: Names, *, fast: bool) -> str:
        """Return the decoded column for a `payload`, a variable; on the fast path or by a full decode."""

    def decode(self, payload: Column) -> Column:
        """See Decoder.decode."""
        names = Names()
        variable = names.fresh()
        return apply(payload, self.document(variable, names, fast=False), variable)

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See FastPathDecoder.decode_fast."""
        return with_sql_column(frame, payload, name, lambda p, names: self.document(p, names, fast=True))


class SqlEncoder(ABC):
    """A `formats.base.Encoder` by one SQL expression."""

    @abstractmethod
    def payload(self, row: str, names: Names) -> str:
        """Return the bytes of a row, a column or variable; null for null."""

    def typed(self, row: Column) -> Column:
        """Return the row in the types that `payload` takes."""
        return row

    def encode(self, frame: DataFrame, row: Column, name: str) -> DataFrame:
        """See Encoder.encode."""
        return with_sql_column(frame, self.typed(row), name, self.payload)


class SqlChangeEncoder(ABC):
    """A `formats.base.ChangeEncoder` by one SQL expression."""

    @abstractmethod
    def change(self, before: str, after: str, names: Names) -> str:
        """Return the bytes of a change of a row, of which both images are columns or variables; null for two nulls."""

    @abstractmethod
    def typed(self, row: Column) -> Column:
        """Return an image, or NULL, in the types that `change` takes."""

    def encode_change(self, frame: DataFrame, before: Column, after: Column, name: str) -> DataFrame:
        """See ChangeEncoder.encode_change."""
        bound = f"{name}_before"
        with_before = frame.withColumn(bound, self.typed(before))
        made = with_sql_column(
            with_before, self.typed(after), name, lambda a, names: self.change(bound, a, names)
        )
        return made.drop(bound)
