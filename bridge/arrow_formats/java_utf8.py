"""Bytes as text as Java reads them: `new String(bytes, UTF_8)`.

Python replaces other parts of bad UTF-8: of a surrogate's three bytes each one, where Java has one replacement.
"""

from __future__ import annotations

__all__ = ["java_text"]

_REPLACEMENT = "\ufffd"


def java_text(data: bytes) -> str:
    """Return the text of `data`, with U+FFFD for each part that Java finds malformed."""
    parts, at = list[str](), 0
    while at < len(data):
        try:
            parts.append(data[at:].decode())
            break
        except UnicodeDecodeError as bad:
            parts.append(data[at : at + bad.start].decode())
            at += bad.start
            parts.append(_REPLACEMENT)
            at += _malformed(data[at : at + 4])
    return "".join(parts)


def _malformed(data: bytes) -> int:
    """Return how many bytes one replacement stands for. `data` are up to four bytes that begin with malformed ones."""
    first, rest = data[0], data[1:]
    if 0xE0 <= first <= 0xEF:
        return _malformed_of_three(first, rest)
    if 0xF0 <= first <= 0xF4:
        return _malformed_of_four(first, rest)
    return 1


def _malformed_of_three(first: int, rest: bytes) -> int:
    if not rest or not _continues(rest[0]) or (first == 0xE0 and rest[0] < 0xA0):
        return 1
    # What is left is a surrogate, which is replaced whole, or ends too early.
    return 3 if len(rest) > 1 and _continues(rest[1]) else 2


def _malformed_of_four(first: int, rest: bytes) -> int:
    least, most = {0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(first, (0x80, 0xBF))
    if not rest or not least <= rest[0] <= most:
        return 1
    return 2 if len(rest) < 2 or not _continues(rest[1]) else 3


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80
