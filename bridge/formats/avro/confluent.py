"""Flink's avro-confluent format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from bridge.format_rules.avro_table_schema import framed_schema
from bridge.formats.avro.framing import FramedDecoder, FramedEncoder, Subject
from bridge.formats.avro.registry_client import WriterSchema
from bridge.formats.base import NOTHING
from bridge.formats.sql import Names, apply, literal, null, struct, with_sql_column
from bridge.schema import RowType


class AvroConfluentFormat:
    """Reads and writes one record per document, whose first bytes name the writer's schema."""

    name = "avro-confluent"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> _RowDecoder:
        """See Format.decoder."""
        own, _ = framed_schema(self.name, row, options)
        return _RowDecoder(row, row.required(), own, Subject(self.name, options), key=key)

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> _RowEncoder:
        """See Format.encoder. Raises OptionError without a subject."""
        return _RowEncoder(row, *framed_schema(self.name, row, options), Subject(self.name, options))


class _RowDecoder(FramedDecoder):
    def good(self, value: str, names: Names) -> str:
        return struct(rows=f"array({struct(kind=literal('+I'), row=value)})", error=null("STRING"))

    def with_schemas(self, writers: Mapping[int, WriterSchema]) -> _RowDecoder:
        return _RowDecoder(self.row, self.type, self.own, self.subject, writers, self.key)


class _RowEncoder(FramedEncoder):
    def encode(self, row: Column) -> Column:
        """See Encoder.encode. Registers the schema, or looks it up, before Spark reads a row."""
        return apply(row.cast(self.type.spark()), self.framed("row", Names()), "row")

    def encode_into(self, frame: DataFrame, row: Column, name: str) -> DataFrame:
        """See FrameEncoder.encode_into; registers the schema as `encode` does."""
        return with_sql_column(frame, row.cast(self.type.spark()), name, self.framed)
