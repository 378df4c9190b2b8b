"""What csv's decoder and encoder agree on: how characters stand in a pattern."""

from __future__ import annotations

from bridge.format_rules.csv_options import CsvOptions
from bridge.formats.sql import literal

__all__ = ["BLANK", "CONTROLS", "given", "part", "pattern"]

CONTROLS = "".join(map(chr, range(0x21)))
"""What Java's trim() takes away."""

BLANK = r"\A[\x00-\x20]*\z"
"""A text of which Java's trim() leaves nothing."""


def pattern(character: str) -> str:
    """`character` in a regular expression, inside or outside of brackets."""
    return rf"\x{{{ord(character):x}}}"


def given(text: str, options: CsvOptions) -> str:
    """`text`, or null where it stands for null."""
    if options.null_literal is not None:
        text = f"nullif({text}, {literal(options.null_literal)})"
    return f"nullif({text}, '')" if options.empty_as_null else text


def part(text: str, options: CsvOptions) -> str:
    """The same of an element of a list or row, which is trimmed in quotes, too."""
    return given(f"trim(BOTH {literal(CONTROLS)} FROM {text})" if options.trim else text, options)
