"""What csv's decoder and encoder agree on: how characters stand in a pattern."""

from __future__ import annotations

__all__ = ["BLANK", "CONTROLS", "pattern"]

CONTROLS = "".join(map(chr, range(0x21)))
"""What Java's trim() takes away."""

BLANK = r"\A[\x00-\x20]*\z"
"""A text of which Java's trim() leaves nothing."""


def pattern(character: str) -> str:
    """`character` in a regular expression, inside or outside of brackets."""
    return rf"\x{{{ord(character):x}}}"
