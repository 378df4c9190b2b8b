"""Patterns that must be constants: regular expressions, and formats of times.

A pattern that Java does not take would fail the batch in Spark; Flink gives NULL for it, which nobody wants.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from bridge.expressions.template import BRANCHES, Refusal

_JAVA_ONLY = [
    (r"\\[pP]\{\w+\}", "x"),
    (r"\(\?<(?=[a-zA-Z])", "(?P<"),
    (r"\\[hRX]", "x"),
    (r"([*+?}])\+", r"\1"),
]
_LETTERS = frozenset("yMdHhmsSEaGDkKzXZ")
_ONLY_WRITTEN = frozenset("DEY")
"""Letters of what no time is read from."""
_WEEK_YEAR = re.compile("Y+")
_DIGITS = {"y": 6, "M": 4, "d": 6, "H": 9, "m": 9, "s": 9, "S": 10}
"""How many digits of a field are read, so that no date leaves Spark's range."""


class Regex:
    """A constant regular expression of Java."""

    def __init__(self, text: str) -> None:
        read = text
        for pattern, replacement in _JAVA_ONLY:
            read = re.sub(pattern, replacement, read)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about sets in sets, which Java has
                self._tree = parser.parse(read)
        except (re.error, OverflowError, RecursionError) as error:
            raise Refusal(f"{text!r} is no regular expression: {error}") from None
        self.text = text

    @property
    def groups(self) -> int:
        return int(self._tree.state.groups) - 1

    def may_be_absent(self, group: int) -> bool:
        """Returns whether a match may leave the group out, as it is optional or an alternative."""
        return any(optional for number, optional, _ in _groups(self._tree, False) if number == group)

    def may_be_empty(self, group: int) -> bool:
        """Returns whether the group may match an empty text; 0 is the whole match."""
        if group == 0:
            return bool(self._tree.getwidth()[0] == 0)
        return any(least == 0 for number, _, least in _groups(self._tree, False) if number == group)


def regex(text: str | None) -> Regex:
    """Returns a constant pattern. Raises Refusal for others, and for what is no regular expression."""
    if text is None:
        raise Refusal(
            "the regular expression must be a constant text, as Spark stops at one that Java does not take, where "
            f"Flink gives NULL; {BRANCHES}"
        )
    return Regex(text)


def date_segments(pattern: str | None, *, parses: bool) -> list[tuple[str, bool]]:
    """Returns the parts of a constant format of times, and whether each is the year of the week (`YYYY`).

    Raises Refusal for letters that Spark's formats do not have; `parses`: a text is read, from which Spark takes no day
    of the week or of the year.
    """
    if pattern is None:
        raise Refusal(
            f"the format of a time must be a constant text, as it is translated before the run; {BRANCHES}"
        )
    parts: list[tuple[str, bool]] = []
    for index, piece in enumerate(re.split(r"('[^']*')", pattern)):
        if index % 2:
            parts.append((piece, False))
            continue
        letters = {c for c in piece if c.isalpha()}
        unknown = sorted((letters - _LETTERS - {"Y"}) | (letters & _ONLY_WRITTEN if parses else set()))
        if unknown or "'" in piece:
            what = ", ".join(unknown or ["'"])
            raise Refusal(f"the format {pattern!r} of a time has {what}, which is not supported")
        at = 0
        for match in _WEEK_YEAR.finditer(piece):
            parts += [(piece[at : match.start()], False), ("y" * len(match.group()), True)]
            at = match.end()
        parts.append((piece[at:], False))
    return [(text, is_week) for text, is_week in parts if text]


@dataclass(frozen=True)
class Prefix:
    """A regular expression of the texts that are, or begin, as a format says, and the letter of each of its groups."""

    regex: str
    letters: tuple[str, ...]


def prefix(pattern: str) -> Prefix | None:
    """Returns how Java's SimpleDateFormat reads a text: numbers of any length, and whatever follows the last one.

    None for a format that has other fields than numbers. Raises Refusal for a year of two digits, whose century Flink
    takes from the clock.
    """
    texts = [m.group() for m in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']", pattern)]
    if {"y", "yy"} & set(texts):
        raise Refusal(
            f"the format {pattern!r} has a year of two digits, whose century depends on the clock in Flink; write yyyy"
        )
    letters = [text[0] for text in texts if text[0].isalpha()]
    is_named = any(text.startswith("MMM") for text in texts)
    if "''" in texts or is_named or not letters or not set(letters) <= set(_DIGITS):
        return None
    made = "^"
    for text, following in zip(texts, [*texts[1:], ""], strict=True):
        if not text[0].isalpha():
            made += re.escape(text.strip("'"))
        elif following[:1].isalpha():
            made += _abutting(len(text))
        else:
            made += rf"[ \t]*+(-?[0-9]{{1,{_DIGITS[text[0]]}}}+)(?![0-9])"
    return Prefix(made, tuple(letters)) if len(set(letters)) == len(letters) else None


def _abutting(width: int) -> str:
    """A number that another one follows at once: it is read within so many characters, and may end before."""
    ways = []
    for spaces in range(width):
        left = width - spaces
        negative = [rf"-[0-9]{{1,{left - 1}}}+"] if left > 1 else []
        ways += [rf"[ \t]{{{spaces}}}{number}" for number in (*negative, rf"[0-9]{{1,{left}}}+")]
    return rf"(?=[\s\S]{{{width}}})({'|'.join(ways)})"


def exact(pattern: str) -> Prefix | None:
    """Returns the texts that are as long as the fields of a format of DateTimeFormatter say; None for a format with
    other fields than numbers, or without a day."""
    texts = [m.group() for m in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']", pattern)]
    fields = [text for text in texts if text[0].isalpha()]
    letters = "".join(text[0] for text in fields)
    is_whole = sorted(letters, key="yMdHmsS".find) == list("yMdHmsS"[: len(letters)])
    if "''" in texts or not is_whole or len(letters) < 3 or "yyyy" not in fields:
        return None
    made = "^"
    for text, following in zip(texts, [*texts[1:], ""], strict=True):
        if not text[0].isalpha():
            made += re.escape(text.strip("'"))
        elif text[0] in "yS" or len(text) == 2:
            made += rf"([0-9]{{{len(text)}}})"
        elif len(text) == 1 and not following[:1].isalpha():
            made += "([0-9]{1,2})"
        else:
            return None
    return Prefix(f"{made}$", tuple(letters))


def _groups(tree: Any, optional: bool) -> Iterator[tuple[int, bool, int]]:
    """The number of each group, whether it may be left out, and the least length of its text."""
    for code, argument in tree:
        if code is codes.SUBPATTERN:
            number, inner = argument[0], argument[3]
            if number is not None:
                yield number, optional, inner.getwidth()[0]
            yield from _groups(inner, optional)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None)):
            yield from _groups(argument[2], optional or argument[0] == 0)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from _groups(branch, True)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _groups(argument[1], True)
        elif code is getattr(codes, "ATOMIC_GROUP", None):
            yield from _groups(argument, optional)
