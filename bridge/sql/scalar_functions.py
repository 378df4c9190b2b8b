"""The scalar functions of queries: those that Flink and Spark share, or that are translated.

A function that is not listed is refused: Spark may have one of the same name with another meaning. Translations are
those of computed columns (`bridge.ddl.functions`), and `rebuilt`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from bridge.ddl.functions import call
from bridge.schema import DataType
from bridge.sql.type_rules import common, scalar

__all__ = ["DIFFERENT", "FUNCTIONS", "rebuilt", "result_type"]

_BY_TYPE = {
    "STRING": (
        "UPPER LOWER LTRIM RTRIM BTRIM CONCAT CONCAT_WS REPLACE REPEAT REVERSE LPAD RPAD LEFT RIGHT SUBSTR "
        "SUBSTRING REGEXP_REPLACE REGEXP_EXTRACT DATE_FORMAT FROM_BASE64 TO_BASE64 HEX CHR BIN MD5 SHA1 SHA2 SHA224 "
        "SHA256 SHA384 SHA512 TRANSLATE FROM_UNIXTIME"
    ),
    "INT": "CHAR_LENGTH CHARACTER_LENGTH ASCII INSTR LOCATE POSITION TIMESTAMPDIFF",
    "BIGINT": "YEAR QUARTER MONTH WEEK DAYOFYEAR DAYOFMONTH DAYOFWEEK HOUR MINUTE SECOND UNIX_TIMESTAMP",
    "DOUBLE": (
        "SQRT EXP LN LOG LOG10 LOG2 POWER SIN COS TAN COT ASIN ACOS ATAN ATAN2 SINH COSH TANH DEGREES RADIANS PI E"
    ),
    "BOOLEAN": "REGEXP STARTSWITH ENDSWITH",
    "DATE": "TO_DATE",
    "TIMESTAMP": "TO_TIMESTAMP",
    "TIMESTAMP_LTZ": "TO_TIMESTAMP_LTZ",
}
_OF_FIRST = frozenset("ABS SIGN NULLIF".split())
_OF_ALL = frozenset("COALESCE IFNULL".split())
_UNKNOWN = frozenset("ROUND MOD ROW MAP_FROM_ARRAYS CARDINALITY TIMESTAMPADD".split())
_RESULTS = {name: type for type, names in _BY_TYPE.items() for name in names.split()}

FUNCTIONS = frozenset({*_RESULTS, *_OF_FIRST, *_OF_ALL, *_UNKNOWN})
"""The names of all scalar functions that a query may call."""


DIFFERENT = {
    "INITCAP": "begins a word after every character that is no letter or digit in Flink, and after a blank in Spark; "
    "write it with UPPER, LOWER and SUBSTRING",
    "ARRAY_CONTAINS": "finds NULL in Flink, and is NULL for arrays with NULL in Spark; expand the array downstream",
    "ELEMENT": "is the only element of an array in Flink, and no function of Spark; write array[1]",
}
"""Why a function of Flink is refused, where its name alone does not say it."""


def rebuilt(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr | None:
    """Returns the Spark expression with the meaning of Flink's `name(arguments)`, whose arguments are translated; None
    if nothing is to be done."""
    return _REBUILT[name](list(arguments)) if name in _REBUILT and arguments else None


def _logarithm(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Of 0 and below, Java's logarithm as in Flink; Spark's is NULL."""

    def rebuild(arguments: list[exp.Expr]) -> exp.Expr:
        zero = exp.Literal.number(0)
        number = arguments[0]
        if len(arguments) > 1:
            return call(name, *arguments)
        special = [
            exp.If(this=exp.EQ(this=number.copy(), expression=zero), true=_double("-Infinity")),
            exp.If(this=exp.LT(this=number.copy(), expression=zero.copy()), true=_double("NaN")),
        ]
        return exp.Case(ifs=special, default=call(name, number.copy()))

    return rebuild


def _double(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "DOUBLE", dialect="spark")


_REBUILT: dict[str, Callable[[list[exp.Expr]], exp.Expr]] = {
    "LN": _logarithm("LN"),
    "LOG10": _logarithm("LOG10"),
    "LOG2": _logarithm("LOG2"),
    "WEEK": lambda arguments: call("WEEKOFYEAR", *arguments),
}


def result_type(name: str, arguments: Sequence[DataType | None]) -> DataType | None:
    """Returns the type of a call in Flink; None if only Spark can derive it."""
    if name in _RESULTS:
        return scalar(_RESULTS[name])
    if name in _OF_FIRST and arguments:
        return arguments[0]
    return common(arguments) if name in _OF_ALL and arguments else None
