"""Texts as JSON strings, byte for byte as Java's writer (Jackson) has them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["escaped", "quoted"]

_SHORT = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
_FIRST_PLAIN = 0x20
# The backslash first: the others' escapes contain one.
_ESCAPES = {
    char: f"\\{_SHORT[char]}" if char in _SHORT else f"\\u{ord(char):04X}"
    for char in ("\\", '"', *map(chr, range(_FIRST_PLAIN)))
}
_ASCII = 0x80
_BEYOND_16_BITS = 0xF0
"""The least first byte of a character that UTF-16 has in two halves."""
_BEYOND = re.compile("[^\0-\uffff]")


def quoted(text: str) -> str:
    """Return one text, such as a field's name, as a JSON string with its quotes."""
    return '"' + _BEYOND.sub(_halves, "".join(_ESCAPES.get(char, char) for char in text)) + '"'


def escaped(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings without their quotes; null stays null. Raises ArrowInvalid for bad UTF-8."""
    data = _bytes(texts)
    if not len(data):
        return texts
    if data.max() >= _ASCII:
        _check(texts)
    # Three comparisons of all bytes at once cost less than looking each of them up.
    if data.min() < _FIRST_PLAIN or (data == ord('"')).any() or (data == ord("\\")).any():
        found = np.bincount(data, minlength=256)
        for char, escape in _ESCAPES.items():
            if found[ord(char)]:
                texts = pc.replace_substring(texts, char, escape)
    return texts if data.max() < _BEYOND_16_BITS else _halves_escaped(texts)


def _halves_escaped(texts: pa.Array) -> pa.Array:
    """Return texts with characters beyond 16 bits as escapes, as Jackson writes them into bytes."""
    return pa.array([text and _BEYOND.sub(_halves, text) for text in texts.to_pylist()], texts.type)


def _halves(beyond: re.Match[str]) -> str:
    both = beyond[0].encode("utf-16-be").hex().upper()
    return f"\\u{both[:4]}\\u{both[4:]}"


def _bytes(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the bytes of all values, one after the other."""
    _, offsets, data = texts.buffers()
    wide = pa.types.is_large_string(texts.type)
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32, len(texts) + 1 + texts.offset)
    first, last = int(ends[texts.offset]), int(ends[-1])
    return np.frombuffer(data, np.uint8, last)[first:] if last > first else np.empty(0, np.uint8)


def _check(texts: pa.Array) -> None:
    """Raise ArrowInvalid for bad UTF-8, which Arrow's casts find and its strings of other origin may have."""
    large = pa.types.is_large_string(texts.type)
    texts.cast(pa.large_binary() if large else pa.binary()).cast(texts.type)
