"""Debezium's change events in Confluent's framing to Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from bridge.arrow_formats.avro import AvroConfluentArrowDecoder, documents_decoder
from bridge.arrow_formats.base import ArrowChanges, ChangeArrowDecoder
from bridge.arrow_formats.changes import before_after_changes, documents_of, no_changes
from bridge.definition import FormatSpec
from bridge.format_rules.avro_given import envelope, event_schema
from bridge.format_rules.change_documents import DEBEZIUM, before_image_type
from bridge.schema import RowType


def decoder(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """Return a decoder that knows no writer's schema yet (see SchemaArrowDecoder), or why there is none, as the end of
    a sentence: the table must be such that events of its own schema can be read."""
    before = before_image_type(spec.row, key)
    _, text = event_schema(spec.name, spec.row, spec.options)
    events = documents_decoder(envelope(spec.row, before), text)
    return DebeziumAvroArrowDecoder(events, spec.row, before)


@dataclass(frozen=True)
class DebeziumAvroArrowDecoder:
    """Decodes events of the writers' schemas that it knows. Their other fields (`source`, `ts_ms`) are skipped."""

    events: AvroConfluentArrowDecoder
    row: RowType
    before: RowType
    """The key's fields."""

    def with_schemas(self, schemas: Mapping[int, str]) -> DebeziumAvroArrowDecoder:
        """See SchemaArrowDecoder.with_schemas."""
        return replace(self, events=self.events.with_schemas(schemas))

    def decode(self, payloads: pa.BinaryArray) -> ArrowChanges:
        """See ChangeArrowDecoder.decode."""
        documents = documents_of(payloads)
        if not len(documents):
            return no_changes(self.row, self.before)
        before, after, op = (column.combine_chunks() for column in self.events.decode(documents).columns)
        return before_after_changes(before, after, op, DEBEZIUM, self.row, self.before)
