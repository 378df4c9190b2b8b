"""Flink's json format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.format_rules.json_options import JsonOptions, check
from bridge.formats.base import NOTHING
from bridge.formats.json.decode import JsonDecoder
from bridge.formats.json.encode import JsonEncoder
from bridge.schema import RowType

__all__ = ["JsonFormat"]


class JsonFormat:
    """Decodes as flink-json does with its streaming parser; encodes the same bytes."""

    name = "json"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> JsonDecoder:
        """See Format.decoder."""
        check(row)
        return JsonDecoder(row, JsonOptions.of(options), key)

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> JsonEncoder:
        """See Format.encoder."""
        check(row)
        return JsonEncoder(row, JsonOptions.of(options))
