"""A range of tokens that is checked on its own: a statement of a script, or the expression of a computed column."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.ddl.tokens import Cursor, Source, Token
from bridge.errors import DdlError, UnsupportedError


@dataclass(frozen=True)
class Part:
    """The tokens of one statement without its `;`, or of one expression; the last one has the kind `end`.

    Offsets of tokens are those of the source, so errors about a part name lines of the script. `column` is the computed
    column whose expression it is.
    """

    source: Source
    tokens: tuple[Token, ...]
    column: str | None = None

    @property
    def prefix(self) -> str:
        """How messages about the part begin."""
        return "" if self.column is None else f"computed column `{self.column}`: "

    def cursor(self) -> Cursor:
        """Returns a cursor at the first token."""
        return Cursor(self.source, self.tokens)

    def without(self, count: int) -> Part:
        """Returns the part after its first `count` tokens."""
        return Part(self.source, self.tokens[count:])

    def error(self, message: str, offset: int) -> DdlError:
        """Returns a DdlError at `offset`."""
        return self.source.error(f"{self.prefix}{message}", offset)

    def unsupported(self, what: str, way_out: str, offset: int) -> DdlError | UnsupportedError:
        """Returns an UnsupportedError for a script. For a computed column it is a DdlError, whose line and column
        become those of the pipeline file."""
        if self.column is None:
            return unsupported(self.source, what, way_out, offset)
        return self.error(_text(what, way_out), offset)


def unsupported(source: Source, what: str, way_out: str, offset: int) -> UnsupportedError:
    """Returns an UnsupportedError whose message starts with the position of `offset` in the script."""
    return UnsupportedError(str(source.error(_text(what, way_out), offset)), what)


def _text(what: str, way_out: str) -> str:
    return f"{what} is not supported in this version: {way_out}"
