"""Words, names, strings and symbols of Flink SQL, each with its place in the text.

Flink reads SQL with Calcite's BTID lexer: names in backquotes, strings in single quotes where only '' is
special, comments as `--`, `//` and `/* */`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.errors import DdlError

__all__ = ["Source", "Token", "tokenize"]

_PATTERN = re.compile(
    r"""
      (?P<blank>   [\s\ufeff]+ | (?:--|//)[^\r\n]* | /\*.*?\*/ )
    | (?P<coded>   (?:[uU]&|[eEnN]|_\w+)' )
    | (?P<string>  '(?:[^']|'')*'(?!') )
    | (?P<name>    `(?:[^`]|``)+`(?!`) )
    | (?P<number>  \d+(?:\.\d+)?(?:[eE][+-]?\d+)? )
    | (?P<word>    (?:[^\W\d]|\$)[\w$]* )
    | (?P<open>    /\* | ['`] )
    | (?P<symbol>  . )
    """,
    re.VERBOSE | re.DOTALL,
)

_OPEN = {
    "/*": "this comment is never closed: end it with */",
    "'": "this string is never closed: end it with ' (a quote inside is written '')",
    "`": "this name is empty or never closed: end it with ` (a backquote inside is written ``)",
}


@dataclass(frozen=True)
class Source:
    """The text and the name of the file it came from."""

    text: str
    file: str

    def error(self, message: str, offset: int) -> DdlError:
        """A DdlError that points at `offset`; lines and columns count from 1, columns in characters."""
        before = self.text[:offset]
        return DdlError(message, self.file, before.count("\n") + 1, offset - before.rfind("\n"))


@dataclass(frozen=True)
class Token:
    """`kind` is word, name, string, number, symbol or end; `text` is what it stands for, quotes removed."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case; symbols as they are; empty for names, strings and numbers."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    def __str__(self) -> str:
        if self.kind in ("end", "string"):
            return "the end of the statement" if self.kind == "end" else "a string"
        return f"`{self.text}`" if self.kind == "name" else f"'{self.text}'"


def tokenize(source: Source) -> list[Token]:
    """All tokens in order, comments left out, closed by one of kind `end`.

    Raises DdlError for a string, name or comment that is not closed, and for strings with a prefix. A
    character that Flink SQL does not know becomes a symbol: the parser says what it expected in its place.
    """
    tokens = []
    for match in _PATTERN.finditer(source.text):
        kind, text, start = str(match.lastgroup), match.group(), match.start()
        if kind == "open":
            raise source.error(_OPEN[text], start)
        if kind == "coded":
            raise source.error(
                f"strings with the prefix {text[:-1]} are not read; write the characters themselves in '...'",
                start,
            )
        if kind in ("string", "name"):
            text = text[1:-1].replace(text[0] * 2, text[0])
        if kind != "blank":
            tokens.append(Token(kind, text, start, match.end()))
    end = len(source.text.rstrip())
    return [*tokens, Token("end", "", end, end)]
