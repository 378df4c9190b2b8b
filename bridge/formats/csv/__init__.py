"""Flink's csv format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.format_rules.csv_options import CsvOptions, check
from bridge.formats.base import NOTHING
from bridge.formats.csv.decode import CsvDecoder
from bridge.formats.csv.encode import CsvEncoder
from bridge.schema import RowType

__all__ = ["CsvFormat"]


class CsvFormat:
    """Decodes what flink-csv decodes; encodes the same bytes."""

    name = "csv"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> CsvDecoder:
        """See Format.decoder."""
        check(row)
        return CsvDecoder(row, CsvOptions.of(options))

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> CsvEncoder:
        """See Format.encoder."""
        check(row)
        return CsvEncoder(row, CsvOptions.of(options))
