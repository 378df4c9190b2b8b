"""Translates calls of Flink's functions to Spark's.

Most functions have the same name and meaning in both (both adopted them from Hive). They are passed to Spark as
written, like user functions. Functions that differ are rebuilt here, or refused.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from bridge.ddl.precision import cut
from bridge.schema import ScalarType

__all__ = [
    "AGGREGATES",
    "CLOCKS",
    "DIFFERENT",
    "NON_DETERMINISTIC",
    "TO_TIMESTAMP",
    "TO_TIMESTAMP_LTZ",
    "Refusal",
    "rebuild",
]

# Not deterministic. CLOCKS are called without parentheses.
CLOCKS = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
NON_DETERMINISTIC = CLOCKS | {
    *("PROCTIME", "NOW", "CURRENT_ROW_TIMESTAMP", "CURRENT_WATERMARK", "SOURCE_WATERMARK", "CURDATE"),
    *("RAND", "RAND_INTEGER", "RANDN", "RANDOM", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"),
    *("CURRENT_DATABASE", "CURRENT_CATALOG", "CURRENT_SCHEMA", "CURRENT_USER", "SESSION_USER", "USER"),
    *("CURRENT_TIMEZONE", "MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"),
}
AGGREGATES = frozenset(
    {"AVG", "COLLECT", "COUNT", "FIRST_VALUE", "LAST_VALUE", "LISTAGG", "MAX", "MIN", "SUM"}
)


class Refusal(Exception):
    """Raised for a part of an expression (`node`) that is not supported; the caller adds file, line and column."""

    def __init__(self, message: str, node: exp.Expr | None = None) -> None:
        super().__init__(message)
        self.node = node


def call(name: str, *args: exp.Expr) -> exp.Expr:
    """Returns the call `name(args)`, which sqlglot writes unchanged."""
    return exp.Anonymous(this=name, expressions=list(args))


def rebuild(name: str, args: list[exp.Expr]) -> exp.Expr | None:
    """Returns the Spark expression with the meaning of Flink's `name(args)`; None if Spark's function has it.

    Raises Refusal if Spark has no expression with this meaning.
    """
    if name in DIFFERENT:
        raise Refusal(f"{name} {DIFFERENT[name]}")
    if name in _REBUILT and args:
        return _REBUILT[name](args)
    if name in ("LTRIM", "RTRIM") and len(args) == 2:
        side = "LEADING" if name == "LTRIM" else "TRAILING"
        raise Refusal(f"Spark's {name} takes its arguments in reverse order; write TRIM({side} b FROM a)")
    if name == "UNIX_TIMESTAMP" and not args:
        raise Refusal(
            "UNIX_TIMESTAMP() is not deterministic, but a replayed record must result in the same row"
        )
    return None


DIFFERENT = {
    "ARRAY_CONTAINS": "finds NULL in Flink, and is NULL for arrays with NULL in Spark; expand the array downstream",
    "ELEMENT": "is the only element of an array in Flink, and no function of Spark; write array[1]",
    "GREATEST": "is null in Flink if one argument is null, while Spark ignores nulls; write CASE WHEN",
    "INITCAP": "begins a word after every character that is no letter or digit in Flink, and after a blank in Spark; "
    "write it with UPPER, LOWER and SUBSTRING",
    "LEAST": "is null in Flink if one argument is null, while Spark ignores nulls; write CASE WHEN",
    "SPLIT": "takes a literal separator in Flink and a regular expression in Spark; split the text downstream",
    "TYPEOF": "returns type names of Flink, which Spark does not have; remove it",
}
"""Functions that have another meaning in Spark than in Flink, or none, and the way out."""


TO_TIMESTAMP, TO_TIMESTAMP_LTZ = ScalarType("TIMESTAMP", (3,)), ScalarType("TIMESTAMP_LTZ", (3,))
"""The types of these functions, which cut digits beyond."""


def _timestamp(args: list[exp.Expr]) -> exp.Expr:
    # Text that is not a timestamp is null in Flink; Spark's TO_TIMESTAMP would fail the batch.
    if len(args) > 2:
        raise Refusal("TO_TIMESTAMP is supported with a text and a pattern only")
    return cut(exp.cast(call("TRY_TO_TIMESTAMP", *args), "TIMESTAMP_NTZ", dialect="spark"), TO_TIMESTAMP)


def _date(args: list[exp.Expr]) -> exp.Expr:
    return exp.cast(call("TRY_TO_TIMESTAMP", *args), "DATE", dialect="spark")


def _timestamp_ltz(args: list[exp.Expr]) -> exp.Expr:
    second = args[1] if len(args) == 2 else None
    if isinstance(second, exp.Literal) and second.is_string:
        return cut(call("TRY_TO_TIMESTAMP", *args), TO_TIMESTAMP_LTZ)
    digits = str(second.this) if isinstance(second, exp.Literal) else ""
    if digits not in ("0", "3"):
        raise Refusal(
            "the unit of the arguments of TO_TIMESTAMP_LTZ must be known: write TO_TIMESTAMP_LTZ(seconds, 0), "
            "TO_TIMESTAMP_LTZ(milliseconds, 3) or TO_TIMESTAMP_LTZ(text, 'pattern')"
        )
    return call("TIMESTAMP_SECONDS" if digits == "0" else "TIMESTAMP_MILLIS", args[0])


def _regexp_extract(args: list[exp.Expr]) -> exp.Expr:
    # No match is null in Flink and '' in Spark; the group is 0 in Flink unless given, and 1 in Spark.
    text, pattern = args[0], args[1] if len(args) > 1 else exp.null()
    group = args[2] if len(args) > 2 else exp.Literal.number(0)
    matches = call("REGEXP_LIKE", text.copy(), pattern.copy())
    return exp.Case(ifs=[exp.If(this=matches, true=call("REGEXP_EXTRACT", text, pattern, group))])


def _logarithm(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Of 0 and below, Java's logarithm as in Flink; Spark's is NULL."""

    def translated(args: list[exp.Expr]) -> exp.Expr:
        zero = exp.Literal.number(0)
        special = [
            exp.If(this=exp.EQ(this=args[0].copy(), expression=zero), true=_double("-Infinity")),
            exp.If(this=exp.LT(this=args[0].copy(), expression=zero.copy()), true=_double("NaN")),
        ]
        return exp.Case(ifs=special, default=call(name, *args))

    return translated


def _double(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "DOUBLE", dialect="spark")


def _sha2(bits: int) -> Callable[[list[exp.Expr]], exp.Expr]:
    return lambda args: call("SHA2", *args, exp.Literal.number(bits))


_REBUILT: dict[str, Callable[[list[exp.Expr]], exp.Expr]] = {
    "FROM_BASE64": lambda args: exp.cast(call("UNBASE64", *args), "STRING", dialect="spark"),
    "LN": _logarithm("LN"),
    "LOG10": _logarithm("LOG10"),
    "LOG2": _logarithm("LOG2"),
    "REGEXP_EXTRACT": _regexp_extract,
    "ROW": lambda args: call("STRUCT", *args),
    "SHA224": _sha2(224),
    "SHA256": _sha2(256),
    "SHA384": _sha2(384),
    "SHA512": _sha2(512),
    "TO_BASE64": lambda args: call("BASE64", *args),
    "TO_DATE": _date,
    "TO_TIMESTAMP": _timestamp,
    "TO_TIMESTAMP_LTZ": _timestamp_ltz,
    "WEEK": lambda args: call("WEEKOFYEAR", *args),
}
