"""Splits Flink SQL into tokens with their positions in the text, and reads the tokens of a statement by a cursor.

The grammar is that of Calcite's BTID lexer, which Flink uses: names in backquotes, strings in single quotes whose only
escape is '', comments as `--`, `//` and `/* */`. `Cursor` has the operations of a recursive-descent parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn, TypeVar

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


T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns the end of an error message: the known name most similar to `name`, or all known names."""
    names = list(known)
    folded = {n.casefold(): n for n in reversed(names)}
    close = get_close_matches(name.casefold(), folded, 1)
    if close:
        return f"did you mean `{folded[close[0]]}`?"
    return f"known names are {', '.join(f'`{n}`' for n in names)}" if names else "no names are known"


class Cursor:
    """Reads tokens from left to right; `index` may be reset to read a range again.

    `tokens`, the last of which has the kind `end`, are one statement of `source`; by default they are all of it.
    """

    def __init__(self, source: Source, tokens: Sequence[Token] | None = None) -> None:
        self.source = source
        self.tokens = tokenize(source) if tokens is None else tokens
        self.index = 0
        self.quotes_tokens = True
        """False if tokens may be parts of a secret; messages do not quote them then."""

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Raises DdlError at `token`, by default at the current token."""
        raise self.source.error(message, (token or self.token).start)

    def fail_expected(self, what: str) -> NoReturn:
        """Raises DdlError that names what was expected at the current token, and the token itself."""
        actual = str(self.token) if self.quotes_tokens or self.token.kind == "end" else "something else"
        self.fail(f"expected {what}, found {actual}")

    def peek(self, ahead: int) -> Token:
        """Returns the token `ahead` tokens after the current one; the last one if there are fewer."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *keywords: str) -> bool:
        """Returns whether the next tokens are these keywords and symbols."""
        ahead = self.tokens[self.index : self.index + len(keywords)]
        return [t.keyword for t in ahead] == list(keywords)

    def take(self, *keywords: str) -> bool:
        """Consumes these keywords and symbols if they are next; returns whether they were."""
        is_next = self.at(*keywords)
        self.index += len(keywords) if is_next else 0
        return is_next

    def expect(self, keyword: str, why: str = "") -> None:
        if not self.take(keyword):
            self.fail_expected(f"{keyword}{why}" if keyword.isalpha() else f"'{keyword}'{why}")

    def name(self, what: str) -> Token:
        """Consumes a name: quoted with backquotes, or any word; keywords are names where a name is expected."""
        if self.token.kind not in ("name", "word"):
            self.fail_expected(
                f"{what} (names with characters other than letters, digits and _ must be quoted with `...`)"
            )
        return self.next()

    def string(self, what: str) -> Token:
        if self.token.kind != "string":
            self.fail_expected(f"{what} in single quotes")
        return self.next()

    def integer(self, what: str, low: int, high: int) -> int:
        """Consumes a whole number from `low` to `high`."""
        token = self.token
        if token.kind != "number" or not token.text.isdecimal() or not low <= int(token.text) <= high:
            self.fail_expected(f"{what} from {low} to {high}")
        return int(self.next().text)

    def comma_separated(self, item: Callable[[], T], close: str = ")") -> list[T]:
        """Parses one or more items that are separated by commas, and consumes `close`."""
        items = [item()]
        while self.take(","):
            items.append(item())
        if not self.take(close):
            self.fail_expected(f"',' or '{close}'")
        return items
