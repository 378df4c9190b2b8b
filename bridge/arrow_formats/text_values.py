"""Texts of values to Arrow: of each type the usual texts, of which Spark's path makes the same values.

Dates and timestamps follow Flink's formats (flink-formats-common, TimeFormats).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.schema import ArrayType, DataType, RowField, RowType, ScalarType
from bridge.ways import NotThisWay

_STRING = ScalarType("STRING")
_WHOLE = "^-?[0-9]{1,19}$"
_FLOAT = r"^-?[0-9]{1,30}(?:[.][0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?$"
_JSON_BOOLEANS = ["true", "false", "0", "1", None]


def text_row(row: RowType) -> RowType:
    """Return `row` with STRING for every scalar field of its first level."""
    return RowType(
        tuple(RowField(f.name, _STRING if isinstance(f.type, ScalarType) else f.type) for f in row.fields)
    )


def typed_values(values: pa.Array, type: DataType, *, iso_8601: bool) -> pa.Array:
    """Return rows, or lists of rows, of JSON whose fields were read as `text_row` has them, as rows of `type`.

    Raises NotThisWay for texts that are not usual.
    """
    mask = values.is_null() if values.null_count else None
    if isinstance(type, ArrayType):
        items = typed_values(values.values, type.element, iso_8601=iso_8601)
        made = pa.list_(pa.field("element", items.type))
        return pa.ListArray.from_arrays(values.offsets, items, type=made, mask=mask)
    assert isinstance(type, RowType)
    fields = [_field(v, f, iso_8601) for v, f in zip(values.flatten(), type.fields, strict=True)]
    return pa.StructArray.from_arrays(fields, fields=list(arrow_type(type)), mask=mask)


def _field(values: pa.Array, field: RowField, iso_8601: bool) -> pa.Array:
    if not isinstance(field.type, ScalarType):
        return values
    try:
        if field.type.name == "BOOLEAN":
            # Other texts than 'true' are false to Flink, a number that is not 0, too.
            _check(pc.is_in(values, value_set=pa.array(_JSON_BOOLEANS, pa.string())))
            return pc.equal(values, "true")
        return usual_values(values, field.type, iso_8601=iso_8601)
    except pa.ArrowInvalid:  # its text has payload
        raise NotThisWay(f"field {field.name!r} has an unusual {field.type.name}") from None


def usual_values(texts: pa.StringArray, type: ScalarType, *, iso_8601: bool = False) -> pa.Array:
    """Return the values of texts. Raises ArrowInvalid for a text that is not usual for `type`, which is no BYTES."""
    if type.is_string:
        return texts
    if type.name == "DATE":
        return dates(texts)
    if is_temporal(type):
        return moments(texts, type, iso_8601=iso_8601)
    if type.name == "BOOLEAN":
        _check(pc.is_in(texts, pa.array(["true", "false", None])))
        return pc.equal(texts, "true")
    if type.name == "DECIMAL":
        precision, scale = type.parameters
        fraction = f"(?:[.][0-9]{{1,{scale}}})?" if scale else ""
        _check(pc.match_substring_regex(texts, f"^-?[0-9]{{1,{max(1, precision - scale)}}}{fraction}$"))
        return texts.cast(arrow_type(type))
    is_float = type.name in ("FLOAT", "DOUBLE")
    _check(pc.match_substring_regex(texts, _FLOAT if is_float else _WHOLE))
    values = texts.cast(arrow_type(type))
    if is_float:
        _check(pc.is_finite(values))
    return values


def _check(usual: pa.BooleanArray) -> None:
    if pc.all(usual).as_py() is False:
        raise pa.ArrowInvalid("unusual")


_MOST_BYTES = 2**31 - 2


def utf_8(values: pa.BinaryArray, what: str) -> pa.StringArray:
    """Return bytes as text. Raises NotThisWay, about `what`, unless all of them are valid UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:  # its text has payload
        raise NotThisWay(f"{what} is not valid UTF-8") from None


def as_lines(payloads: pa.BinaryArray) -> tuple[pa.StringArray, bytes]:
    """Return documents (at least one) as texts, and joined by line feeds.

    Raises NotThisWay where they take more than 2 GiB, or are not valid UTF-8.
    """
    if pc.sum(pc.binary_length(payloads)).as_py() + len(payloads) > _MOST_BYTES:
        raise NotThisWay("the documents take more than 2 GiB")
    texts = utf_8(payloads, "a document")
    together = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return texts, pc.binary_join(together, "\n")[0].as_buffer().to_pybytes()


_DAY = len("2020-02-29")
_SECOND = len("2020-02-29 12:00:00")
_MICROS = 6
_MICROSECOND = _SECOND + len(".") + _MICROS
_NANOS = r"[.][0-9]{7,9}$"
_YEAR_1_DAY, _YEAR_1_MICROS = -719_162, -62_135_596_800_000_000
_FLOOR = {
    0: ("second", 1),
    1: ("millisecond", 100),
    2: ("millisecond", 10),
    3: ("millisecond", 1),
    4: ("microsecond", 100),
    5: ("microsecond", 10),
}
"""The unit, and how many of it, for each precision."""


def is_temporal(type: ScalarType) -> bool:
    """Return whether `type` is a date or a timestamp."""
    return type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def dates(texts: pa.StringArray) -> pa.Date32Array:
    """Return dates of texts such as 2020-02-29, of the years 1 to 9999. Raises ArrowInvalid for any other text."""
    if _other_lengths(texts, _DAY, _DAY):
        raise pa.ArrowInvalid("not a usual date")
    days = texts.cast(pa.date32())
    _check_years(days.view(pa.int32()), _YEAR_1_DAY)
    return days


def moments(texts: pa.StringArray, type: ScalarType, *, iso_8601: bool) -> pa.TimestampArray:
    """Return timestamps of texts such as 2020-02-29 12:00:00.123, of the years 1 to 9999.

    Between date and time is a T by `iso_8601`, else a space; TIMESTAMP_LTZ ends with Z. Up to nine digits of a second
    are cut to the precision of `type`. Raises ArrowInvalid for any other text, also where Flink reads it.
    """
    precision = type.parameters[0]
    zone = int(type.name == "TIMESTAMP_LTZ")
    if zone:
        if pc.all(pc.ends_with(texts, "Z")).as_py() is False:
            raise pa.ArrowInvalid("not in UTC")
        texts = pc.utf8_slice_codeunits(texts, 0, -1)
    # Arrow parses no letters but a T between date and time and a zone, and refuses a zone where the type has none.
    has_t = pc.match_substring(texts, "T")
    if (pc.all(has_t).as_py() is False) if iso_8601 else pc.any(has_t).as_py():
        raise pa.ArrowInvalid("another standard")
    if _other_lengths(texts, _SECOND, _MICROSECOND):
        if _other_lengths(texts, _SECOND, _MICROSECOND + 3):
            raise pa.ArrowInvalid("not a usual timestamp")
        is_short = pc.less_equal(pc.binary_length(texts), _MICROSECOND)
        if pc.all(pc.or_(is_short, pc.match_substring_regex(texts, _NANOS))).as_py() is False:
            raise pa.ArrowInvalid("not a usual timestamp")
        texts = pc.utf8_slice_codeunits(texts, 0, _MICROSECOND)
    times = texts.cast(pa.timestamp("us"))
    if precision < _MICROS and _other_lengths(texts, _SECOND, _SECOND + (precision and 1 + precision)):
        unit, multiple = _FLOOR[precision]
        times = pc.floor_temporal(times, multiple, unit)
    _check_years(times.view(pa.int64()), _YEAR_1_MICROS)
    return times.view(pa.timestamp("us", tz="UTC")) if zone else times


def _other_lengths(texts: pa.StringArray, shortest: int, longest: int) -> bool:
    found = pc.min_max(pc.binary_length(texts))
    low, high = found["min"].as_py(), found["max"].as_py()
    return low is not None and (low < shortest or high > longest)


def _check_years(values: pa.Array, first: int) -> None:
    earliest = pc.min(values).as_py()
    if earliest is not None and earliest < first:
        raise pa.ArrowInvalid("before the year 1")
