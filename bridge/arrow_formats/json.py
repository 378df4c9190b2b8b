"""JSON objects to Arrow, by Arrow's own reader with the types of the row.

Arrow refuses most of what Flink and Spark convert (a number for a STRING, a text for a number, 1.0 for a BIGINT), and
the whole batch with it. What it accepts and reads otherwise than they do, is looked for here.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.base import ArrowDecoder, NeedsFullDecode
from bridge.definition import FormatSpec
from bridge.format_rules.json_options import JsonOptions
from bridge.schema import ScalarType

__all__ = ["JsonArrowDecoder", "decoder"]

_TYPES = frozenset("BOOLEAN TINYINT SMALLINT INT BIGINT DOUBLE DECIMAL DATE TIMESTAMP TIMESTAMP_LTZ".split())
_TEMPORAL = frozenset("DATE TIMESTAMP TIMESTAMP_LTZ".split())

# Jackson limits the depth of documents and the length of their numbers, Arrow does not.
_SHORT_BYTES = 500
_LONGEST_BYTES = 1 << 20

# Spark and Flink read a fraction as DOUBLE before it becomes DECIMAL: so many digits stay as they are.
_DOUBLE_DIGITS = 15
_FRACTION = r"[:\[,]\s*-?[0-9]+[.eE]"
_NEGATIVE_ZERO = -(1 << 63)  # the bits of -0.0
_NOT_A_NUMBER = r"[:\[,]\s*-?(?:NaN|Inf)"


@dataclass(frozen=True)
class _Field:
    name: str
    type: pa.DataType
    pattern: str = ""
    """Of the texts of a date or a timestamp."""


@dataclass(frozen=True)
class JsonArrowDecoder:
    """Decodes documents that are one object each. Fields that are not in the row are ignored, as in Flink."""

    fields: tuple[_Field, ...]

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """See ArrowDecoder.decode."""
        schema = pa.schema([(f.name, f.type) for f in self.fields])
        if not len(payloads):
            return schema.empty_table()
        texts = _checked_texts(payloads)
        table = self._read(payloads)
        if table.num_rows != len(payloads):
            raise NeedsFullDecode("a document is not one object")
        columns = [self._column(table[n], f, texts) for n, f in enumerate(self.fields)]
        return pa.table(columns, schema=schema)

    def _read(self, payloads: pa.BinaryArray) -> pa.Table:
        lines = b"\n".join(payloads.to_pylist())
        schema = pa.schema([(f.name, pa.string() if f.pattern else f.type) for f in self.fields])
        if not self.fields:
            # Without a field Arrow's reader would infer some.
            schema = pa.schema([("", pa.null())])
        try:
            return json.read_json(
                pa.BufferReader(lines),
                read_options=json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
                parse_options=json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            ).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise NeedsFullDecode("Arrow does not read a document") from None

    def _column(self, values: pa.ChunkedArray, field: _Field, texts: pa.StringArray) -> pa.ChunkedArray:
        if field.pattern:
            return _temporal(values, field)
        if pa.types.is_float64(field.type):
            _refuse_doubles(values, field)
        if pa.types.is_decimal(field.type):
            _refuse_decimals(values, field, texts)
        return values


def decoder(spec: FormatSpec) -> ArrowDecoder | str:
    """Return the decoder of a json format, or why there is none, as the end of a sentence."""
    options = JsonOptions.of(spec.options)
    if options.ignore_parse_errors or options.fail_on_missing_field:
        which = "ignore-parse-errors" if options.ignore_parse_errors else "fail-on-missing-field"
        return f"json has the option '{which}'"
    fields = []
    for name, type in ((f.name, f.type) for f in spec.row.fields):
        given = arrow_type(type)
        if not isinstance(type, ScalarType) or given is None or not (type.name in _TYPES or type.is_string):
            return f"field {name!r} of a json document is {type.flink()}"
        pattern = _pattern(type, options.iso_8601) if type.name in _TEMPORAL else ""
        fields.append(_Field(name, given, pattern))
    return JsonArrowDecoder(tuple(fields))


def _checked_texts(payloads: pa.BinaryArray) -> pa.StringArray:
    """Return the documents as texts: valid UTF-8 that begins with { and ends with }, within Jackson's limits.

    Joined by line breaks, such documents are read as one object each, or not at all: a break is illegal in a text, and
    between two objects only where the first one is complete. One with two objects makes a row too many.
    """
    try:
        texts = payloads.cast(pa.string())
    except pa.ArrowInvalid:
        raise NeedsFullDecode("a document is not valid UTF-8") from None
    if not pc.all(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))).as_py():
        raise NeedsFullDecode("a document is not one object")
    for name in ("NaN", "Inf"):
        # Looking for the name alone is cheap, and it is in few documents.
        suspects = texts.filter(pc.match_substring(texts, name))
        if len(suspects) and pc.any(pc.match_substring_regex(suspects, _NOT_A_NUMBER)).as_py():
            raise NeedsFullDecode("a document may contain a number that is none")
    lengths = pc.binary_length(payloads)
    if pc.max(lengths).as_py() > _SHORT_BYTES:
        long = texts.filter(pc.greater(lengths, _SHORT_BYTES))
        if (
            pc.max(lengths).as_py() > _LONGEST_BYTES
            or pc.max(pc.count_substring_regex(long, r"[\[{]")).as_py() > _SHORT_BYTES
            or pc.any(pc.match_substring_regex(long, f"[0-9.eE+-]{{{_SHORT_BYTES}}}")).as_py()
        ):
            raise NeedsFullDecode("a document is very long or deep")
    return texts


def _pattern(type: ScalarType, iso_8601: bool) -> str:
    """Return a pattern of texts that Arrow, Spark and Flink read alike, without a digit beyond the precision."""
    date = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
    if type.name == "DATE":
        return f"^{date}$"
    digits = min(type.parameters[0], 6)
    fraction = f"(?:[.][0-9]{{1,{digits}}})?" if digits else ""
    zone = "Z" if type.name == "TIMESTAMP_LTZ" else ""
    return f"^{date}{'T' if iso_8601 else ' '}[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}{fraction}{zone}$"


def _temporal(values: pa.ChunkedArray, field: _Field) -> pa.ChunkedArray:
    if pc.all(pc.match_substring_regex(values, field.pattern)).as_py() is False:
        raise NeedsFullDecode(f"field {field.name!r} has an unusual text of a date or timestamp")
    try:
        return values.cast(field.type)
    except pa.ArrowInvalid:
        raise NeedsFullDecode(f"field {field.name!r} has a date or timestamp that does not exist") from None


def _refuse_doubles(values: pa.ChunkedArray, field: _Field) -> None:
    """Raise NeedsFullDecode for what may be no number of JSON, and for -0.0: Jackson reads -0 as an integer, 0."""
    bits = pa.chunked_array([chunk.view(pa.int64()) for chunk in values.chunks], pa.int64())
    if pc.any(pc.or_(pc.is_inf(values), pc.equal(bits, _NEGATIVE_ZERO))).as_py():
        raise NeedsFullDecode(f"field {field.name!r} has -0 or a number that is too large for a DOUBLE")


def _refuse_decimals(values: pa.ChunkedArray, field: _Field, texts: pa.StringArray) -> None:
    """Raise NeedsFullDecode for a number of too many digits, and where a document with a number of many contains a
    fraction."""
    assert isinstance(field.type, pa.Decimal128Type)
    try:
        values.validate(full=True)  # Arrow's reader adds zeros beyond the precision
    except pa.ArrowInvalid:
        raise NeedsFullDecode(f"field {field.name!r} has a number that does not fit its DECIMAL") from None
    if field.type.precision <= _DOUBLE_DIGITS:
        return
    limit = 0.999 * 10.0 ** (_DOUBLE_DIGITS - field.type.scale)
    large = pc.greater_equal(pc.abs(values.cast(pa.float64())), limit)
    suspects = texts.filter(pc.fill_null(large, False).combine_chunks())
    if len(suspects) and pc.any(pc.match_substring_regex(suspects, _FRACTION)).as_py():
        raise NeedsFullDecode(f"field {field.name!r} may have a fraction of more digits than a DOUBLE")
