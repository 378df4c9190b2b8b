"""Decodes JSON objects to Arrow with Arrow's own reader, and leaves to Spark what Flink or Spark may read otherwise.

Arrow reads JSON with RapidJSON, Flink and Spark with Jackson. Arrow's reader itself refuses most bad documents and most
of what Flink converts: a number for a STRING, a text for a number, 1.0 for a BIGINT. `checked_lines` looks for the rest
in the bytes: RapidJSON ends at a NUL, reads NaN and Inf, and has no limits for depths, numbers and names (Jackson:
StreamReadConstraints). `Conversion` looks in the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from json import JSONDecoder

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from bridge.arrow_formats.arrow_types import arrow_schema, arrow_type
from bridge.arrow_formats.base import ArrowDecoder
from bridge.arrow_formats.text_values import as_lines, dates, is_temporal, moments
from bridge.definition import FormatSpec
from bridge.format_rules.json_options import CONNECT_ENVELOPE, JsonOptions, Numbers
from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType, types
from bridge.ways import NotThisWay

# A block and its columns fit into the processor's cache.
_BLOCK_BYTES = 1 << 18

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STRING_OR_NAME = re.compile(_STRING.pattern + rb"(\s*:)?", re.DOTALL)
_NOT_FINITE = r"[:,\[\s]-?(?:NaN|Inf)"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS_AS_ZERO = bytes(ord("0") if chr(b).isdigit() and b < 128 else b for b in range(256))

_LONGEST_NUMBER = 1000
_DEEPEST = 1000
_LONGEST_NAME = 50_000
# A number of more than 1000 characters has three runs of digits at most.
_LONG_DIGITS = b"0" * (_LONGEST_NUMBER // 3 - 2)
# They are told from other text by each sixteenth byte, far faster than by all.
_SAMPLED = 16

# Decimals, bare or in a string, which may have escapes. Spark's path reads at most 1000 characters, and exponents of at
# most three digits. Arrow reads more zeros, and it crashes at a number of many more decimal places than its type has
# (its table of powers of ten ends at 38): so their digits after the point and a negative exponent may be 38 together.
_DECIMAL_HINTS = (b"e-", b"E-", b"e00", b"E00", b"e+00", b"E+00", rb"\u00", b"0" * 100)
_SMALL = r"[eE]-0*(?:[2-9][0-9]|[0-9]{3})"
_LONG = r"[.][0-9]{19,}[eE]-|0{100}"
_NUMERAL = r"[-+.0-9eE]|\\u00[0-9a-fA-F]{2}"
# A whole number or string: ids of hexadecimal digits often have an e, a dash and digits between other letters.
_MAYBE_ODD_DECIMAL = (
    rf'[:,\[\s"](?:{_NUMERAL})*(?:{_SMALL}|{_LONG}|[eE][+-]?00[0-9]{{2}}|\\u00(?:[36][0-9]|45|2[bBdDeE]))'
    rf'(?:{_NUMERAL})*[,\]}}\s"]'
)
_ODD_DECIMAL = re.compile(rf"[0-9.](?:{_SMALL}|[eE][+-]?[0-9]{{4}})|{_LONG}".encode())
_NUMERALS_IN_STRING = re.compile(rf'"(?:{_NUMERAL})+"'.encode())
_NUMBER_IN_STRING = re.compile(rb'"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"')
_ASCII_ESCAPE = re.compile(rb"\\u00([0-9a-fA-F]{2})")


@dataclass(frozen=True)
class Lines:
    """Documents joined by line feeds."""

    data: bytes
    block_size: int
    """For Arrow's reader, which cuts blocks at line ends: no document is longer, and none is cut."""


def checked_lines(payloads: pa.BinaryArray, row: RowType) -> Lines:
    """Join payloads (at least one) of which each begins with { and ends with }.

    Joined by line feeds, such documents are read as one object or more each, or not at all: a line feed is illegal in
    a string, and between } and { it is legal only outside of all objects. So they are one object each where Arrow
    finds as many rows as documents. Raises NotThisWay for documents that Arrow's reader may accept although
    Spark's path does not, when fields of `row` are read from them.
    """
    decimals = any(map(_is_decimal, types(row)))
    texts, data = as_lines(payloads)
    if not (pc.all(pc.starts_with(texts, "{")).as_py() and pc.all(pc.ends_with(texts, "}")).as_py()):
        raise NotThisWay("a document is not one object")
    if b"\0" in data:
        raise NotThisWay("a document has a NUL")
    if _contains(data, b"NaN", b"Inf") and _has_not_finite(texts):
        raise NotThisWay("a document has a number that is not finite")
    if decimals and _contains(data, *_DECIMAL_HINTS) and _has_odd_decimal(texts, row):
        raise NotThisWay("a document may have a decimal with an unusual exponent or many zeros")
    lengths = pc.binary_length(payloads)
    longest: int = pc.max(lengths).as_py()
    if longest > _LONGEST_NUMBER:
        _check_limits(texts, lengths, data)
    is_line_each = data.count(b"\n") == len(texts) - 1 and b"\r" not in data
    return Lines(data, max(_BLOCK_BYTES, longest + 2) if is_line_each else len(data) + 1)


def _contains(data: bytes, *parts: bytes) -> bool:
    # Single bytes are found much faster than longer parts, and one of them is often absent.
    return any(all(bytes([c]) in data for c in set(part)) and part in data for part in parts)


def _has_not_finite(texts: pa.StringArray) -> bool:
    suspects = texts.filter(pc.match_substring_regex(texts, _NOT_FINITE))
    outside = (_STRING.sub(b"", text.as_buffer().to_pybytes()) for text in suspects)
    return any(b"N" in rest or b"I" in rest for rest in outside)


def _has_odd_decimal(texts: pa.StringArray, row: RowType) -> bool:
    for text in texts.filter(pc.match_substring_regex(texts, _MAYBE_ODD_DECIMAL)):
        document = text.as_buffer().to_pybytes()
        numerals = (s for s in _STRING.findall(document) if _NUMERALS_IN_STRING.fullmatch(s))
        unescaped = (_ASCII_ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()), s) for s in numerals)
        numbers = filter(_NUMBER_IN_STRING.fullmatch, unescaped)
        if any(map(_ODD_DECIMAL.search, (_STRING.sub(b"", document), *numbers))):
            # Texts may look like such numbers, as an id of hexadecimal digits, and a DOUBLE may be one.
            decimals = _decimals_of(document, row)
            if decimals is None or any(_ODD_DECIMAL.search(text) for text in decimals):
                return True
    return False


class _Members(tuple[tuple[str, object], ...]):
    """The fields of an object, repeated ones too."""


_AS_WRITTEN = JSONDecoder(object_pairs_hook=_Members, parse_float=str, parse_int=str)


def _decimals_of(document: bytes, row: RowType) -> list[bytes] | None:
    """Return what the fields of `row` that are decimals have, as written; None where Python cannot read that."""
    try:
        texts = list(_decimals_in(_AS_WRITTEN.decode(document.decode()), row))
        # A document may escape half of a pair of surrogates, which UTF-8 cannot write; it is no number in any case.
        return [text.encode(errors="surrogatepass") for text in texts]
    except (ValueError, RecursionError):
        return None


def _decimals_in(value: object, type: DataType) -> Iterator[str]:
    if isinstance(type, RowType) and isinstance(value, _Members):
        of_field = {field.name: field.type for field in type.fields}
        for name, member in value:
            if name in of_field:
                yield from _decimals_in(member, of_field[name])
    elif isinstance(type, ArrayType) and isinstance(value, list):
        for element in value:
            yield from _decimals_in(element, type.element)
    elif _is_decimal(type) and isinstance(value, str):
        yield value


def _is_decimal(type: DataType) -> bool:
    return isinstance(type, ScalarType) and type.name == "DECIMAL"


def _check_limits(texts: pa.StringArray, lengths: pa.Int32Array, data: bytes) -> None:
    if _may_have_long_digits(data) and _LONG_DIGITS in data.translate(_DIGITS_AS_ZERO):
        raise NotThisWay("a document may have a number of more than 1,000 characters")
    deep = texts.filter(pc.greater(lengths, 2 * _DEEPEST))
    if not len(deep):
        return
    brackets = pc.add(pc.count_substring(deep, "["), pc.count_substring(deep, "{"))
    for text in deep.filter(pc.greater_equal(brackets, _DEEPEST)):
        if _depth(text.as_buffer().to_pybytes()) >= _DEEPEST:
            raise NotThisWay("a document is nested 1,000 deep or more")
    for text in deep.filter(pc.greater(pc.binary_length(deep), _LONGEST_NAME)):
        strings = _STRING_OR_NAME.finditer(text.as_buffer().to_pybytes())
        if any(s.end() - s.start() > _LONGEST_NAME for s in strings if s[1]):
            raise NotThisWay("a document has a name of more than 50,000 characters")


def _may_have_long_digits(data: bytes) -> bool:
    sampled: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)[::_SAMPLED]
    others = np.flatnonzero(sampled - np.uint8(ord("0")) > 9)
    longest = np.diff(others, prepend=-1, append=len(sampled)).max() - 1
    return bool(longest >= len(_LONG_DIGITS) // _SAMPLED)


def _depth(document: bytes) -> int:
    brackets = _STRING.sub(b"", document).translate(None, _NO_BRACKETS)
    return max(accumulate(1 if b in b"[{" else -1 for b in brackets))


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


# Without a field Arrow's reader would infer some.
_NO_FIELDS = pa.schema([("", pa.null())])


def decoder(spec: FormatSpec) -> ArrowDecoder:
    """Return the decoder of a json format. Raises NotThisWay.

    A bad document does so, too, so that options about bad documents need not be known. Under
    `fail-on-missing-field` the same is true for every null, as Arrow does not tell a missing field from a null.
    """
    refuse_unread(spec.row)
    options = JsonOptions.of(spec.options)
    return JsonArrowDecoder(spec.row, options.iso_8601, options.numbers, options.fail_on_missing_field)


def refuse_unread(row: RowType) -> None:
    """Raise NotThisWay for a field of `row` whose type is not read."""
    for field in row.fields:
        if not all(map(_is_read, types(field.type))):
            raise NotThisWay(f"field {field.name!r} of a json document is {field.type.flink()}")


def _is_read(type: DataType) -> bool:
    if isinstance(type, RowType):
        return bool(type.fields)
    return not isinstance(type, MapType) and not (isinstance(type, ScalarType) and type.is_binary)


@dataclass(frozen=True)
class JsonArrowDecoder:
    """Decodes documents that are one object each. Fields that are not in the row are ignored, as in Flink."""

    row: RowType
    iso_8601: bool = False
    """The timestamp format: ISO-8601, or SQL."""
    numbers: Numbers = Numbers.TEXTS
    no_nulls: bool = False
    """Whether a null field needs a full decode."""

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """See ArrowDecoder.decode. A row without fields gives a table without columns that has rows."""
        if not len(payloads):
            return arrow_schema(self.row).empty_table()
        lines = checked_lines(payloads, self.row)
        values = _read(lines, read_schema(self.row) if self.row.fields else _NO_FIELDS)
        if values.num_rows != len(payloads):
            raise NotThisWay("a document is not one object")
        if not self.row.fields:
            return values.select([])
        conversion = Conversion(self.iso_8601, self.numbers, self.no_nulls)
        columns = conversion.columns(values, self.row)
        if all(column.null_count for column in columns) and b'"schema"' in lines.data:
            _check_not_foreign(payloads, columns)
        return pa.table(columns, schema=arrow_schema(self.row))


def _check_not_foreign(payloads: pa.BinaryArray, columns: Sequence[pa.Array]) -> None:
    empty = payloads.filter(reduce(pc.and_, [column.is_null() for column in columns])).cast(pa.string())
    if pc.any(pc.match_substring_regex(empty, CONNECT_ENVELOPE)).as_py():
        raise NotThisWay("a document has none of the row's fields, and is an envelope of Kafka Connect")


def _read(lines: Lines, schema: pa.Schema) -> pa.Table:
    try:
        return json.read_json(
            pa.BufferReader(lines.data),
            read_options=json.ReadOptions(use_threads=False, block_size=lines.block_size),
            parse_options=json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:  # its text has payload
        raise NotThisWay("Arrow's reader refuses a document") from None
