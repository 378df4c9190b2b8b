"""Flink's avro format, in the binary or the JSON encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from bridge.format_rules.avro_schema import Node
from bridge.format_rules.avro_table_schema import derived_schema
from bridge.formats.avro.decode import bound_memory, document
from bridge.formats.avro.encode import avro_bytes
from bridge.formats.avro.json_text import AvroJsonDecoder, AvroJsonEncoder
from bridge.formats.avro.schema_resolution import resolve
from bridge.formats.base import NOTHING
from bridge.formats.sql import Names, apply, literal, null, struct, with_sql_column
from bridge.schema import RowType

_EMPTY = "empty document"


class AvroFormat:
    """Reads and writes one record per document, of the schema that Flink derives from the table."""

    name = "avro"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> AvroDecoder | AvroJsonDecoder:
        """See Format.decoder."""
        decoder = AvroJsonDecoder if _is_json(options) else AvroDecoder
        return decoder(row, derived_schema(self.name, row, options))

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> AvroEncoder | AvroJsonEncoder:
        """See Format.encoder."""
        encoder = AvroJsonEncoder if _is_json(options) else AvroEncoder
        return encoder(row, derived_schema(self.name, row, options))


def _is_json(options: Mapping[str, Any]) -> bool:
    return str(options.get("encoding", "binary")) == "json"


class AvroDecoder:
    """Reads one row per document."""

    skips_errors = False
    has_unavailable = False

    def __init__(self, row: RowType, schema: Node) -> None:
        self.row, self.schema = row, schema

    def decode(self, payload: Column) -> Column:
        """See Decoder.decode."""
        bound_memory()
        names = Names()
        variable = names.fresh()
        return apply(payload, self._outcome(variable, names, fast=False), variable)

    def decode_fast(self, frame: DataFrame, payload: Column, name: str) -> DataFrame:
        """See FastPathDecoder.decode_fast. A value that does not fit needs a full decode."""
        bound_memory()
        return with_sql_column(frame, payload, name, lambda p, names: self._outcome(p, names, fast=True))

    def _outcome(self, payload: str, names: Names, *, fast: bool) -> str:
        def bad(reason: str) -> str:
            return struct(rows=null(f"ARRAY<STRUCT<kind: STRING, row: {self.row.spark()}>>"), error=reason)

        def good(value: str) -> str:
            return struct(rows=f"array({struct(kind=literal('+I'), row=value)})", error=null("STRING"))

        reader = resolve(self.row.required(), self.schema, self.schema)
        decoded = document(payload, self.schema, reader, names, good, bad, fast=fast)
        empty = f"WHEN length({payload}) = 0 THEN {bad(literal(_EMPTY))} " if self.row.fields else ""
        return f"CASE WHEN {payload} IS NULL THEN {bad(null('STRING'))} {empty}ELSE {decoded} END"

    def for_payloads(self, payloads: DataFrame) -> AvroDecoder:
        """See Decoder.for_payloads: documents name no schema."""
        return self


class AvroEncoder:
    """Writes one record per row. Fails for a null where the table's type is NOT NULL."""

    def __init__(self, row: RowType, schema: Node) -> None:
        self.row, self.schema = row, schema

    def encode(self, row: Column) -> Column:
        """See Encoder.encode."""
        return apply(self._typed(row), self._payload("row", Names()), "row")

    def encode_into(self, frame: DataFrame, row: Column, name: str) -> DataFrame:
        """See FrameEncoder.encode_into."""
        return with_sql_column(frame, self._typed(row), name, self._payload)

    def _typed(self, row: Column) -> Column:
        # to_avro takes exactly these types; Spark drops a cast to the same type.
        return row.cast(self.row.spark())

    def _payload(self, row: str, names: Names) -> str:
        return avro_bytes(row, self.row, self.schema, names, AvroFormat.name)
