"""Key and value bytes as JSON text, by the formats' own rules as far as people need them to read a document.

Not the decoders of an ingest: these check every field against the DDL, in Spark. Here a JSON document is shown as it
stands, a CDC document whole, and only formats without names in their documents take these from the DDL.
"""

from __future__ import annotations

import csv
import io
import json
import struct
from decimal import Decimal
from typing import Any

from bridge.definition import FormatSpec
from bridge.options import FORMATS
from bridge.peek.base import Reader, Undecodable, as_json
from bridge.schema import ScalarType

__all__ = ["reader"]


def reader(spec: FormatSpec) -> Reader:
    """The reader of documents of `spec`. It may raise KafkaError when a schema registry does not answer."""
    if spec.name == "csv":
        return _Csv(spec)
    if spec.name == "raw":
        return _Raw(spec)
    if "avro" in spec.name:
        from bridge.peek import avro

        return avro.reader(spec)
    assert "json" in spec.name, (
        f"format '{spec.name}' is declared ({', '.join(FORMATS)}), and cannot be peeked at"
    )
    return _json


def _json(document: bytes) -> str:
    """The document's own text: numbers keep their digits."""
    try:
        text = document.decode()
        found = json.loads(text, parse_constant=_no_constant, parse_float=Decimal)
    except UnicodeDecodeError as bad:
        raise Undecodable(f"not UTF-8 at byte {bad.start}") from None
    except (ValueError, RecursionError) as bad:
        place = f" at character {bad.pos}" if isinstance(bad, json.JSONDecodeError) else ""
        raise Undecodable(f"not JSON{place}") from None
    return text if "\n" not in text and "\r" not in text else as_json(found)


def _no_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are no JSON")


class _Csv:
    """One line; names are the DDL's columns, in its order, values are text as they stand."""

    def __init__(self, spec: FormatSpec) -> None:
        from bridge.format_rules.csv_options import CsvOptions

        options = CsvOptions.of(spec.options)
        self._names = spec.row.names
        self._options = options
        self._dialect: dict[str, Any] = {
            "delimiter": options.delimiter,
            "escapechar": options.escape,
            "quoting": csv.QUOTE_NONE if options.quote is None else csv.QUOTE_MINIMAL,
            "quotechar": options.quote or '"',
            "strict": True,
        }

    def __call__(self, document: bytes) -> str:
        try:
            rows = list(csv.reader(io.StringIO(document.decode(), newline=""), **self._dialect))
        except UnicodeDecodeError as bad:
            raise Undecodable(f"not UTF-8 at byte {bad.start}") from None
        except csv.Error as bad:
            raise Undecodable(f"not CSV: {bad}") from None
        cells = rows[0] if rows else []
        more, options = cells[len(self._names) :], self._options
        if options.ignore_more or (options.trailing_comma and len(more) == 1 and not more[0].strip()):
            cells = cells[: len(self._names)]
        if len(cells) != len(self._names):
            raise Undecodable(f"{len(cells)} fields, where the DDL has {len(self._names)} columns")
        return as_json(
            {
                name: None if cell == options.null_literal or (options.empty_as_null and not cell) else cell
                for name, cell in zip(self._names, cells, strict=True)
            }
        )


_NUMBERS = {
    "BOOLEAN": "?",
    "TINYINT": "b",
    "SMALLINT": "h",
    "INT": "i",
    "BIGINT": "q",
    "FLOAT": "f",
    "DOUBLE": "d",
}
"""Java's types in the words of `struct`."""


class _Raw:
    """The bytes of one column."""

    def __init__(self, spec: FormatSpec) -> None:
        (field,) = spec.row.fields
        assert isinstance(field.type, ScalarType), "config refuses raw on other types"
        self._name, self._type = field.name, field.type
        self._charset = str(spec.options.get("charset", "UTF-8"))
        self._order = "<" if spec.options.get("endianness") == "little-endian" else ">"

    def __call__(self, document: bytes) -> str:
        return as_json({self._name: self._value(document)})

    def _value(self, document: bytes) -> Any:
        if self._type.is_binary:
            return document
        if self._type.is_string:
            try:
                return document.decode(self._charset)
            except UnicodeDecodeError as bad:
                raise Undecodable(f"not {self._charset} at byte {bad.start}") from None
        form = self._order + _NUMBERS[self._type.name]
        if len(document) != struct.calcsize(form):
            raise Undecodable(
                f"{len(document)} bytes, where {self._type.flink()} has {struct.calcsize(form)}"
            )
        return struct.unpack(form, document)[0]
