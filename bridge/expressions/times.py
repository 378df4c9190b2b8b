"""Parts, bounds and sums of times, as Flink has them.

Flink divides milliseconds as Java does: a part of a time before 1970 is cut towards 1970, so that its hours may be
negative.
"""

from __future__ import annotations

from zoneinfo import available_timezones

from sqlglot import exp

from bridge.expressions.arithmetic import wrapped
from bridge.expressions.casts import DAY_OF_TIME, as_written, text_to_time
from bridge.expressions.patterns import Prefix, date_segments, exact, prefix
from bridge.expressions.precision import cut, loses_digits
from bridge.expressions.template import Build, Call, Entries, Refusal, spark
from bridge.schema import TIMES, DataType, ScalarType

_MILLIS = "UNIX_MILLIS(CAST(@0 AS TIMESTAMP))"
_PARTS: dict[str, str] = {
    "YEAR": "YEAR(@0)",
    "QUARTER": "QUARTER(@0)",
    "MONTH": "MONTH(@0)",
    "WEEK": "WEEKOFYEAR(@0)",
    "DAY": "DAYOFMONTH(@0)",
    "DOY": "DAYOFYEAR(@0)",
    "DOW": "DAYOFWEEK(@0)",
    "ISODOW": "WEEKDAY(@0) + 1",
    "ISOYEAR": "EXTRACT(YEAROFWEEK FROM @0)",
    "DECADE": "YEAR(@0) DIV 10",
    "CENTURY": "(YEAR(@0) + 99) DIV 100",
    "MILLENNIUM": "(YEAR(@0) + 999) DIV 1000",
}
"""Of a day."""
_OF_TIMES: dict[str, str] = {
    "HOUR": f"({_MILLIS} % 86400000L) DIV 3600000L",
    "MINUTE": f"({_MILLIS} % 3600000L) DIV 60000L",
    "SECOND": f"({_MILLIS} % 60000L) DIV 1000L",
    "EPOCH": f"{_MILLIS} DIV 1000L",
    "MILLISECOND": f"{_MILLIS} % 1000L",
    "MICROSECOND": "UNIX_MICROS(CAST(@0 AS TIMESTAMP)) % 1000000L",
}
_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_MILLIS_OF = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000, "WEEK": 604_800_000}
_MONTHS_OF = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def extracted(part: str, value: exp.Expr, type: DataType | None) -> exp.Expr:
    """Returns EXTRACT(part FROM value), a BIGINT. Raises Refusal for parts that Flink does not have."""
    name = part.upper()
    if type is not None and not (isinstance(type, ScalarType) and type.name in ("DATE", *TIMES)):
        raise Refusal(f"EXTRACT takes a DATE or a time, not {type.flink()}; CAST it")
    is_day = isinstance(type, ScalarType) and type.name == "DATE"
    if name in _PARTS:
        day = value if is_day else spark(DAY_OF_TIME, value)
        return spark(f"CAST({_PARTS[name]} AS BIGINT)", day)
    if name in _OF_TIMES and is_day and name not in ("HOUR", "EPOCH"):
        raise Refusal(f"a DATE has no {name}")  # Flink makes one of the number of the day
    if name in _OF_TIMES:
        return spark(_OF_TIMES[name], value)
    legal = ", ".join(sorted({*_PARTS, *_OF_TIMES}))
    raise Refusal(f"EXTRACT({name} FROM …) is not supported; legal: {legal}")


def rounded(node: exp.Expr, type: DataType | None) -> tuple[exp.Expr, DataType | None]:
    """Returns FLOOR and CEIL of a time to a unit, which has its type."""
    name = node.key.upper()
    if not isinstance(type, ScalarType) or type.name not in ("DATE", *TIMES):
        raise Refusal(f"{name} to a unit takes a DATE or a time")
    wanted = str(node.args["to"].name).upper()
    if wanted not in _UNITS:
        raise Refusal(f"{name} to {wanted} is not supported; legal: {', '.join(_UNITS)}")
    return _bound(name, wanted, node.this, type), type


def _bound(name: str, unit: str, value: exp.Expr, type: ScalarType) -> exp.Expr:
    if type.name == "DATE" and unit in ("SECOND", "MINUTE", "HOUR"):
        return value
    # Flink's weeks begin on Sunday, Spark's on Monday.
    shift = "+ INTERVAL '1' DAY" if unit == "WEEK" else ""
    back = "- INTERVAL '1' DAY" if unit == "WEEK" else ""
    floor = f"(DATE_TRUNC('{unit}', @0 {shift}) {back})"
    milliseconds = ScalarType(type.name, (3,)) if type.name != "DATE" else type
    # From WEEK on Flink rounds the day of a time, see `DAY_OF_TIME`.
    operand = value if type.name == "DATE" or unit not in ("WEEK", *_MONTHS_OF) else spark(DAY_OF_TIME, value)
    if operand is value:
        operand = cut(value, milliseconds) if loses_digits(type, milliseconds) else value
    if name == "FLOOR":
        return spark(f"CAST({floor} AS {type.spark()})", operand)
    step = f"INTERVAL '{3 if unit == 'QUARTER' else 1}' {'MONTH' if unit == 'QUARTER' else unit}"
    if unit == "WEEK":
        step = "INTERVAL '7' DAY"
    # CEIL of a DATE to DAY is the next day in Flink.
    test = "FALSE" if type.name == "DATE" and unit == "DAY" else f"{floor} = @0"
    made = f"CASE WHEN {test} THEN @0 WHEN @0 IS NOT NULL THEN {floor} + {step} END"
    return spark(f"CAST({made} AS {type.spark()})", operand)


def added_type(call: Call) -> DataType | None:
    """Returns the type of TIMESTAMPADD: that of the time, a TIMESTAMP for hours that are added to a DATE."""
    type = call.types[2]
    is_day = isinstance(type, ScalarType) and type.name == "DATE"
    return ScalarType("TIMESTAMP", (6,)) if is_day and _unit(call) in ("SECOND", "MINUTE", "HOUR") else type


def _added(call: Call) -> exp.Expr:
    """TIMESTAMPADD(unit, count, time)."""
    unit, count, value = _unit(call), call.arguments[1], call.arguments[2]
    type = call.types[2]
    made = exp.Anonymous(this="TIMESTAMPADD", expressions=[exp.var(unit), count.copy(), value.copy()])
    if not isinstance(type, ScalarType):
        return made
    result = added_type(call)
    return spark(f"CAST(@0 AS {result.spark()})", made) if result is not None else made


def _between(call: Call) -> exp.Expr:
    """TIMESTAMPDIFF(unit, from, to), an INT that wraps."""
    unit, begin, end = _unit(call), call.arguments[1], call.arguments[2]
    names = {t.name for t in call.types[1:] if isinstance(t, ScalarType)}
    if "TIMESTAMP_LTZ" in names and names != {"TIMESTAMP_LTZ"}:
        raise Refusal("TIMESTAMPDIFF takes two TIMESTAMP_LTZ or none; CAST one of them")
    difference = "(UNIX_MILLIS(CAST(@1 AS TIMESTAMP)) - UNIX_MILLIS(CAST(@0 AS TIMESTAMP)))"
    if unit == "WEEK":
        # Flink divides the seconds that an INT holds of them.
        seconds = wrapped(spark(f"{difference} DIV 1000L", begin, end), "INT")
        return spark("CAST(@0 DIV 604800L AS INT)", seconds)
    if unit in _MILLIS_OF:
        return wrapped(spark(f"{difference} DIV {_MILLIS_OF[unit]}L", begin, end), "INT")
    # The most months from the earlier day that are not behind the later one; then the times of a same day count.
    months = "(YEAR(@1) - YEAR(@0)) * 12 + MONTH(@1) - MONTH(@0)"
    first, last = "CAST(@0 AS DATE)", "CAST(@1 AS DATE)"
    later = f"{months} - IF(ADD_MONTHS(@0, {months}) > {last}, 1, 0)"
    earlier = f"{months} + IF(ADD_MONTHS(@1, -({months})) > {first}, 1, 0)"
    whole = spark(f"IF({last} >= {first}, {later}, {earlier})", begin, end)
    time = "PMOD(UNIX_MILLIS(CAST(@{} AS TIMESTAMP)), 86400000L)"
    is_same_day = f"ADD_MONTHS(@0, @2) = {last} AND {time.format(0)} > {time.format(1)}"
    return spark(f"CAST((@2 - IF({is_same_day}, 1, 0)) DIV {_MONTHS_OF[unit]} AS INT)", begin, end, whole)


def _unit(call: Call) -> str:
    unit = call.arguments[0]
    name = unit.name.upper() if isinstance(unit, exp.Var) else ""
    if name not in _UNITS:
        raise Refusal(f"the unit {unit.sql()} of {call.name} is not supported; legal: {', '.join(_UNITS)}")
    return name


def _part(name: str) -> Build:
    def build(call: Call) -> exp.Expr:
        return extracted(name, call.arguments[0], call.types[0])

    return build


def _formatted(value: exp.Expr, pattern: str | None) -> exp.Expr:
    """The text of a time. Java's year of a week begins on the Sunday before January 1."""
    parts = []
    for text, is_week_year in date_segments(pattern, parses=False):
        of = spark("DATE_ADD(CAST(@0 AS DATE), 7 - DAYOFWEEK(@0))", value) if is_week_year else value
        parts.append(spark("DATE_FORMAT(@0, @1)", of, exp.Literal.string(text)))
    if not parts:
        return spark("IF(@0 IS NULL, NULL, '')", value)
    return parts[0] if len(parts) == 1 else exp.Anonymous(this="CONCAT", expressions=parts)


_DATE_TIME = "yyyy-MM-dd HH:mm:ss"
_DATE = "UNIX_DATE(DATE_ADD(ADD_MONTHS(MAKE_DATE({y}, 1, 1), {M} - 1), {d} - 1)) * 86400000L"
"""Months and days, and hours and the like, may be any numbers, as in Java's lenient calendar."""
_FACTORS = {"H": 3_600_000, "m": 60_000, "s": 1000, "S": 1}


def _millis(text: exp.Expr, pattern: str) -> exp.Expr:
    """The milliseconds of a text by a format; NULL if it does not fit. What follows the last field is left out."""
    read = spark("UNIX_MILLIS(TRY_TO_TIMESTAMP(@0, @1))", text, exp.Literal.string(pattern))
    begins = prefix(pattern)
    if begins is None:
        return read
    fields = {
        letter: f"TRY_CAST(REGEXP_EXTRACT(@0, @1, {n}) AS INT)" for n, letter in enumerate(begins.letters, 1)
    }
    terms = [_DATE.format(**{"y": "1970", "M": "1", "d": "1"} | fields)]
    terms += [f"{fields[letter]} * {factor}L" for letter, factor in _FACTORS.items() if letter in fields]
    lenient = spark(" + ".join(terms), text, exp.Literal.string(begins.regex))
    return spark("COALESCE(@0, @1)", read, lenient)


def _moment(text: exp.Expr) -> exp.Expr:
    """The time of a text, as DATE_FORMAT and CONVERT_TZ read it."""
    made = spark("CAST(TIMESTAMP_MILLIS(@0) AS TIMESTAMP_NTZ)", _millis(text, _DATE_TIME))
    return as_written(text, "TRY_CAST(@0 AS TIMESTAMP_NTZ)", made)


def _has_micros(pattern: str | None) -> bool:
    return "SSSS" in (pattern or "")


def _date_format(call: Call) -> exp.Expr:
    value, type = call.arguments[0], call.types[0]
    if isinstance(type, ScalarType) and type.name in ("STRING", "VARCHAR", "CHAR"):
        value = _moment(value)
    return _formatted(value, call.constant(1))


def _from_unix(call: Call) -> exp.Expr:
    pattern = call.constant(1) if len(call.arguments) > 1 else _DATE_TIME
    return _formatted(spark("TIMESTAMP_SECONDS(@0)", call.arguments[0]), pattern)


def _reading(call: Call) -> str:
    """The format of a text that is read."""
    pattern = call.constant(1) if len(call.arguments) > 1 else _DATE_TIME
    date_segments(pattern, parses=True)
    return pattern or ""


def _unix(call: Call) -> exp.Expr:
    text, pattern = call.arguments[0], _reading(call)
    seconds = spark("@0 DIV 1000L", _millis(text, pattern))
    if pattern == _DATE_TIME:
        seconds = as_written(text, "UNIX_SECONDS(TRY_CAST(@0 AS TIMESTAMP))", seconds)
    # Flink's answer for a text that is no time.
    none = "IF(@0 IS NULL, NULL, -9223372036854775807L - 1L)"
    return spark(f"COALESCE(@1, {none})", text, seconds)


def _to_date(call: Call) -> exp.Expr:
    if len(call.arguments) > 1:
        millis = _millis(call.arguments[0], _reading(call))
        return spark("DATE_FROM_UNIX_DATE(CAST(FLOOR(@0 / 86400000BD) AS INT))", millis)
    return text_to_time(call.arguments[0], ScalarType("DATE"))


def _to_timestamp(call: Call) -> exp.Expr:
    text = call.arguments[0]
    if len(call.arguments) == 1:
        return text_to_time(text, _TO_TIMESTAMP)
    pattern = _reading(call)
    read = spark("CAST(TRY_TO_TIMESTAMP(@0, @1) AS TIMESTAMP_NTZ)", text, exp.Literal.string(pattern))
    read = cut(read, _TO_TIMESTAMP) if _has_micros(pattern) else read
    # Spark also reads years before the first one.
    ways = [spark("IF(@0 < TIMESTAMP_NTZ '0001-01-01', NULL, @0)", read)]
    if fields := exact(pattern):
        ways.append(_on_a_day(text, fields))
    made = exp.Anonymous(this="COALESCE", expressions=[*ways, _value_of(text)])
    return as_written(text, "TRY_CAST(@0 AS TIMESTAMP_NTZ)", made) if pattern == _DATE_TIME else made


_FIRST = "TRY_CAST(CONCAT({y}, '-', {M}, '-01') AS DATE)"


def _on_a_day(text: exp.Expr, format: Prefix) -> exp.Expr:
    """The time of a text by a format whose fields are numbers, with each day up to 31, which is the last one of a
    shorter month, and 24:00 (Java's ResolverStyle.SMART)."""
    read = {letter: f"REGEXP_EXTRACT(@0, @1, {n})" for n, letter in enumerate(format.letters, 1)}
    number = {letter: f"TRY_CAST({read[letter]} AS INT)" if letter in read else "0" for letter in "dHms"}
    millis = f"TRY_CAST(RPAD(SUBSTRING({read['S']}, 1, 3), 3, '0') AS INT)" if "S" in read else "0"
    parts = f"{number['m']} * 60000 + {number['s']} * 1000 + {millis}"
    is_time = f"{number['H']} < 24 AND {number['m']} < 60 AND {number['s']} < 60"
    is_end = f"{number['H']} = 24 AND {number['m']} = 0 AND {number['s']} = 0"
    if "S" in read:
        is_end += f" AND {read['S']} RLIKE '^0+$'"
    first = _FIRST.format(**read)
    day = f"UNIX_DATE(LEAST(DATE_ADD({first}, {number['d']} - 1), LAST_DAY({first})))"
    made = f"TIMESTAMP_MILLIS({day} * 86400000L + {number['H']} * 3600000L + {parts})"
    test = f"{read['y']} <> '0000' AND {number['d']} BETWEEN 1 AND 31 AND ({is_time} OR {is_end})"
    case = f"CASE WHEN @0 RLIKE @1 THEN IF({test}, CAST({made} AS TIMESTAMP_NTZ), NULL) END"
    return spark(case, text, exp.Literal.string(format.regex))


def _value_of(text: exp.Expr) -> exp.Expr:
    """The time of a text as Java's Timestamp.valueOf and Date.valueOf read it, which Flink asks whatever the format is:
    days, hours, minutes and seconds may be too many; the year 0 becomes the first."""
    year, month, day, hour, minute, second, fraction = (f"REGEXP_EXTRACT(@0, @1, {n})" for n in range(1, 8))
    first = _FIRST.format(
        y=f"LPAD(GREATEST(TRY_CAST({year} AS INT), 1), 4, '0')", M=f"TRY_CAST({month} AS INT)"
    )
    millis = f"TRY_CAST(RPAD(SUBSTRING({fraction}, 1, 3), 3, '0') AS INT)"
    terms = [f"UNIX_DATE(DATE_ADD({first}, TRY_CAST({day} AS INT) - 1)) * 86400000L", millis]
    times = {hour: 3_600_000, minute: 60_000, second: 1000}
    terms += [f"COALESCE(TRY_CAST({of} AS INT), 0) * {factor}L" for of, factor in times.items()]
    made = f"CAST(TIMESTAMP_MILLIS({' + '.join(terms)}) AS TIMESTAMP_NTZ)"
    case = f"CASE WHEN @0 RLIKE @1 THEN IF(TRY_CAST({day} AS INT) BETWEEN 1 AND 31, {made}, NULL) END"
    return spark(case, text, exp.Literal.string(_VALUE_OF))


_VALUE_OF = (
    r"^[\x00-\x20]*+([0-9]{4}|[+][0-9]{3})-([0-9]{1,2}|[+][0-9])-([0-9]{1,2}|[+][0-9])"
    r"(?: ([+-]?[0-9]{1,9}):([+-]?[0-9]{1,9}):([+-]?[0-9]{1,9})(?:[.]([0-9]{1,9}))?)?[\x00-\x20]*$"
)


def _to_timestamp_ltz(call: Call) -> exp.Expr:
    digits = call.constant(1) if len(call.arguments) > 1 else "3"
    if digits not in ("0", "3"):
        raise Refusal(
            "the unit of the arguments of TO_TIMESTAMP_LTZ must be known: write TO_TIMESTAMP_LTZ(seconds, 0) or "
            "TO_TIMESTAMP_LTZ(milliseconds, 3)"
        )
    return spark(f"TIMESTAMP_{'SECONDS' if digits == '0' else 'MILLIS'}(@0)", call.arguments[0])


def _converted(call: Call) -> exp.Expr:
    zones, known = [call.constant(1), call.constant(2)], available_timezones()
    for zone in zones:
        if zone is None or zone not in {*known, "UTC", "GMT"}:
            raise Refusal(
                f"the time zones of CONVERT_TZ must be constants such as 'Europe/Berlin', not {zone!r}"
            )
    made = spark(f"CONVERT_TIMEZONE('{zones[0]}', '{zones[1]}', @0)", _moment(call.arguments[0]))
    return spark("DATE_FORMAT(@0, 'yyyy-MM-dd HH:mm:ss')", made)


_TO_TIMESTAMP = ScalarType("TIMESTAMP", (3,))
_BY_NAME = {"DAYOFYEAR": "DOY", "DAYOFMONTH": "DAY", "DAYOFWEEK": "DOW"}
ENTRIES: Entries = {
    **{name: _part(name) for name in ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE", "SECOND")},
    **{name: _part(part) for name, part in _BY_NAME.items()},
    "CONVERT_TZ": _converted,
    "DATE_FORMAT": _date_format,
    "FROM_UNIXTIME": _from_unix,
    "TIMESTAMPADD": _added,
    "TIMESTAMPDIFF": _between,
    "TO_DATE": _to_date,
    "TO_TIMESTAMP": _to_timestamp,
    "TO_TIMESTAMP_LTZ": _to_timestamp_ltz,
    "UNIX_TIMESTAMP": _unix,
}
