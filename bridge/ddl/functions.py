"""Flink's functions in Spark's words.

Most functions carry one name and one meaning in both (both took them from Hive); they are passed on as
written and Spark judges them, user functions included. Those that differ are rebuilt here, or refused.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

__all__ = ["AGGREGATES", "CLOCKS", "NON_DETERMINISTIC", "Refusal", "rebuild"]

# Give another answer each time they are asked. CLOCKS need no parentheses.
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
    """Why a part of an expression is refused, and which; the caller adds file, line and column."""

    def __init__(self, message: str, node: exp.Expr | None = None) -> None:
        super().__init__(message)
        self.node = node


def call(name: str, *args: exp.Expr) -> exp.Expr:
    """`name(args)`, written out as it is here."""
    return exp.Anonymous(this=name, expressions=list(args))


def rebuild(name: str, args: list[exp.Expr]) -> exp.Expr | None:
    """The Spark expression with the meaning of Flink's `name(args)`, or None when Spark's own has it.

    Raises Refusal where only a silent difference would be left.
    """
    if name in _SILENTLY_DIFFERENT:
        raise Refusal(f"{name} {_SILENTLY_DIFFERENT[name]}")
    if name in _REBUILT and args:
        return _REBUILT[name](args)
    if name in ("LTRIM", "RTRIM") and len(args) == 2:
        side = "LEADING" if name == "LTRIM" else "TRAILING"
        raise Refusal(
            f"Spark's {name} takes its two arguments in the other order; write TRIM({side} b FROM a)"
        )
    if name == "UNIX_TIMESTAMP" and not args:
        raise Refusal("UNIX_TIMESTAMP() reads the clock; a replayed record must give the same row")
    return None


_SILENTLY_DIFFERENT = {
    "GREATEST": "is null in Flink as soon as one argument is; Spark leaves nulls out. Write CASE WHEN",
    "LEAST": "is null in Flink as soon as one argument is; Spark leaves nulls out. Write CASE WHEN",
    "SPLIT": "takes its separator literally in Flink and as a regular expression in Spark; split downstream",
    "TYPEOF": "names types in Flink's words; leave it out",
}


def _timestamp(args: list[exp.Expr]) -> exp.Expr:
    # Text that is no timestamp is null in Flink; Spark's TO_TIMESTAMP would fail the batch.
    if len(args) > 2:
        raise Refusal("TO_TIMESTAMP takes a text and a pattern here")
    return exp.cast(call("TRY_TO_TIMESTAMP", *args), "TIMESTAMP_NTZ", dialect="spark")


def _date(args: list[exp.Expr]) -> exp.Expr:
    return exp.cast(call("TRY_TO_TIMESTAMP", *args), "DATE", dialect="spark")


def _timestamp_ltz(args: list[exp.Expr]) -> exp.Expr:
    second = args[1] if len(args) == 2 else None
    if isinstance(second, exp.Literal) and second.is_string:
        return call("TRY_TO_TIMESTAMP", *args)
    digits = str(second.this) if isinstance(second, exp.Literal) else ""
    if digits not in ("0", "3"):
        raise Refusal(
            "TO_TIMESTAMP_LTZ needs to know what it is given: write TO_TIMESTAMP_LTZ(seconds, 0), "
            "TO_TIMESTAMP_LTZ(milliseconds, 3) or TO_TIMESTAMP_LTZ(text, 'pattern')"
        )
    return call("TIMESTAMP_SECONDS" if digits == "0" else "TIMESTAMP_MILLIS", args[0])


def _regexp_extract(args: list[exp.Expr]) -> exp.Expr:
    # No match is null in Flink and '' in Spark; the group is 0 in Flink unless given, and 1 in Spark.
    text, pattern = args[0], args[1] if len(args) > 1 else exp.null()
    group = args[2] if len(args) > 2 else exp.Literal.number(0)
    matches = call("REGEXP_LIKE", text.copy(), pattern.copy())
    return exp.Case(ifs=[exp.If(this=matches, true=call("REGEXP_EXTRACT", text, pattern, group))])


def _sha2(bits: int) -> Callable[[list[exp.Expr]], exp.Expr]:
    return lambda args: call("SHA2", *args, exp.Literal.number(bits))


_REBUILT: dict[str, Callable[[list[exp.Expr]], exp.Expr]] = {
    "FROM_BASE64": lambda args: exp.cast(call("UNBASE64", *args), "STRING", dialect="spark"),
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
}
