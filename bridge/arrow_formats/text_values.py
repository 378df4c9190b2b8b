"""Texts of values to Arrow: of each type the usual texts, of which Spark's path makes the same values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.temporal_texts import dates, is_temporal, moments
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
