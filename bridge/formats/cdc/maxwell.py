"""maxwell-json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.format_rules.change_documents import MAXWELL, CdcOptions
from bridge.format_rules.json_options import check
from bridge.formats.base import NOTHING
from bridge.formats.cdc.changed_fields import ChangedFieldsDecoder
from bridge.formats.cdc.encode import MaxwellEncoder
from bridge.formats.cdc.metadata import BIGINT, STRING, Metadata, Place, seconds
from bridge.formats.cdc.operation_types import Types
from bridge.schema import ArrayType, RowType

_PLACES = {
    "database": Place("database"),
    "table": Place("table"),
    "primary-key-columns": Place("primary_key_columns", ArrayType(STRING)),
    "ingestion-timestamp": Place("ts", BIGINT, read=seconds),
}


class _Decoder(ChangedFieldsDecoder):
    types = Types(MAXWELL)
    several = False


class MaxwellJsonFormat:
    """Reads and writes Maxwell's row documents. Others (those of its bootstrap, DDL) are errors, as in Flink."""

    name = "maxwell-json"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> ChangedFieldsDecoder:
        """See Format.decoder."""
        check(row)
        read = CdcOptions.of(self.name, options)
        return _Decoder(row, read, Metadata(metadata, _PLACES), key=key)

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> MaxwellEncoder:
        """See Format.encoder."""
        check(row)
        return MaxwellEncoder(row, CdcOptions.of(self.name, options).json)
