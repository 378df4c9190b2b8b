"""Splits Flink SQL into tokens: words, names, strings and symbols, each with its position in the text.

The grammar is that of Calcite's BTID lexer, which Flink uses: names in backquotes, strings in single quotes whose only
escape is '', comments as `--`, `//` and `/* */`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.errors import DdlError

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
    "/*": "this comment is not closed; end it with */",
    "'": "this string is not closed; end it with ' (a quote within the string is written '')",
    "`": "this name is empty or not closed; end it with ` (a backquote within the name is written ``)",
}


@dataclass(frozen=True)
class Source:
    """The text of a statement and the name of its file."""

    text: str
    file: str

    def error(self, message: str, offset: int) -> DdlError:
        """Returns a DdlError at `offset`; lines and columns start at 1, columns count characters."""
        before = self.text[:offset]
        return DdlError(message, self.file, before.count("\n") + 1, offset - before.rfind("\n"))


@dataclass(frozen=True)
class Token:
    """`kind` is word, name, string, number, symbol or end; `text` is its value without quotes."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case or the symbol; empty for names, strings and numbers."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    def __str__(self) -> str:
        if self.kind in ("end", "string"):
            return "the end of the statement" if self.kind == "end" else "a string"
        return f"`{self.text}`" if self.kind == "name" else f"'{self.text}'"


def tokenize(source: Source) -> list[Token]:
    """Returns all tokens in order without comments, followed by a token of kind `end`.

    Raises DdlError for a string, name or comment that is not closed, and for strings with a prefix. A character that
    is not legal in Flink SQL becomes a symbol, so that the parser reports what it expected instead.
    """
    tokens = []
    for match in _PATTERN.finditer(source.text):
        kind, text, start = str(match.lastgroup), match.group(), match.start()
        if kind == "open":
            raise source.error(_OPEN[text], start)
        if kind == "coded":
            raise source.error(
                f"strings with the prefix {text[:-1]} are not supported; write the characters in '...'",
                start,
            )
        if kind in ("string", "name"):
            text = text[1:-1].replace(text[0] * 2, text[0])
        if kind != "blank":
            tokens.append(Token(kind, text, start, match.end()))
    end = len(source.text.rstrip())
    return [*tokens, Token("end", "", end, end)]
