"""debezium-json."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bridge.errors import OptionError
from bridge.format_rules.cdc_options import CdcOptions
from bridge.format_rules.change_documents import DEBEZIUM
from bridge.format_rules.json_rows import check
from bridge.formats.base import NOTHING
from bridge.formats.cdc import unavailable_value
from bridge.formats.cdc.before_after import BeforeAfterDecoder, Image
from bridge.formats.cdc.encode import PairEncoder
from bridge.formats.cdc.metadata import BIGINT, Metadata, Place, as_is, millis, millis_of_text
from bridge.formats.sql import Names, let, null, struct
from bridge.schema import RowType

__all__ = ["DebeziumJsonFormat"]

_PLACES = {
    "schema": Place("schema"),
    "ingestion-timestamp": Place("ts_ms", BIGINT, read=millis),
    "source.timestamp": Place("source", inner="ts_ms", read=millis_of_text),
    "source.database": Place("source", inner="db"),
    "source.schema": Place("source", inner="schema"),
    "source.table": Place("source", inner="table"),
    "source.properties": Place("source", whole=True, read=as_is),
}


class _Decoder(BeforeAfterDecoder):
    operations = DEBEZIUM
    beside = ("schema",)
    has_unavailable = True

    def __init__(self, row: RowType, options: CdcOptions, metadata: Metadata, *, key: Sequence[str]) -> None:
        super().__init__(row, options, metadata, key=key)
        self.wrapper = "payload" if options.schema_include else ""

    def image(self, state: str, row: RowType, names: Names, body: Callable[[Image], str]) -> str:
        """See BeforeAfterDecoder.image: a placeholder is null in the row, and its field's name is in `unavailable`."""
        has_placeholder = unavailable_value.has_placeholder(row, state)
        if not has_placeholder:
            return body(Image(state, null("ARRAY<STRING>")))
        without = struct(
            row=unavailable_value.without_placeholders(row, state),
            unavailable=unavailable_value.unavailable_fields(row, state),
        )
        plain = struct(row=state, unavailable=null("ARRAY<STRING>"))
        return let(
            names,
            f"IF({has_placeholder}, {without}, {plain})",
            lambda image: body(Image(f"{image}.row", f"{image}.unavailable")),
        )

    def _no_operation(self) -> str:
        if self.wrapper:
            return super()._no_operation()
        return "field 'op' is null or missing (documents wrapped in 'payload' need 'schema-include' = 'true')"


class DebeziumJsonFormat:
    """Reads Debezium's change events, wrapped in Kafka Connect's schema or not; writes them without."""

    name = "debezium-json"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> BeforeAfterDecoder:
        """See Format.decoder."""
        check(row)
        read = CdcOptions.of(self.name, options)
        return _Decoder(row, read, Metadata(metadata, _PLACES), key=key)

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> PairEncoder:
        """See Format.encoder. Raises OptionError with 'schema-include', which only a source has (as in Flink)."""
        check(row)
        read = CdcOptions.of(self.name, options)
        if read.schema_include:
            raise OptionError(
                "Debezium JSON serialization doesn't support 'debezium-json.schema-include' option been set to true."
            )
        return PairEncoder(row, read.json, "op", ("c", "u", "d"))
