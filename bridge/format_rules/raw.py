"""What the raw format takes: one column of a type that is bytes, and a charset that Spark has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.schema import RowType, ScalarType, unsupported

__all__ = ["CHARSETS", "SIZES", "RawShape"]

SIZES = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8}
_ENDIANNESS = ("big-endian", "little-endian")

# One unit of UTF-16 in hexadecimal digits that is no surrogate, and a pair of surrogates; by byte order.
_BIG = "(?!D[89A-F])[0-9A-F]{4}|D[89AB][0-9A-F]{2}D[C-F][0-9A-F]{2}"
_LITTLE = "[0-9A-F]{2}(?!D[89A-F])[0-9A-F]{2}|[0-9A-F]{2}D[89AB][0-9A-F]{2}D[C-F]"
_POINT = "0000(?!D[89A-F])[0-9A-F]{4}|00(?:0[1-9A-F]|10)[0-9A-F]{4}"
_POINT_LITTLE = "[0-9A-F]{2}(?!D[89A-F])[0-9A-F]{2}0000|[0-9A-F]{4}(?:0[1-9A-F]|10)00"
# What Spark decodes, with the hexadecimal digits of bytes that are text; without a mark UTF-16 and -32 are big-endian.
CHARSETS = {
    "UTF-8": None,
    "US-ASCII": "(?:[0-7][0-9A-F])*+",
    "ISO-8859-1": "[0-9A-F]*+",
    "UTF-16": f"FFFE(?:{_LITTLE})*+|(?!FFFE)(?:{_BIG})*+",
    "UTF-16BE": f"(?:{_BIG})*+",
    "UTF-16LE": f"(?:{_LITTLE})*+",
    "UTF-32": f"FFFE0000(?:{_POINT_LITTLE})*+|(?!FFFE0000)(?:{_POINT})*+",
}
_ALIASES = {"UTF8": "UTF-8", "ASCII": "US-ASCII", "LATIN1": "ISO-8859-1", "ISO8859_1": "ISO-8859-1"}


class RawShape:
    """The one field and the options, checked (RawFormatFactory)."""

    def __init__(self, row: RowType, options: Mapping[str, Any]) -> None:
        unknown = sorted(set(options) - {"charset", "endianness"})
        if unknown:
            raise OptionError(f"unknown option 'raw.{unknown[0]}'; raw knows: charset, endianness")
        if len(row.fields) != 1:
            raise DefinitionError(
                "The 'raw' format only supports single physical column. However the defined schema contains "
                f"multiple physical columns: [{', '.join(f'`{f.name}` {f.type.flink()}' for f in row.fields)}]"
            )
        self.field = row.fields[0]
        reason = unsupported(self.field.type)
        if reason:
            raise UnsupportedError(f"format 'raw': {reason}", what="column type")
        type = self.field.type
        if not (isinstance(type, ScalarType) and (type.is_string or type.is_binary or type.name in SIZES)):
            raise DefinitionError(f"The 'raw' format doesn't supports '{type.flink()}' as column type.")
        self.type = type
        self.charset = _charset(options.get("charset", "UTF-8"))
        endianness = options.get("endianness", _ENDIANNESS[0])
        if endianness not in _ENDIANNESS:
            raise OptionError(
                f"Unsupported endianness name: {endianness}. Valid values of 'raw.endianness' option are "
                "'big-endian' and 'little-endian'."
            )
        self.big = endianness == _ENDIANNESS[0]

    def turned(self, bytes: str, *, big: bool) -> str:
        """`bytes` of a number that are in the order `big` or are wanted in it, otherwise turned round."""
        size = SIZES[self.type.name]
        if self.big == big or size == 1:
            return bytes
        return f"concat({', '.join(f'substr({bytes}, {at}, 1)' for at in range(size, 0, -1))})"


def _charset(name: str) -> str:
    found = _ALIASES.get(name.upper(), name.upper())
    if found not in CHARSETS:
        raise OptionError(
            f"Unsupported 'raw.charset' name: {name}. Spark reads {', '.join(CHARSETS)}; for another charset "
            "declare the column BYTES"
        )
    return found
