"""Flink's csv format: its options, read once and checked, and the rows that a line can represent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.errors import DefinitionError, OptionError
from bridge.schema import ArrayType, DataType, RowType, ScalarType, refuse_fields

_ESCAPE = re.compile(r"\\(?:u+\+?([0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class CsvOptions:
    """The options, typed; defaults are Flink's. `quote` is None where quotes are disabled."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    array_delimiter: str = ";"
    null_literal: str | None = None
    allow_comments: bool = False
    ignore_parse_errors: bool = False
    scientific: bool = False
    trim: bool = False
    empty_as_null: bool = False
    trailing_comma: bool = True
    """One blank field after the last column is ignored: Jackson's default, and Flink's without the option."""
    ignore_more: bool = False
    fail_on_fewer: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CsvOptions:
        """Read `options`: keys without the `csv.` prefix, typed as format_options.py declares them.

        Raises OptionError for what Flink's CsvCommons refuses, with its messages, and for characters that cannot have
        their role.
        """
        disabled = options.get("disable-quote-character", False)
        if disabled and "quote-character" in options:
            raise OptionError(
                "Format cannot define a quote character and disabled quote character at the same time."
            )
        return cls(
            delimiter=_delimiter(options.get("field-delimiter", ",")),
            quote=None if disabled else _character("quote-character", options.get("quote-character", '"')),
            escape=_character("escape-character", options.get("escape-character")),
            array_delimiter=_character("array-element-delimiter", options.get("array-element-delimiter", ";"))
            or ";",
            null_literal=options.get("null-literal"),
            allow_comments=options.get("allow-comments", False),
            ignore_parse_errors=options.get("ignore-parse-errors", False),
            scientific=options.get("write-bigdecimal-in-scientific-notation", False),
            trim=options.get("trim-spaces", False),
            empty_as_null=options.get("empty-string-as-null", False),
            trailing_comma=options.get("allow-trailing-comma", True),
            ignore_more=options.get("ignore-trailing-unmappable", False),
            fail_on_fewer=options.get("fail-on-missing-columns", False),
        )


def check_document(format: str, row: RowType, options: Mapping[str, Any]) -> None:
    """Raise what a decoder or an encoder would for `row` and `options` (see DeclaredFormat.rules)."""
    check(format, row)
    CsvOptions.of(options)


def _character(key: str, given: str | None, value: str | None = None) -> str | None:
    """Return the only character of `value`, which `given` spells."""
    value = given if value is None else value
    # As in Java, a character is one unit of UTF-16.
    if value is not None and len(value.encode("utf-16-le", "surrogatepass")) != 2:
        raise OptionError(f"Option 'csv.{key}' must be a string with single character, but was: {given}")
    return value


def _delimiter(given: str) -> str:
    delimiter = _character("field-delimiter", given, _unescaped(given)) or ""
    if delimiter in "\r\n":
        raise OptionError(
            "Option 'csv.field-delimiter' must not be a line break, which ends the row; use another character"
        )
    return delimiter


def _unescaped(text: str) -> str:
    r"""Return `text` with Java's escapes (\t, \u0001, \1) replaced, as Flink does for this option alone."""

    def character(match: re.Match[str]) -> str:
        unicode, octal, letter = match.groups()
        if unicode or octal:
            return chr(int(unicode, 16) if unicode else int(octal, 8))
        return _CONTROL.get(letter, letter)

    return _ESCAPE.sub(character, text)


def check(format: str, row: RowType) -> None:
    """Raise DefinitionError where a line of `format`, or Spark, cannot represent `row` (CsvRowSchemaConverter)."""
    refuse_fields(format, row)
    for field in row.fields:
        if not isinstance(field.type, (ScalarType, ArrayType, RowType)):
            raise DefinitionError(f"Unsupported type '{field.type.flink()}' for field '{field.name}'.")
        for part in _parts(field.type):
            if not isinstance(part, ScalarType):
                raise DefinitionError(
                    "Only simple types are supported in the second level nesting of fields "
                    f"'{field.name}' but was: {part.flink()}"
                )


def _parts(type: DataType) -> list[DataType]:
    if isinstance(type, ArrayType):
        return [type.element]
    return [f.type for f in type.fields] if isinstance(type, RowType) else []
