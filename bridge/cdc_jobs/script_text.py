"""The text of a script that a job becomes, which knows where in the job's file each part of it comes from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.config.yaml_tree import Document, Place
from bridge.ddl.tokens import Source
from bridge.errors import DdlError, DefinitionError, OptionError, UnsupportedError
from bridge.schema import DataType, quote

Locate = Callable[[DdlError], DdlError]
"""Turns an error with a position in a text of the job into one with its position in the file."""


_OWN_NAMES = re.compile(r"`(?:computed_)?(?:source|transform)_([^`]+)`")
"""Names as the script gives them to its tables and views; see `translation`."""


@dataclass(frozen=True)
class _Piece:
    start: int
    place: Place
    original: Source | None = None
    offset: int = 0
    locate: Locate | None = None


@dataclass
class ScriptText:
    """A script that grows at its end. `file` is the name of the job's file."""

    document: Document
    text: str = ""
    pieces: list[_Piece] = field(default_factory=list)

    def add(self, text: str, place: Place) -> None:
        """Adds a text that is about `place`, which errors name."""
        self.pieces.append(_Piece(len(self.text), place))
        self.text += text

    def add_original(self, original: Source, start: int, end: int, place: Place, locate: Locate) -> None:
        """Adds a part of a text that the job has; errors have their position in it."""
        self.pieces.append(_Piece(len(self.text), place, original, start, locate))
        self.text += original.text[start:end]

    def located(self, error: DefinitionError) -> DefinitionError:
        """Returns an error about the script as one of the same class about the job's file."""
        message, line, column = self._position(error)
        if line == 0:
            return error
        message = _OWN_NAMES.sub(self._own_name, message)
        before = self.text.split("\n")
        offset = sum(len(text) + 1 for text in before[: line - 1]) + column - 1
        piece = self.pieces[max(0, bisect_right([p.start for p in self.pieces], offset) - 1)]
        if piece.original is None or piece.locate is None:
            key = re.search(r"(?:^|: )'([\w.-]+)'", message)
            place = self._option(piece.place, key[1] if key else None)
            found: DefinitionError = DefinitionError(f"{self.document.where(place)}: {message}")
        else:
            found = piece.locate(piece.original.error(message, piece.offset + offset - piece.start))
        if isinstance(error, UnsupportedError):
            return UnsupportedError(str(found), error.what)
        if isinstance(error, OptionError):
            return OptionError(str(found))
        return found

    def option_error(self, error: DefinitionError, place: Place) -> DefinitionError:
        """Returns an error about an option, which it begins with, at that option in the section `place`."""
        key = re.match(r"'([\w.-]+)'", str(error))
        where = self.document.where(self._option(place, key[1] if key else None))
        if isinstance(error, UnsupportedError):
            return UnsupportedError(f"{where}: {error}", error.what)
        return OptionError(f"{where}: {error}")

    def _own_name(self, name: re.Match[str]) -> str:
        """Returns a name without what only the script has before it; a user's column may begin with the same."""
        is_own = any(f"CREATE {what} {name[0]} " in self.text for what in ("TABLE", "VIEW"))
        return f"`{name[1]}`" if is_own else name[0]

    def _position(self, error: DefinitionError) -> tuple[str, int, int]:
        if isinstance(error, DdlError):
            return error.message, error.line, error.column
        found = re.match(rf"{re.escape(self.document.file)}:(\d+):(\d+): ", str(error))
        return ("", 0, 0) if found is None else (str(error)[found.end() :], int(found[1]), int(found[2]))

    def _option(self, place: Place, key: str | None) -> Place:
        """Returns the place of an option that a message begins with, if the section has it."""
        for spelled in () if key is None else (key, key.removeprefix("value."), f"value.{key}"):
            if (*place, spelled) in self.document.nodes:
                return (*place, spelled)
        return place


def create_table(
    name: str, columns: Sequence[tuple[str, DataType]], key: Sequence[str], options: Mapping[str, str]
) -> str:
    """Returns a CREATE TABLE in Flink SQL."""
    elements = [f"{quote(column)} {type.flink()}" for column, type in columns]
    if key:
        elements.append(f"PRIMARY KEY ({', '.join(map(quote, key))}) NOT ENFORCED")
    return f"CREATE TABLE {quote(name)} ({', '.join(elements)}) {with_options(options)}"


def with_options(options: Mapping[str, str]) -> str:
    """Returns WITH and the options."""
    return f"WITH ({', '.join(f'{literal(k)} = {literal(v)}' for k, v in options.items())})"


def literal(text: str) -> str:
    """Returns a text as a string of Flink SQL."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
