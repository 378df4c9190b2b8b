"""Values that Arrow's reader has read from JSON documents, in the types of the row."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.temporal_texts import dates, is_temporal, moments
from bridge.format_rules.json_options import Numbers
from bridge.schema import ArrayType, DataType, RowType, ScalarType
from bridge.ways import NotThisWay

__all__ = ["Conversion", "read_schema"]

_DECIMAL_128, _DECIMAL_256 = 38, 76
# Spark's fast path reads fractions as DOUBLE: so many digits are exact; larger numbers are written with an exponent.
_DOUBLE_DIGITS = 15
_WITHOUT_EXPONENT = 1e7
_ROUNDED_ALIKE = 2.0**-50

_NEGATIVE_ZERO = -(1 << 63)  # the bits of -0.0


def read_schema(row: RowType) -> pa.Schema:
    """Return the types as which Arrow's reader reads the fields, so that no value of a document is lost."""
    return pa.schema([(f.name, _read_type(f.type)) for f in row.fields])


def _read_type(type: DataType) -> pa.DataType:
    if isinstance(type, RowType):
        return pa.struct([(f.name, _read_type(f.type)) for f in type.fields])
    if isinstance(type, ArrayType):
        return pa.list_(pa.field("element", _read_type(type.element)))
    assert isinstance(type, ScalarType)
    if type.name == "DECIMAL":
        # The reader limits the digits as written to the precision and then adds zeros up to the scale. Unless there is
        # room for both, the number overflows unnoticed.
        precision, scale = type.parameters
        if precision + scale <= _DECIMAL_128:
            return pa.decimal128(_DECIMAL_128 - scale, scale)
        return pa.decimal256(_DECIMAL_256 - scale, scale)
    return pa.string() if is_temporal(type) else arrow_type(type)


@dataclass(frozen=True)
class Conversion:
    """Converts the columns of `read_schema`. Raises NotThisWay for values that Spark's path may read otherwise."""

    iso_8601: bool
    numbers: Numbers
    no_nulls: bool
    """Whether a null field needs a full decode."""

    def columns(self, table: pa.Table, row: RowType) -> list[pa.Array]:
        """Return the columns of the row in its order, of one chunk each."""
        return [self._field(table[n].combine_chunks(), f.type, f.name) for n, f in enumerate(row.fields)]

    def _field(self, values: pa.Array, type: DataType, path: str) -> pa.Array:
        if self.no_nulls and values.null_count:
            raise NotThisWay(f"field {path!r} is null or missing")
        return self._value(values, type, path)

    def _value(self, values: pa.Array, type: DataType, path: str) -> pa.Array:
        mask = values.is_null() if values.null_count else None
        if isinstance(type, RowType):
            fields = [
                self._field(values.field(n), f.type, f"{path}.{f.name}") for n, f in enumerate(type.fields)
            ]
            return pa.StructArray.from_arrays(fields, fields=list(arrow_type(type)), mask=mask)
        if isinstance(type, ArrayType):
            items = self._value(values.values, type.element, f"{path}[]")
            return pa.ListArray.from_arrays(values.offsets, items, type=arrow_type(type), mask=mask)
        assert isinstance(type, ScalarType)
        try:
            return self._scalar(values, type)
        except pa.ArrowInvalid:  # its text has payload
            raise NotThisWay(f"field {path!r} has an unusual {type.name}") from None

    def _scalar(self, values: pa.Array, type: ScalarType) -> pa.Array:
        """Return the values; raises ArrowInvalid for what NotThisWay is raised for."""
        if type.name == "DECIMAL":
            return _decimals(values, type)
        if type.name == "DATE":
            return dates(values)
        if is_temporal(type):
            return moments(values, type, iso_8601=self.iso_8601)
        if type.name in ("FLOAT", "DOUBLE"):
            self._check_floats(values)
        return values

    def _check_floats(self, values: pa.Array) -> None:
        if pc.all(pc.is_finite(values)).as_py() is False:
            raise pa.ArrowInvalid("not finite")
        bits = values.cast(pa.float64()).view(pa.int64())
        if self.numbers is Numbers.TREES and pc.any(pc.equal(bits, _NEGATIVE_ZERO)).as_py():
            raise pa.ArrowInvalid("-0")


def _decimals(values: pa.Array, type: ScalarType) -> pa.Array:
    precision, scale = type.parameters
    exact = values.cast(arrow_type(type))
    digits = min(scale, _DOUBLE_DIGITS - max(min(precision - scale, _DOUBLE_DIGITS - 1), 1))
    if digits < scale:
        # Where a DOUBLE is not told from a short number, Spark's fast path takes the short one.
        short = pc.round(exact, digits)
        near, value = short.cast(pa.float64()), exact.cast(pa.float64())
        size = pc.abs(value)
        alike = pc.less_equal(pc.abs(pc.subtract(value, near)), pc.multiply(size, _ROUNDED_ALIKE))
        suspect = pc.and_(pc.and_(alike, pc.less(size, _WITHOUT_EXPONENT)), pc.not_equal(short, exact))
        if pc.any(suspect).as_py():
            raise pa.ArrowInvalid("more digits than a DOUBLE")
    return exact
