"""Flink's avro-confluent format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from bridge.formats.avro.client import Writer
from bridge.formats.avro.derive import check, derive
from bridge.formats.avro.framing import FramedDecoder, FramedEncoder, Subject
from bridge.formats.avro.given import given
from bridge.formats.avro.schema import Node, parse
from bridge.formats.base import NOTHING
from bridge.formats.sql import Names, apply, literal, look, null, struct
from bridge.schema import RowType

__all__ = ["AvroConfluentFormat"]

_NAME = "avro-confluent"


class AvroConfluentFormat:
    """One record per document; its first bytes name the writer's schema, the table's schema reads it."""

    name = _NAME
    insert_only = True

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> _RowDecoder:
        """See Format.decoder."""
        own, _ = _own(row, options)
        return _RowDecoder(row, row.required(), own, Subject(_NAME, options))

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> _RowEncoder:
        """See Format.encoder. Raises OptionError without a subject."""
        return _RowEncoder(row, *_own(row, options), Subject(_NAME, options))


class _RowDecoder(FramedDecoder):
    def good(self, value: str, names: Names) -> str:
        return struct(rows=f"array({struct(kind=literal('+I'), row=value)})", error=null("STRING"))

    def again(self, writers: Mapping[int, Writer]) -> _RowDecoder:
        return _RowDecoder(self.row, self.type, self.own, self.subject, writers)


class _RowEncoder(FramedEncoder):
    def encode(self, row: Column) -> Column:
        """See Encoder.encode. Registers the schema, or finds it, before Spark sees a row."""
        return apply(row.cast(self.type.spark()), self.framed("row", Names()), "row")

    def put(self, frame: DataFrame, row: Column, name: str) -> DataFrame:
        """See StepwiseEncoder.put; as `encode`."""
        return look(frame, row.cast(self.type.spark()), name, self.framed)


def _own(row: RowType, options: Mapping[str, Any]) -> tuple[Node, str]:
    """The table's own schema and its text: the one that is given, or the one that Flink derives."""
    check(_NAME, row)
    text = options.get("schema")
    if text is not None:
        words = f"Schema provided for '{_NAME}' format does not match the table schema"
        return given(str(text), row, f"{_NAME}.schema", words), str(text)
    made = json.dumps(derive(row, legacy_timestamps=True), ensure_ascii=False, separators=(",", ":"))
    return parse(made, "the table"), made
