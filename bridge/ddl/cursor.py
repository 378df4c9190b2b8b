"""A position in the tokens of one statement, with the operations of a recursive-descent parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from bridge.ddl.tokens import Source, Token, tokenize

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
