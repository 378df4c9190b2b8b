"""Readers of documents: their type, their error, JSON text of values, and those of json, csv and raw.

JSON documents, those of CDC formats included, are shown as they are. Names of a line of CSV are those of the DDL's
columns, in its order, and values stay text.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from bridge.definition import FormatSpec
from bridge.format_rules.csv_options import CsvOptions
from bridge.schema import ScalarType


class Undecodable(ValueError):
    """Bytes are no document of the format; the message is the reason, without any of the bytes."""


Reader = Callable[[bytes], str]
"""Turns bytes into one line of JSON text. Raises Undecodable."""


def as_json(value: Any) -> str:
    """Return a decoded value as JSON text: bytes in base64, decimals and times as text."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def json_reader(spec: FormatSpec) -> Reader:
    """Return the document's own text, so that numbers keep their digits."""
    return _read_json


def _read_json(document: bytes) -> str:
    try:
        text = document.decode()
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=Decimal)
    except UnicodeDecodeError as bad:
        raise Undecodable(f"not UTF-8 at byte {bad.start}") from None
    except (ValueError, RecursionError) as bad:
        place = f" at character {bad.pos}" if isinstance(bad, json.JSONDecodeError) else ""
        raise Undecodable(f"not JSON{place}") from None
    return text if "\n" not in text and "\r" not in text else as_json(value)


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are no JSON")


def csv_reader(spec: FormatSpec) -> Reader:
    """Return a reader of lines with the fields of `spec`."""
    return _CsvReader(spec)


class _CsvReader:
    def __init__(self, spec: FormatSpec) -> None:
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
"""Flink's types by the format characters of Python's `struct`."""


def raw_reader(spec: FormatSpec) -> Reader:
    """Return a reader of values of the only field of `spec`."""
    return _RawReader(spec)


class _RawReader:
    def __init__(self, spec: FormatSpec) -> None:
        (field,) = spec.row.fields
        assert isinstance(field.type, ScalarType), "the format's rules refuse other types"
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
        number_format = self._order + _NUMBERS[self._type.name]
        size = struct.calcsize(number_format)
        if len(document) != size:
            raise Undecodable(f"{len(document)} bytes, where {self._type.flink()} has {size}")
        return struct.unpack(number_format, document)[0]
