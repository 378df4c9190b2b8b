"""The bytes of a row's only field to Arrow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bridge.arrow_formats.arrow_types import arrow_schema, arrow_type
from bridge.arrow_formats.avro_cursor import Cursor
from bridge.arrow_formats.base import ArrowDecoder
from bridge.arrow_formats.text_values import utf_8
from bridge.definition import FormatSpec
from bridge.format_rules.raw import RawShape
from bridge.schema import RowType, ScalarType
from bridge.ways import NotThisWay

_UTF_8 = "UTF-8"
_NUMBERS = {
    "BOOLEAN": "u1",
    "TINYINT": "i1",
    "SMALLINT": "i2",
    "INT": "i4",
    "BIGINT": "i8",
    "FLOAT": "f4",
    "DOUBLE": "f8",
}


def decoder(spec: FormatSpec) -> ArrowDecoder:
    """Return the decoder of a format of raw bytes. Raises NotThisWay."""
    shape = RawShape(spec.row, spec.options)
    if shape.type.is_string and shape.charset != _UTF_8:
        raise NotThisWay(f"{spec.name}.charset is {shape.charset}")
    return RawArrowDecoder(spec.row, shape.big)


@dataclass(frozen=True)
class RawArrowDecoder:
    """Decodes documents that are a value each: bytes, text in UTF-8, or a number of its type's size."""

    row: RowType
    big: bool = True
    """Whether numbers have their highest byte first."""

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """See ArrowDecoder.decode."""
        if not len(payloads):
            return arrow_schema(self.row).empty_table()
        type = self.row.fields[0].type
        assert isinstance(type, ScalarType)
        return pa.table([self._values(payloads, type)], schema=arrow_schema(self.row))

    def _values(self, payloads: pa.BinaryArray, type: ScalarType) -> pa.Array:
        if type.is_binary:
            return payloads
        if type.is_string:
            return utf_8(payloads, "a document")
        cursor = Cursor.of(payloads)
        values = cursor.fixed((">" if self.big else "<") + _NUMBERS[type.name])
        if not cursor.is_at_ends:
            raise NotThisWay(f"a document is longer than its type, {type.name}")
        if type.name == "BOOLEAN":
            return pa.array(values != 0)
        values = values.astype(values.dtype.newbyteorder("="))
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise NotThisWay("a number is NaN, which Java writes in one way")
        return pa.array(values, arrow_type(type))
