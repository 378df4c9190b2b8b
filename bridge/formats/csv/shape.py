"""What csv's decoder and encoder share: characters in patterns, and texts that mean null."""

from __future__ import annotations

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.sql import literal

CONTROLS = "".join(map(chr, range(0x21)))
"""The characters that Java's trim() removes."""

BLANK = r"\A[\x00-\x20]*\z"
"""A text that is empty after Java's trim()."""


def pattern(character: str) -> str:
    """Return `character` for a regular expression, inside or outside of brackets."""
    return rf"\x{{{ord(character):x}}}"


def text_or_null(text: str, options: CsvOptions) -> str:
    """Return `text`, or null where it means null."""
    if options.null_literal is not None:
        text = f"nullif({text}, {literal(options.null_literal)})"
    return f"nullif({text}, '')" if options.empty_as_null else text


def item_or_null(text: str, options: CsvOptions) -> str:
    """Return the same for an element of a list or row, which is trimmed in quotes, too."""
    return text_or_null(f"trim(BOTH {literal(CONTROLS)} FROM {text})" if options.trim else text, options)
