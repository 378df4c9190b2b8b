"""The scalar functions of Flink that a computed column or a query may call: their arguments and results.

A signature is a line `NAME(kinds) result`. A kind says which types an argument has, and what it means, so that
`make flink-vectors` draws values at its limits. `[...]` may be left out, `...` stands for one or more. A result is a
type of Flink, `=N` for the type of argument N, `common` for the type to which all arguments fit, `item=N` for that of
an array's items, or a name for which `functions.result_of` has a rule.
Source: the page "System (Built-in) Functions" of Flink 2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.expressions.type_rules import EXACT, INTEGERS, NULL, NUMERIC, TEXT
from bridge.schema import TIMES, ArrayType, DataType, MapType, ScalarType

_TEXT = """
UPPER(text) STRING
LOWER(text) STRING
CHAR_LENGTH(text) INT
CHARACTER_LENGTH(text) INT
LTRIM(text [chars]) STRING
RTRIM(text [chars]) STRING
BTRIM(text [chars]) STRING
CONCAT(text...) STRING
CONCAT_WS(separator text...) STRING
REPLACE(text part text) STRING
REPEAT(text count) STRING
REVERSE(text) STRING
LPAD(text count part) STRING
RPAD(text count part) STRING
LEFT(text count) STRING
RIGHT(text count) STRING
SUBSTR(text count [count]) STRING
SUBSTRING(text count [count]) STRING
REGEXP_REPLACE(text regex replacement) STRING
REGEXP_EXTRACT(text regex [group]) STRING
REGEXP_EXTRACT_ALL(text regex [group]) ARRAY<STRING>
REGEXP_COUNT(text regex) INT
REGEXP_INSTR(text regex) INT
REGEXP_SUBSTR(text regex) STRING
REGEXP(text regex) BOOLEAN
FROM_BASE64(base64) STRING
TO_BASE64(text) STRING
ASCII(text) INT
CHR(integer) STRING
INSTR(text part [count [count]]) INT
LOCATE(part text [count]) INT
PARSE_URL(url urlpart [part]) STRING
STARTSWITH(text part) BOOLEAN
ENDSWITH(text part) BOOLEAN
SPLIT(text part) ARRAY<STRING>
SPLIT_INDEX(text part count) STRING
STR_TO_MAP(pairs [literal literal]) MAP<STRING,STRING>
URL_ENCODE(text) STRING
URL_DECODE(url) STRING
ELT(count text...) STRING
TRANSLATE(text part part) STRING
HEX(integer) STRING
HEX(text) STRING
UNHEX(hex) BYTES
BIN(integer) STRING
IS_ALPHA(text) BOOLEAN
IS_DIGIT(text) BOOLEAN
IS_DECIMAL(numeral) BOOLEAN
MD5(text) STRING
SHA1(text) STRING
SHA224(text) STRING
SHA256(text) STRING
SHA384(text) STRING
SHA512(text) STRING
SHA2(text bits) STRING
"""
_NUMBERS = """
ABS(number) =1
SIGN(number) =1
MOD(exact exact) %
ROUND(number [digits]) round
TRUNCATE(number [digits]) round
CEILING(number) whole
SQRT(real) DOUBLE
EXP(real) DOUBLE
LN(real) DOUBLE
LOG(real [real]) DOUBLE
LOG10(real) DOUBLE
LOG2(real) DOUBLE
POWER(real real) DOUBLE
SIN(real) DOUBLE
COS(real) DOUBLE
TAN(real) DOUBLE
COT(real) DOUBLE
ASIN(real) DOUBLE
ACOS(real) DOUBLE
ATAN(real) DOUBLE
ATAN2(real real) DOUBLE
SINH(real) DOUBLE
COSH(real) DOUBLE
TANH(real) DOUBLE
DEGREES(real) DOUBLE
RADIANS(real) DOUBLE
PI() DOUBLE
E() DOUBLE
"""
_TIMES = """
YEAR(day) BIGINT
QUARTER(day) BIGINT
MONTH(day) BIGINT
WEEK(day) BIGINT
DAYOFYEAR(day) BIGINT
DAYOFMONTH(day) BIGINT
DAYOFWEEK(day) BIGINT
HOUR(moment) BIGINT
MINUTE(moment) BIGINT
SECOND(moment) BIGINT
DATE_FORMAT(moment pattern) STRING
DATE_FORMAT(time_text pattern) STRING
FROM_UNIXTIME(seconds [pattern]) STRING
UNIX_TIMESTAMP(time_text [pattern]) BIGINT
TO_DATE(time_text [pattern]) DATE
TO_TIMESTAMP(time_text [pattern]) TIMESTAMP(3)
TO_TIMESTAMP_LTZ(seconds [literal]) TIMESTAMP_LTZ(3)
CONVERT_TZ(time_text zone zone) STRING
TIMESTAMPADD(unit count day) added
TIMESTAMPDIFF(unit day day) INT
"""
_VALUES = """
COALESCE(text...) common
COALESCE(number...) common
IFNULL(text text) common
IFNULL(number number) common
NULLIF(text text) =1
NULLIF(number number) =1
COALESCE(value...) common
IFNULL(value value) common
NULLIF(value value) =1
GREATEST(number...) common
GREATEST(text...) common
LEAST(number...) common
LEAST(text...) common
CARDINALITY(texts) INT
CARDINALITY(map) INT
ELEMENT(one) item=1
ARRAY_APPEND(texts item) =1
ARRAY_CONCAT(texts texts...) =1
ARRAY_CONTAINS(texts item) BOOLEAN
ARRAY_DISTINCT(texts) =1
ARRAY_EXCEPT(texts texts) =1
ARRAY_INTERSECT(texts texts) =1
ARRAY_JOIN(texts separator [text]) STRING
ARRAY_MAX(texts) item=1
ARRAY_MIN(texts) item=1
ARRAY_MAX(integers) item=1
ARRAY_MIN(integers) item=1
ARRAY_POSITION(texts item) INT
ARRAY_PREPEND(texts item) =1
ARRAY_REMOVE(texts item) =1
ARRAY_REVERSE(texts) =1
ARRAY_SLICE(texts count [count]) =1
ARRAY_SORT(integers [flag [flag]]) =1
ARRAY_SORT(texts [flag [flag]]) =1
ARRAY_UNION(texts texts) =1
MAP_ENTRIES(map) entries
MAP_FROM_ARRAYS(texts texts) map
MAP_KEYS(map) keys
MAP_UNION(map map...) =1
MAP_VALUES(map) values
JSON_EXISTS(json path) BOOLEAN
JSON_VALUE(json path) STRING
JSON_QUERY(json path) STRING
"""
_WITH_KEYWORDS = """
OVERLAY(text text count [count]) STRING
POSITION(part text) INT
TRIM(text [chars]) STRING
"""
"""Their arguments are written with keywords."""
_FAMILIES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("count", "group", "digits", "bits"), INTEGERS[:3]),
    **dict.fromkeys(("integer", "seconds"), INTEGERS),
    **dict.fromkeys(("number", "real"), NUMERIC),
    "exact": EXACT,
    "moment": TIMES,
    "day": ("DATE", *TIMES),
    "flag": ("BOOLEAN",),
    "texts": ("ARRAY",),
    "integers": ("ARRAY",),
    "one": ("ARRAY",),
    "map": ("MAP",),
    "literal": (*TEXT, *INTEGERS),
}
"""The types of each kind; all other kinds are text."""


@dataclass(frozen=True)
class Signature:
    """One way to call a function."""

    name: str
    kinds: tuple[str, ...]
    least: int
    """The number of arguments that a call must have."""
    is_open: bool
    """Whether the last argument may be there several times."""
    result: str

    @staticmethod
    def parse(line: str) -> Signature:
        """Reads a line of the tables above."""
        name, _, rest = line.partition("(")
        inside, _, result = rest.partition(")")
        words = inside.replace("[", " [ ").replace("]", " ").split()
        kinds = tuple(word.removesuffix("...") for word in words if word != "[")
        least = words.index("[") if "[" in words else len(kinds)
        return Signature(name, kinds, least, inside.endswith("..."), result.strip())

    def takes(self, types: Sequence[DataType | None]) -> bool:
        """Returns whether a call with arguments of these types is legal; a type that is not known fits."""
        kinds = self.kinds_of(len(types))
        return len(kinds) == len(types) and all(map(_fits, types, kinds))

    def kinds_of(self, count: int) -> tuple[str, ...]:
        """Returns the kinds of `count` arguments; another number of kinds if a call cannot have so many."""
        if self.is_open and count > len(self.kinds):
            return (*self.kinds, *self.kinds[-1:] * (count - len(self.kinds)))
        return self.kinds[:count] if count >= self.least else self.kinds


def _fits(type: DataType | None, kind: str) -> bool:
    name = type.name if isinstance(type, ScalarType) else "ARRAY" if isinstance(type, ArrayType) else ""
    name = "MAP" if isinstance(type, MapType) else name
    if kind in ("value", "item"):
        return True
    is_nested = _FAMILIES.get(kind) in (("ARRAY",), ("MAP",))
    return type is None or (type == NULL and not is_nested) or name in _FAMILIES.get(kind, TEXT)


def _parsed(lines: str) -> tuple[Signature, ...]:
    return tuple(Signature.parse(line) for line in lines.split("\n") if line.strip())


SIGNATURES = _parsed(f"{_TEXT}{_NUMBERS}{_TIMES}{_VALUES}")
_ALL = (*SIGNATURES, *_parsed(_WITH_KEYWORDS))
FUNCTIONS = frozenset({"MAP", "ROW", *(s.name for s in SIGNATURES)})
"""The names of all scalar functions that are called like functions."""


def signature_of(name: str, types: Sequence[DataType | None]) -> Signature | None:
    """Returns the signature that a call of `name` has; None if there is none with such arguments."""
    return next((s for s in signatures_of(name) if s.takes(types)), None)


def signatures_of(name: str) -> tuple[Signature, ...]:
    """Returns all ways to call a function, in the order of the tables."""
    return tuple(s for s in _ALL if s.name == name)
