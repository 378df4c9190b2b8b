"""The bytes of JSON documents: what Arrow's reader accepts and Flink and Spark do not, and how it is given them.

Arrow reads JSON with RapidJSON, Flink and Spark with Jackson. Differences: RapidJSON ends at a NUL, reads NaN and Inf,
and has no limits for depths, numbers and names (Jackson: StreamReadConstraints).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.texts import as_lines
from bridge.ways import NotThisWay

__all__ = ["Lines", "checked_lines"]

# A block and its columns fit into the processor's cache.
_BLOCK_BYTES = 1 << 18

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STRING_OR_NAME = re.compile(_STRING.pattern + rb"(\s*:)?", re.DOTALL)
_NOT_FINITE = r"[:,\[\s]-?(?:NaN|Inf)"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS_AS_ZERO = bytes(ord("0") if chr(b).isdigit() and b < 128 else b for b in range(256))

_LONGEST_NUMBER = 1000
_DEEPEST = 1000
_LONGEST_NAME = 50_000
# A number of more than 1000 characters has three runs of digits at most.
_LONG_DIGITS = b"0" * (_LONGEST_NUMBER // 3 - 2)

# Decimals, bare or in a string, which may have escapes. Spark's path reads at most 1000 characters, and exponents of at
# most three digits. Arrow reads more zeros, and it crashes at a number of many more decimal places than its type has
# (its table of powers of ten ends at 38): so their digits after the point and a negative exponent may be 38 together.
_DECIMAL_HINTS = (b"e-", b"E-", b"e00", b"E00", b"e+00", b"E+00", rb"\u00", b"0" * 100)
_SMALL = r"[eE]-0*(?:[2-9][0-9]|[0-9]{3})"
_LONG = r"[.][0-9]{19,}[eE]-|0{100}"
_MAYBE_ODD_DECIMAL = rf"{_SMALL}|{_LONG}|[eE][+-]?00[0-9]{{2}}|\\u00(?:[36][0-9]|45|2[bBdDeE])"
_ODD_DECIMAL = re.compile(rf"[0-9.](?:{_SMALL}|[eE][+-]?[0-9]{{4}})|{_LONG}".encode())
_NUMBER_IN_STRING = re.compile(rb'"(?:[-+.0-9eE]|\\u00[0-9a-fA-F]{2})+"')
_ASCII_ESCAPE = re.compile(rb"\\u00([0-9a-fA-F]{2})")


@dataclass(frozen=True)
class Lines:
    """Documents joined by line feeds."""

    data: bytes
    block_size: int
    """For Arrow's reader, which cuts blocks at line ends: no document is longer, and none is cut."""


def checked_lines(payloads: pa.BinaryArray, *, decimals: bool) -> Lines:
    """Join payloads (at least one) of which each begins with { and ends with }.

    Joined by line feeds, such documents are read as one object or more each, or not at all: a line feed is illegal in
    a string, and between } and { it is legal only outside of all objects. So they are one object each where Arrow
    finds as many rows as documents. Raises NotThisWay for documents that Arrow's reader may accept although
    Spark's path does not; `decimals` tells whether decimals are read from them.
    """
    texts, data = as_lines(payloads)
    if not (pc.all(pc.starts_with(texts, "{")).as_py() and pc.all(pc.ends_with(texts, "}")).as_py()):
        raise NotThisWay("a document is not one object")
    if b"\0" in data:
        raise NotThisWay("a document has a NUL")
    if _contains(data, b"NaN", b"Inf") and _has_not_finite(texts):
        raise NotThisWay("a document has a number that is not finite")
    if decimals and _contains(data, *_DECIMAL_HINTS) and _has_odd_decimal(texts):
        raise NotThisWay("a document may have a decimal with an unusual exponent or many zeros")
    lengths = pc.binary_length(payloads)
    longest: int = pc.max(lengths).as_py()
    if longest > _LONGEST_NUMBER:
        _check_limits(texts, lengths, data)
    is_line_each = data.count(b"\n") == len(texts) - 1 and b"\r" not in data
    return Lines(data, max(_BLOCK_BYTES, longest + 2) if is_line_each else len(data) + 1)


def _contains(data: bytes, *parts: bytes) -> bool:
    # Single bytes are found much faster than longer parts, and one of them is often absent.
    return any(all(bytes([c]) in data for c in set(part)) and part in data for part in parts)


def _has_not_finite(texts: pa.StringArray) -> bool:
    suspects = texts.filter(pc.match_substring_regex(texts, _NOT_FINITE))
    outside = (_STRING.sub(b"", text.as_buffer().to_pybytes()) for text in suspects)
    return any(b"N" in rest or b"I" in rest for rest in outside)


def _has_odd_decimal(texts: pa.StringArray) -> bool:
    for text in texts.filter(pc.match_substring_regex(texts, _MAYBE_ODD_DECIMAL)):
        document = text.as_buffer().to_pybytes()
        numbers = [s for s in _STRING.findall(document) if _NUMBER_IN_STRING.fullmatch(s)]
        unescaped = [_ASCII_ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()), s) for s in numbers]
        if any(map(_ODD_DECIMAL.search, [_STRING.sub(b"", document), *unescaped])):
            return True
    return False


def _check_limits(texts: pa.StringArray, lengths: pa.Int32Array, data: bytes) -> None:
    if _LONG_DIGITS in data.translate(_DIGITS_AS_ZERO):
        raise NotThisWay("a document may have a number of more than 1,000 characters")
    deep = texts.filter(pc.greater(lengths, 2 * _DEEPEST))
    if not len(deep):
        return
    brackets = pc.add(pc.count_substring(deep, "["), pc.count_substring(deep, "{"))
    for text in deep.filter(pc.greater_equal(brackets, _DEEPEST)):
        if _depth(text.as_buffer().to_pybytes()) >= _DEEPEST:
            raise NotThisWay("a document is nested 1,000 deep or more")
    for text in deep.filter(pc.greater(pc.binary_length(deep), _LONGEST_NAME)):
        strings = _STRING_OR_NAME.finditer(text.as_buffer().to_pybytes())
        if any(s.end() - s.start() > _LONGEST_NAME for s in strings if s[1]):
            raise NotThisWay("a document has a name of more than 50,000 characters")


def _depth(document: bytes) -> int:
    brackets = _STRING.sub(b"", document).translate(None, _NO_BRACKETS)
    return max(accumulate(1 if b in b"[{" else -1 for b in brackets))
