"""Reads documents that are the bytes of one column."""

from __future__ import annotations

import struct
from typing import Any

from bridge.definition import FormatSpec
from bridge.peek.base import Reader, Undecodable, as_json
from bridge.schema import ScalarType

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


def reader(spec: FormatSpec) -> Reader:
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
