"""Flink's CAST and TRY_CAST in Spark.

Integers and times are cut, doubles become the nearest integer that there is, a number that no DECIMAL holds is NULL,
and a text that is no value is an error, NULL for TRY_CAST. Source: Flink's planner, asked by `make flink-vectors`.
"""

from __future__ import annotations

import re
from calendar import monthrange

from sqlglot import exp

from bridge.expressions.arithmetic import cut_decimal, wrapped
from bridge.expressions.collections import FROM_ARRAYS
from bridge.expressions.failures import failed, own_failure
from bridge.expressions.precision import cut, loses_digits, spelled, written
from bridge.expressions.template import Refusal, spark
from bridge.expressions.type_rules import INTEGERS, NULL, NUMERIC, TEXT
from bridge.schema import BYTES, TIMES, ArrayType, DataType, MapType, RowType, ScalarType

DAY_OF_TIME = "DATE_FROM_UNIX_DATE(CAST(UNIX_MILLIS(CAST(@0 AS TIMESTAMP)) DIV 86400000L AS INT))"
"""The day of a time. Flink divides milliseconds as Java does, so that times before 1970 belong to the next day."""
NO_NUMBER, IS_NO_NUMBER = "NaN or infinity", "ISNAN(@0) OR ABS(@0) = DOUBLE('Infinity')"
_NO_VALUE = "a value that is no {}"
_TRUE, _FALSE = "('t', 'true', 'y', 'yes', '1')", "('f', 'false', 'n', 'no', '0')"
_DAY = r"\d{1,4}(?:-\d{1,2}(?:-\d{1,2})?)?"
_WITHOUT_LAST_SIGN = (
    r"REGEXP_REPLACE(@0, '^ *([+-]?+)(?=[^ ])([0-9]*+[.]?+[0-9]*+)"
    r"(?:([eE][+-]?+[0-9]++)[^0-9 ]?+|[eE][^0-9 +-]?+|[eE][+-][^0-9 ]|[^0-9 .eE]?+) *$', '$10$2$3')"
)
"""A number, without the sign that may stand behind it."""
_CONTROL = r"@0 RLIKE '[\\x00-\\x1f\\x7f-\\x9f]'"
_NO_INFINITY = "@0 RLIKE '(?i)(nan|inf|infinity) *$' AND NOT @0 RLIKE '(NaN|Infinity) *$'"
_WHOLE_DAY = r"^\d{4}-\d{1,2}-\d{1,2}(?: |$)"
"""What Spark's cast takes as it is, too: most texts, for which nothing is split."""
_FOUR_DIGITS = "REGEXP_REPLACE(CONCAT('000', REGEXP_EXTRACT(@0, '[0-9-]+', 0)), '^0*([0-9]{4}(?:-|$))', '$1')"
"""The day of a text, whose year may have fewer digits."""
_ON_LAST_DAY = (
    "CONCAT(LAST_DAY(TRY_CAST(REGEXP_EXTRACT(@0, '^([0-9]{4}-[0-9]{1,2})-(29|3[01])', 1) AS DATE)), "
    "REGEXP_REPLACE(@0, '^[0-9]+-[0-9]+-[0-9]+', ''))"
)
_MIDNIGHT = "REGEXP_REPLACE(@0, ' 24:0?0:0?0([.]0*)?$', ' 00:00:00')"
"""A text with the beginning of the day in place of its end."""
_WRITTEN = r"(?!0000)\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"
_MOMENT = r"(?!0{1,4}-)\d{1,4}-\d{1,2}-\d{1,2}(?: \d{1,2}:\d{1,2}:\d{1,2}(?:[.]\d{0,9})?)?"


def cast(node: exp.Cast, given: DataType | None) -> tuple[exp.Expr, DataType]:
    """Returns the cast in Spark, and its type. Raises Refusal for casts that Flink or Spark does not have."""
    wanted = written(node.to)
    if given is None and isinstance(wanted, ScalarType) and wanted.name in TEXT:
        return _sized(spark("CAST(@0 AS STRING)", node.this), wanted), wanted
    trying = bool(node.args.get("safe"))
    if given is None and isinstance(wanted, ScalarType) and not trying:
        made = spark(f"TRY_CAST(@0 AS {wanted.spark()})", node.this)
        return cut(_checked(node.this, made, wanted), wanted), wanted
    if given is None or given in (NULL, wanted):
        return cut(node, wanted), wanted
    found = _of(node.this, given, wanted, trying)
    if found is None:
        raise Refusal(f"{given.flink()} cannot be cast to {wanted.flink()}")
    if trying and not isinstance(wanted, ScalarType):  # NULL, if one of the items cannot be cast
        fails = own_failure(_of(node.this, given, wanted, trying=False) or found)
        found = found if fails is None else spark("CASE WHEN @0 IS NULL THEN @1 END", fails, found)
    return found, wanted


def _checked(value: exp.Expr, attempt: exp.Expr, wanted: ScalarType) -> exp.Expr:
    """`attempt`, which fails where it is NULL for a `value`."""
    reason = failed(_NO_VALUE.format(wanted.flink()), wanted.spark())
    return spark(f"COALESCE(@1, IF(@0 IS NULL, NULL, {reason}))", value, attempt)


def to_text(value: exp.Expr, type: DataType | None) -> exp.Expr:
    """Returns the text that Flink makes of a value. Raises Refusal for maps and rows, whose text has no fixed order."""
    if type is None or type == NULL:
        return value
    if isinstance(type, ArrayType):
        item = to_text(exp.column("v"), type.element)
        items = spark("TRANSFORM(@0, v -> @1)", value, item) if item != exp.column("v") else value
        return spark("CONCAT('[', ARRAY_JOIN(@0, ', ', 'NULL'), ']')", items)
    if not isinstance(type, ScalarType):
        raise Refusal(f"{type.flink()} is not cast to text; name its parts")
    if type.name in TEXT:
        return value
    if type.name == "BOOLEAN":
        return spark("UPPER(CAST(@0 AS STRING))", value)
    if type.name in BYTES:
        return spark("MAKE_VALID_UTF8(CAST(@0 AS STRING))", value)
    if type.name in TIMES:
        digits = type.parameters[0]
        return spark(f"DATE_FORMAT(@0, 'yyyy-MM-dd HH:mm:ss{'.' * bool(digits)}{'S' * digits}')", value)
    return spark("CAST(@0 AS STRING)", value)


def _of(value: exp.Expr, given: DataType, wanted: DataType, trying: bool, depth: int = 1) -> exp.Expr | None:
    """Items are cast as values of their own are. None if Flink has no such cast."""
    if given == NULL:
        return spark(f"CAST(@0 AS {wanted.spark()})", value)
    if isinstance(given, ScalarType) and isinstance(wanted, ScalarType):
        return _of_scalar(value, given, wanted, trying)
    item = exp.to_identifier(f"__v{depth}")
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        made = _of(item, given.element, wanted.element, trying, depth + 1)
        return value if made == item else made and spark(f"TRANSFORM(@0, {item.name} -> @1)", value, made)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        arrays = [
            (ArrayType(g), ArrayType(w)) for g, w in ((given.key, wanted.key), (given.value, wanted.value))
        ]
        parts = [spark(f"MAP_{part}(@0)", value) for part in ("KEYS", "VALUES")]
        made_parts = [_of(p, *types, trying, depth) for p, types in zip(parts, arrays, strict=True)]
        if None in made_parts:
            return None
        new_keys = made_parts[0] != parts[0]
        return spark(FROM_ARRAYS if new_keys else "MAP_FROM_ARRAYS(@0, @1)", *filter(None, made_parts))
    if isinstance(given, RowType) and isinstance(wanted, RowType) and len(given.fields) == len(wanted.fields):
        pairs = list(zip(given.fields, wanted.fields, strict=True))
        types = [spelled(w.type if g.type == NULL else g.type) for g, w in pairs]
        named = ", ".join(f"f{n}: {type}" for n, type in enumerate(types))
        fields: list[exp.Expr] = []
        for n, (g, w) in enumerate(pairs):
            field = _of(exp.Dot.build([item, exp.to_identifier(f"f{n}")]), g.type, w.type, trying, depth + 1)
            if field is None:
                return None
            fields += [exp.Literal.string(w.name), field]
        row = exp.Anonymous(this="NAMED_STRUCT", expressions=fields)
        rows = spark(f"ARRAY(CAST(@0 AS STRUCT<{named}>))", value)
        made = spark(f"TRANSFORM(@0, {item.name} -> IF({item.name} IS NULL, NULL, @1))", rows, row)
        return spark("TRY_ELEMENT_AT(@0, 1)", made)
    if isinstance(wanted, ScalarType) and wanted.name in TEXT:
        return _sized(to_text(value, given), wanted)
    return None


def _of_scalar(value: exp.Expr, given: ScalarType, wanted: ScalarType, trying: bool) -> exp.Expr | None:
    """None if Flink has no such cast."""
    if wanted.name in TEXT:
        return _sized(to_text(value, given), wanted)
    if wanted.name in BYTES:
        return spark("CAST(@0 AS BINARY)", value) if given.name in (*TEXT, *BYTES) else None
    if wanted.name == "BOOLEAN":
        if given.name in TEXT:
            no_value = failed(_NO_VALUE.format("BOOLEAN"), "BOOLEAN")
            otherwise = "" if trying else f"WHEN @0 IS NOT NULL THEN {no_value}"
            tests = f"WHEN LOWER(@0) IN {_TRUE} THEN TRUE WHEN LOWER(@0) IN {_FALSE} THEN FALSE"
            return spark(f"CASE {tests} {otherwise} END", value)
        return (
            spark("@0 <> 0", value) if given.name in NUMERIC else value if given.name == "BOOLEAN" else None
        )
    if wanted.name in NUMERIC:
        return _number(value, given, wanted, trying)
    return _time(value, given, wanted, trying)


def _sized(value: exp.Expr, wanted: ScalarType) -> exp.Expr:
    if wanted.name == "STRING" or not wanted.parameters or wanted.parameters[0] == 2**31 - 1:
        return value
    length = wanted.parameters[0]
    return spark(f"LEFT(@0, {length})" if wanted.name == "VARCHAR" else f"RPAD(@0, {length}, ' ')", value)


def _number(value: exp.Expr, given: ScalarType, wanted: ScalarType, trying: bool) -> exp.Expr | None:
    name, plain = given.name, f"CAST(@0 AS {wanted.spark()})"
    if name in TEXT:
        # Digits after a point are cut, as Flink does; Spark refuses them.
        whole = r"REGEXP_REPLACE(@0, '^( *[+-]?)([0-9]*)[.][0-9]*( *)$', '$10$2$3')"
        text = f"IF(CONTAINS(@0, '.'), {whole}, @0)" if wanted.name in INTEGERS else "@0"
        read = f"TRY_CAST({text} AS {wanted.spark()})"
        if wanted.name in INTEGERS:
            read = f"IF({_CONTROL}, NULL, {read})"
        elif wanted.name != "DECIMAL":
            read = f"IF({_NO_INFINITY}, NULL, {read})"
        elif wanted.parameters[0] <= 18:
            # What Flink reads as a long: one sign may follow it, and there are no digits beyond ASCII.
            lenient = f"IF(LENGTH(@0) > 18, NULL, TRY_CAST({_WITHOUT_LAST_SIGN} AS {wanted.spark()}))"
            read = f"IF(CHAR_LENGTH(@0) = OCTET_LENGTH(@0), COALESCE({read}, {lenient}), NULL)"
        attempt = spark(read, value)
        return attempt if trying else _checked(value, attempt, wanted)
    if name == "BOOLEAN":
        return spark(
            plain if wanted.name != "DECIMAL" else f"CAST(CAST(@0 AS INT) AS {wanted.spark()})", value
        )
    if name not in NUMERIC:
        return None
    if wanted.name in ("FLOAT", "DOUBLE"):
        return spark(plain, value)
    if wanted.name == "DECIMAL":
        made = f"TRY_{plain}"
        if name in ("FLOAT", "DOUBLE") and not trying:
            made = f"CASE WHEN {IS_NO_NUMBER} THEN {failed(NO_NUMBER, wanted.spark())} ELSE {made} END"
        return spark(made, value)
    if name in INTEGERS:
        narrower = INTEGERS.index(wanted.name) < INTEGERS.index(name)
        return wrapped(spark("CAST(@0 AS BIGINT)", value), wanted.name) if narrower else spark(plain, value)
    if name == "DECIMAL":
        return cut_decimal(value, given, wanted.name)
    return _cut_float(value, wanted.name)


def _cut_float(value: exp.Expr, name: str) -> exp.Expr:
    """Java's narrowing: NaN is 0, what is too large the largest; of a BYTE and SHORT the lowest bits of that INT."""
    if name in ("TINYINT", "SMALLINT"):
        return wrapped(spark("CAST(@0 AS BIGINT)", _cut_float(value, "INT")), name)
    least, most = (
        ("-2147483648", "2147483647")
        if name == "INT"
        else ("-9223372036854775807L - 1L", "9223372036854775807L")
    )
    return spark(
        f"CASE WHEN ISNAN(@0) THEN 0 WHEN @0 >= DOUBLE({most}) THEN {most} WHEN @0 <= DOUBLE({least}) THEN {least} "
        f"ELSE CAST(@0 AS {name}) END",
        value,
    )


def _time(value: exp.Expr, given: ScalarType, wanted: ScalarType, trying: bool) -> exp.Expr | None:
    if given.name in TEXT:
        if isinstance(value, exp.Literal) and not trying:
            if _is_plain_constant(str(value.this), wanted):
                return cut(exp.cast(value, wanted.spark(), dialect="spark"), wanted, down=True)
            return text_to_time(value, wanted)
        made = text_to_time(value, wanted)
        return made if trying else _checked(value, made, wanted)
    if given.name not in ("DATE", *TIMES):
        return None
    if wanted.name == "DATE" and given.name == "TIMESTAMP":
        return spark(DAY_OF_TIME, value)
    return cut(spark(f"CAST(@0 AS {wanted.spark()})", value), wanted)


def text_to_time(value: exp.Expr, type: ScalarType) -> exp.Expr:
    """Returns the time of a text as CAST reads it; NULL for a text that is none. Spark's own cast takes more texts.

    Days up to 31 are there in each month; they are its last one. Digits are cut as texts, downwards.
    """
    if type.name == "DATE":
        return spark(
            f"CASE WHEN {_like(_WHOLE_DAY)} THEN TRY_CAST(@0 AS DATE) WHEN {_like(_pattern(type))} "
            f"THEN TRY_CAST({_FOUR_DIGITS} AS DATE) END",
            value,
        )
    # What is cut goes through TIMESTAMP: read as one, it is converted once less.
    read = "TIMESTAMP" if loses_digits(None, type) else type.spark()
    made = f"COALESCE(TRY_CAST(@0 AS {read}), TRY_CAST({_ON_LAST_DAY} AS {read}))"
    made = f"COALESCE({made}, {made.replace('@0', _MIDNIGHT)} + INTERVAL '1' DAY)"
    read_all = cut(spark(f"IF({_like(_pattern(type))}, {made}, NULL)", value), type, down=True)
    return as_written(value, f"TRY_CAST(@0 AS {type.spark()})", read_all, digits=type.parameters[0])


def as_written(text: exp.Expr, read: str, otherwise: exp.Expr, *, digits: int = 0) -> exp.Expr:
    """Returns what `read` makes of the text @0 if it is written as Flink writes times, with a fraction of up to
    `digits` digits, else `otherwise`; also where `read` gives NULL. `otherwise` reads such texts too, in more time."""
    fraction = rf"(?:[.]\d{{1,{digits}}})?" if digits else ""
    is_written = _like(rf"^{_WRITTEN}{fraction}$")
    return spark(f"COALESCE(IF({is_written}, {read}, NULL), @1)", text, otherwise)


def _like(pattern: str) -> str:
    # Possessive: Java takes half the time when it keeps no way back, and these patterns need none.
    possessive = re.sub(r"[}*]|\)\?", r"\g<0>+", pattern)
    escaped = possessive.replace("\\", "\\\\")
    return f"@0 RLIKE '{escaped}'"


def _pattern(type: ScalarType) -> str:
    if type.name != "DATE":
        return f"^{_MOMENT}$"
    # What follows the first space is cut, unless the text begins with it.
    return rf"^(?:[\x00-\x1f]*{_DAY}[\x00-\x1f]*(?: |$)| [\x00-\x20]*{_DAY}[\x00-\x20]*$)"


def _is_plain_constant(text: str, type: ScalarType) -> bool:
    """Returns whether Spark's cast reads a constant as Flink does. Raises Refusal for a text that is no time, which
    would fail in every row."""
    found = re.match(_pattern(type), text, re.ASCII)
    day, _, time = text.strip().partition(" ") if found else ("0", "", "")
    year, month, last, *_ = [*map(int, day.split("-")), 1, 1]
    parts = [] if type.name == "DATE" or not time else time.split(":")
    hour, minute, second, *_ = [*map(float, parts), 0, 0, 0]
    is_time = (hour < 24 and minute < 60 and second < 60) or (hour, minute, second) == (24, 0, 0)
    is_day = 0 < year <= 9999 and 0 < month <= 12 and 0 < last <= 31
    if not is_day or not is_time or (type.name == "DATE" and last > monthrange(year, month)[1]):
        raise Refusal(f"{text!r} is no {type.name}")
    return year > 999 and last <= monthrange(year, month)[1] and hour < 24
