"""The scalar functions of queries: those that Flink and Spark share, or that are translated.

A function that is not listed is refused: Spark may have one of the same name with another meaning. Translations are
those of computed columns (`bridge.ddl.functions`).
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.ddl.functions import TO_TIMESTAMP, TO_TIMESTAMP_LTZ
from bridge.schema import DataType
from bridge.sql.type_rules import common, scalar

__all__ = ["FUNCTIONS", "result_type"]

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
}
_TIMES = {"TO_TIMESTAMP": TO_TIMESTAMP, "TO_TIMESTAMP_LTZ": TO_TIMESTAMP_LTZ}
_OF_FIRST = frozenset("ABS SIGN NULLIF".split())
_OF_ALL = frozenset("COALESCE IFNULL".split())
_UNKNOWN = frozenset("ROUND MOD ROW MAP_FROM_ARRAYS CARDINALITY TIMESTAMPADD".split())
_RESULTS = {name: type for type, names in _BY_TYPE.items() for name in names.split()}

FUNCTIONS = frozenset({*_RESULTS, *_TIMES, *_OF_FIRST, *_OF_ALL, *_UNKNOWN})
"""The names of all scalar functions that a query may call."""


def result_type(name: str, arguments: Sequence[DataType | None]) -> DataType | None:
    """Returns the type of a call in Flink; None if only Spark can derive it."""
    if name in _TIMES:
        return _TIMES[name]
    if name in _RESULTS:
        return scalar(_RESULTS[name])
    if name in _OF_FIRST and arguments:
        return arguments[0]
    return common(arguments) if name in _OF_ALL and arguments else None
