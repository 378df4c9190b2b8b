"""JSON objects to Arrow, by Arrow's own reader with the types of the row.

Most of what Flink converts (a number for a STRING, a text for a number, 1.0 for a BIGINT) Arrow's reader refuses, and
so does it most bad documents. `json_documents` looks for the rest in the bytes, and `json_values` in the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from bridge.arrow_formats import json_documents, json_values
from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.base import ArrowDecoder
from bridge.definition import FormatSpec
from bridge.format_rules.json_options import JsonOptions, Numbers
from bridge.format_rules.json_rows import CONNECT_ENVELOPE, types
from bridge.schema import DataType, MapType, RowType, ScalarType
from bridge.ways import NotThisWay

__all__ = ["JsonArrowDecoder", "decoder", "refuse_unread"]

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
        decimals = any(isinstance(t, ScalarType) and t.name == "DECIMAL" for t in types(self.row))
        lines = json_documents.checked_lines(payloads, decimals=decimals)
        values = _read(lines, json_values.read_schema(self.row) if self.row.fields else _NO_FIELDS)
        if values.num_rows != len(payloads):
            raise NotThisWay("a document is not one object")
        if not self.row.fields:
            return values.select([])
        conversion = json_values.Conversion(self.iso_8601, self.numbers, self.no_nulls)
        columns = conversion.columns(values, self.row)
        if all(column.null_count for column in columns) and b'"schema"' in lines.data:
            _check_not_foreign(payloads, columns)
        return pa.table(columns, schema=arrow_schema(self.row))


def _check_not_foreign(payloads: pa.BinaryArray, columns: Sequence[pa.Array]) -> None:
    empty = payloads.filter(reduce(pc.and_, [column.is_null() for column in columns])).cast(pa.string())
    if pc.any(pc.match_substring_regex(empty, CONNECT_ENVELOPE)).as_py():
        raise NotThisWay("a document has none of the row's fields, and is an envelope of Kafka Connect")


def _read(lines: json_documents.Lines, schema: pa.Schema) -> pa.Table:
    try:
        return json.read_json(
            pa.BufferReader(lines.data),
            read_options=json.ReadOptions(use_threads=False, block_size=lines.block_size),
            parse_options=json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:  # its text has payload
        raise NotThisWay("Arrow's reader refuses a document") from None
