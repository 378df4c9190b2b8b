"""What the raw format accepts: one column of a type that is written as bytes, and a charset that Spark has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.schema import RowType, ScalarType, unsupported

SIZES = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8}

# One unit of UTF-16 in hexadecimal digits that is no surrogate, or a pair of surrogates; by byte order.
_BIG = "(?!D[89A-F])[0-9A-F]{4}|D[89AB][0-9A-F]{2}D[C-F][0-9A-F]{2}"
_LITTLE = "[0-9A-F]{2}(?!D[89A-F])[0-9A-F]{2}|[0-9A-F]{2}D[89AB][0-9A-F]{2}D[C-F]"
_POINT = "0000(?!D[89A-F])[0-9A-F]{4}|00(?:0[1-9A-F]|10)[0-9A-F]{4}"
_POINT_LITTLE = "[0-9A-F]{2}(?!D[89A-F])[0-9A-F]{2}0000|[0-9A-F]{4}(?:0[1-9A-F]|10)00"
# The charsets that Spark decodes, each with a pattern of the hexadecimal digits of valid text. Without a byte order
# mark UTF-16 and UTF-32 are big-endian.
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
    """The only field and the options, checked (RawFormatFactory)."""

    def __init__(self, row: RowType, options: Mapping[str, Any]) -> None:
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
        self.big = options.get("endianness") != "little-endian"

    def turned(self, bytes: str, *, big: bool) -> str:
        """Convert `bytes` of a number from the byte order of the options to the order `big`, or back."""
        size = SIZES[self.type.name]
        if self.big == big or size == 1:
            return bytes
        return f"concat({', '.join(f'substr({bytes}, {at}, 1)' for at in range(size, 0, -1))})"


def check_document(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    """Raise what a decoder or an encoder would for `row` and `options` (see DeclaredFormat.rules)."""
    RawShape(row, options)


def _charset(name: str) -> str:
    charset = _ALIASES.get(name.upper(), name.upper())
    if charset not in CHARSETS:
        raise OptionError(
            f"Unsupported 'raw.charset' name: {name}. Spark reads {', '.join(CHARSETS)}; for another charset "
            "declare the column BYTES"
        )
    return charset
