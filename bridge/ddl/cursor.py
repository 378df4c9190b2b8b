"""A place in the tokens of one statement, and the few moves a parser makes from there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from bridge.ddl.tokens import Source, Token, tokenize

__all__ = ["Cursor", "nearest"]

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the known name that is most like `name`, or all of them."""
    names = list(known)
    folded = {n.casefold(): n for n in reversed(names)}
    close = get_close_matches(name.casefold(), folded, 1)
    if close:
        return f"did you mean `{folded[close[0]]}`?"
    return f"known are: {', '.join(f'`{n}`' for n in names) or 'none'}"


class Cursor:
    """Reads tokens from left to right; `index` may be set back to read a range again."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.index = 0
        self.quotes_tokens = True
        """False where a token may be a piece of a secret: messages then do not repeat it."""

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise DdlError at `token`, or where the cursor stands."""
        raise self.source.error(message, (token or self.token).start)

    def fail_expected(self, what: str) -> NoReturn:
        """Raise DdlError: `what` should stand here, and what does."""
        found = str(self.token) if self.quotes_tokens or self.token.kind == "end" else "something else"
        self.fail(f"expected {what}, found {found}")

    def peek(self, ahead: int) -> Token:
        """The token `ahead` of this one; the last one if there are not so many."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *keywords: str) -> bool:
        """Whether the next tokens are these words and symbols."""
        ahead = self.tokens[self.index : self.index + len(keywords)]
        return [t.keyword for t in ahead] == list(keywords)

    def take(self, *keywords: str) -> bool:
        """Step over these words and symbols if they are next."""
        is_next = self.at(*keywords)
        self.index += len(keywords) if is_next else 0
        return is_next

    def expect(self, keyword: str, why: str = "") -> None:
        if not self.take(keyword):
            self.fail_expected(f"{keyword}{why}" if keyword.isalpha() else f"'{keyword}'{why}")

    def name(self, what: str) -> Token:
        """A name: backquoted, or any bare word (keywords included: the place makes them names)."""
        if self.token.kind not in ("name", "word"):
            self.fail_expected(f"{what} (names of other characters than letters, digits and _ go in `...`)")
        return self.next()

    def string(self, what: str) -> Token:
        if self.token.kind != "string":
            self.fail_expected(f"{what} in single quotes")
        return self.next()

    def integer(self, what: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        token = self.token
        if token.kind != "number" or not token.text.isdecimal() or not low <= int(token.text) <= high:
            self.fail_expected(f"{what} from {low} to {high}")
        return int(self.next().text)

    def comma_separated(self, item: Callable[[], T], close: str = ")") -> list[T]:
        """One or more items with commas between, up to and over `close`."""
        items = [item()]
        while self.take(","):
            items.append(item())
        if not self.take(close):
            self.fail_expected(f"',' or '{close}'")
        return items
