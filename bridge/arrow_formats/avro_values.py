"""Values of Avro documents as Arrow arrays, in the types of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.avro_cursor import Cursor, Integers
from bridge.arrow_formats.avro_plan import Plan, field_title
from bridge.arrow_formats.text_values import utf_8
from bridge.schema import RowType, ScalarType
from bridge.ways import NotThisWay

_INTEGERS: dict[str, type[np.signedinteger[Any]]] = {
    "TINYINT": np.int8,
    "SMALLINT": np.int16,
    "INT": np.int32,
    "BIGINT": np.int64,
}
_BITS = {"int": 32, "long": 64}
_FLOATS = {"float": ("<f4", np.uint32, 0x7FC00000), "double": ("<f8", np.uint64, 0x7FF8000000000000)}
"""Of Avro's types: numpy's, that of their bits, and Java's NaN."""
_WIDEST, _WORD = 38, 8  # a decimal in digits; it is two words of so many bytes

# Spark can be told to take earlier days for those of the Julian calendar, or to refuse them
# (spark.sql.avro.datetimeRebaseModeInRead). No time is read that Python does not know.
_DAYS = (-141_427, 2_932_896)  # 1582-10-15, 9999-12-31
_MICROS = (-2_208_988_800_000_000, 253_402_300_799_999_999)  # 1900-01-01, the end of 9999


def read(plan: Plan, cursor: Cursor) -> pa.Array | None:
    """Return the next value of each document (at least one), and move behind it; None where it is skipped.

    Raises NotThisWay for bytes that Spark's path may read otherwise, or refuse.
    """
    if plan.kind == "union":
        return _union(plan, cursor)
    if plan.kind == "record":
        return _record(plan, cursor)
    if plan.kind == "null":
        return None
    if plan.kind in _BITS:
        values = cursor.integers(_BITS[plan.kind])
        return None if plan.type is None else _whole(plan, values)
    if plan.kind in _FLOATS:
        return _floats(plan, cursor)
    if plan.kind == "boolean":
        return _booleans(plan, cursor)
    if plan.kind == "enum":
        return _symbols(plan, cursor)
    return _bytes(plan, cursor)


def _union(plan: Plan, cursor: Cursor) -> pa.Array | None:
    numbers = cursor.integers(32)
    if (numbers == numbers[0]).all():
        made = read(_branch(plan, int(numbers[0])), cursor)
        return _nulls(plan, len(cursor)) if made is None and plan.type is not None else made
    value, value_rows, seen = None, np.empty(0, np.int64), 0
    for number, branch in enumerate(plan.branches):
        rows = np.flatnonzero(numbers == number)
        if branch is None or not rows.size:
            continue
        seen += rows.size
        if branch.kind != "null":
            part = cursor.of_rows(rows)
            value, value_rows = read(branch, part), rows
            cursor.moved(rows, part)
    if seen < len(cursor):
        raise _other_type(plan)
    if plan.type is None:
        return None
    # There is one branch with a value, and null.
    _check_nullable(plan)
    places = np.zeros(len(cursor), np.int64)
    places[value_rows] = np.arange(len(value_rows))
    missing = np.ones(len(cursor), bool)
    missing[value_rows] = False
    assert value is not None
    return value.take(pa.array(places, mask=missing))


def _branch(plan: Plan, number: int) -> Plan:
    branch = plan.branches[number] if 0 <= number < len(plan.branches) else None
    if branch is None:
        raise _other_type(plan)
    return branch


def _other_type(plan: Plan) -> NotThisWay:
    return NotThisWay(f"{field_title(plan.path)} has another type of a union")


def _nulls(plan: Plan, count: int) -> pa.Array:
    _check_nullable(plan)
    assert plan.type is not None
    return pa.nulls(count, arrow_type(plan.type))


def _check_nullable(plan: Plan) -> None:
    if plan.type is not None and not plan.type.nullable:
        raise NotThisWay(f"{field_title(plan.path)} is null, though it is NOT NULL")


def _record(plan: Plan, cursor: Cursor) -> pa.Array | None:
    read_fields = {name: read(field, cursor) for name, field in plan.fields}
    if not isinstance(plan.type, RowType) or not plan.type.fields:
        return None
    types = list(arrow_type(plan.type))
    made = [
        pa.nulls(len(cursor), t.type) if t.name not in read_fields else read_fields[t.name] for t in types
    ]
    return pa.StructArray.from_arrays(made, fields=types)


def _whole(plan: Plan, values: Integers) -> pa.Array:
    type = plan.type
    assert isinstance(type, ScalarType)
    if type.name in _INTEGERS:
        wanted = np.iinfo(_INTEGERS[type.name])
        _check_range(plan, values, int(wanted.min), int(wanted.max))
        return pa.array(values.astype(_INTEGERS[type.name], copy=False))
    if type.name in ("FLOAT", "DOUBLE"):
        return pa.array(values.astype(np.float32 if type.name == "FLOAT" else np.float64))
    if type.name == "DATE":
        _check_range(plan, values, *_DAYS)
        return pa.array(values.astype(np.int32)).view(arrow_type(type))
    if plan.millis:
        _check_range(plan, values, *(bound // 1000 for bound in _MICROS))
        values = values * 1000
    _check_range(plan, values, *_MICROS)
    precision = type.parameters[0]
    if precision < (3 if plan.millis else 6):
        values = values - values % 10 ** (6 - precision)
    return pa.array(values).view(arrow_type(type))


def _floats(plan: Plan, cursor: Cursor) -> pa.Array | None:
    type, bits, nan = _FLOATS[plan.kind]
    values = cursor.fixed(type)
    if plan.type is None:
        return None
    is_nan = np.isnan(values)
    if is_nan.any() and (values[is_nan].view(bits) != nan).any():
        raise NotThisWay(f"{field_title(plan.path)} has an unusual NaN")
    assert isinstance(plan.type, ScalarType)
    return pa.array(values.astype(np.float32 if plan.type.name == "FLOAT" else np.float64, copy=False))


def _booleans(plan: Plan, cursor: Cursor) -> pa.Array | None:
    values = cursor.data[cursor.skip(1)]
    if int(values.max()) > 1:
        raise NotThisWay(f"{field_title(plan.path)} is neither true nor false")
    return None if plan.type is None else pa.array(values.astype(bool))


def _symbols(plan: Plan, cursor: Cursor) -> pa.Array | None:
    numbers = cursor.integers(32)
    _check_range(plan, numbers, 0, len(plan.symbols) - 1)
    return None if plan.type is None else pa.array(plan.symbols, pa.string()).take(pa.array(numbers))


def _bytes(plan: Plan, cursor: Cursor) -> pa.Array | None:
    lengths = np.full(len(cursor), plan.size) if plan.kind == "fixed" else cursor.lengths()
    begin = cursor.skip(lengths)
    if plan.type is None:
        return None
    assert isinstance(plan.type, ScalarType)
    if plan.type.name == "DECIMAL":
        return _decimals(plan, cursor, begin, lengths)
    found = cursor.parts(begin, lengths)
    return found if plan.type.is_binary else utf_8(found, field_title(plan.path))


def _decimals(plan: Plan, cursor: Cursor, begin: Integers, lengths: Integers) -> pa.Array:
    """Return numbers that are written with their first byte first, in two's complement."""
    assert isinstance(plan.type, ScalarType)
    _check_range(plan, lengths, 1, 2 * _WORD)
    # The words that end with the number begin with what is before it.
    words = np.empty((len(begin), 2), np.int64)
    before = 8 * np.maximum(_WORD - lengths, 0)
    words[:, 0] = (cursor.words(">i8", begin + lengths - _WORD) << before) >> before
    words[:, 1] = words[:, 0] >> 63
    rows = np.flatnonzero(lengths > _WORD)
    if rows.size:
        long = lengths[rows]
        before = 8 * (2 * _WORD - long)
        words[rows, 1] = (cursor.words(">i8", begin[rows] + long - 2 * _WORD) << before) >> before
    precision, scale = plan.type.parameters
    buffers = [None, pa.py_buffer(words)]
    values = pa.Array.from_buffers(pa.decimal128(_WIDEST, scale), len(begin), buffers)
    try:
        values.validate(full=True)
        if plan.digits < precision:
            values.cast(pa.decimal128(plan.digits, scale))
        return values.cast(arrow_type(plan.type))
    except (pa.ArrowInvalid, ValueError):  # their texts have payload
        raise NotThisWay(f"{field_title(plan.path)} is out of range of {plan.type.flink()}") from None


def _check_range(plan: Plan, values: Integers, least: int, most: int) -> None:
    if int(values.min()) < least or int(values.max()) > most:
        raise NotThisWay(f"{field_title(plan.path)} is out of the usual range")
