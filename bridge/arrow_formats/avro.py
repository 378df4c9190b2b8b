"""Avro documents of the table's own schema to Arrow, without framing."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.avro_cursor import Cursor
from bridge.arrow_formats.avro_plan import Plan, document_plan
from bridge.arrow_formats.avro_values import read
from bridge.arrow_formats.base import ArrowDecoder
from bridge.definition import FormatSpec
from bridge.format_rules.avro_table_schema import derived_schema
from bridge.schema import RowType
from bridge.ways import NotThisWay


def decoder(spec: FormatSpec) -> ArrowDecoder:
    """Return the decoder of a format of plain Avro. Raises NotThisWay."""
    encoding = str(spec.options.get("encoding", "binary"))
    if encoding != "binary":
        raise NotThisWay(f"{spec.name}.encoding is {encoding}")
    own = derived_schema(spec.name, spec.row, spec.options)
    return AvroArrowDecoder(spec.row, document_plan(spec.row, own, own))


@dataclass(frozen=True)
class AvroArrowDecoder:
    """Decodes documents that are one record each, of one schema, with nothing behind it."""

    row: RowType
    plan: Plan

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """See ArrowDecoder.decode. A row without fields gives a table without columns that has rows."""
        if not len(payloads):
            return arrow_schema(self.row).empty_table()
        cursor = Cursor.of(payloads)
        made = as_table(read(self.plan, cursor), self.row, len(payloads))
        if not cursor.is_at_ends:
            raise NotThisWay("a document is longer than its schema says")
        return made


def as_table(records: pa.StructArray | None, row: RowType, count: int) -> pa.Table:
    """Return the rows as a table; `records` is None where the row has no fields."""
    if records is None:
        return pa.table({"": pa.nulls(count)}).select([])
    return pa.Table.from_arrays(records.flatten(), schema=arrow_schema(row))
