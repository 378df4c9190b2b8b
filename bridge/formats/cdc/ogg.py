"""ogg-json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.format_rules.change_documents import OGG, CdcOptions
from bridge.format_rules.json_options import check
from bridge.formats.base import NOTHING
from bridge.formats.cdc.before_after import BeforeAfterDecoder
from bridge.formats.cdc.encode import PairEncoder
from bridge.formats.cdc.metadata import STRING, Metadata, Place, date_or_millis
from bridge.schema import ArrayType, RowType

# The keys of Flink's manual. Flink's code has others, with types that no GoldenGate document has.
_PLACES = {
    "table": Place("table"),
    "primary-keys": Place("primary_keys", ArrayType(STRING)),
    "ingestion-timestamp": Place("current_ts", read=date_or_millis),
    "event-timestamp": Place("op_ts", read=date_or_millis),
}


class _Decoder(BeforeAfterDecoder):
    operations = OGG


class OggJsonFormat:
    """Reads and writes Oracle GoldenGate's change documents. A truncate ('T') is an error, as in Flink."""

    name = "ogg-json"

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
        """See Format.encoder."""
        check(row)
        return PairEncoder(row, CdcOptions.of(self.name, options).json, "op_type", ("I", "U", "D"))
