"""Ask a format whether it takes a document, before there is a decoder or an encoder of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bridge.format_rules import avro_own, csv_rows, json_rows
from bridge.format_rules.cdc_options import CdcOptions
from bridge.format_rules.csv_options import CsvOptions
from bridge.format_rules.json_options import JsonOptions
from bridge.format_rules.raw import RawShape
from bridge.schema import RowType

__all__ = ["refuse_unsupported"]


def refuse_unsupported(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    """Raise what the format's decoder and encoder would: OptionError, DefinitionError, UnsupportedError.

    By the row and the options alone; what a registry has to say is not known yet.
    """
    _ASKED[format](format, row, options)


def _json(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    json_rows.check(row)
    JsonOptions.of(options)


def _csv(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    csv_rows.check(row)
    CsvOptions.of(options)


def _raw(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    RawShape(row, options)


def _cdc(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    json_rows.check(row)
    CdcOptions.of(format, options)


def _avro(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    avro_own.bare(row, options)


def _framed(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    avro_own.framed(row, options)


def _event(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    avro_own.event(row, options)


_ASKED: Mapping[str, Callable[[str, RowType, Mapping[str, Any]], None]] = {
    "json": _json,
    "csv": _csv,
    "raw": _raw,
    "avro": _avro,
    "avro-confluent": _framed,
    "debezium-avro-confluent": _event,
    **dict.fromkeys(("debezium-json", "canal-json", "maxwell-json", "ogg-json"), _cdc),
}
