"""Writes the script that a job becomes, with the place of each part in the job's file.

`read_statements` parses the CREATE TABLEs of a `kafka` source, in `ddl` or `ddl_file`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.config.ddl_text import at_yaml_position
from bridge.config.paths import resolved_path
from bridge.config.yaml_tree import Document, Place
from bridge.ddl import Ddl
from bridge.ddl.statement import parse_create_table, table_name
from bridge.ddl.tokens import Cursor, Source, Token, tokenize
from bridge.errors import DdlError, DefinitionError, OptionError, UnsupportedError
from bridge.schema import DataType, quote
from bridge.sql.parse import split
from bridge.user_files import location_of, read_text

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


@dataclass(frozen=True)
class Statement:
    """A CREATE TABLE; `topic` is that of its own WITH."""

    ddl: Ddl
    place: Place
    locate: Locate
    source: Source
    columns: tuple[int, int]
    """Where in the source its columns are, with the parentheses."""
    topic: str | None

    def write(self, script: ScriptText, name: str, options: Mapping[str, str]) -> None:
        """Adds the statement to a script, with another name and these options."""
        script.add(f"CREATE TABLE {quote(name)} ", self.place)
        script.add_original(self.source, *self.columns, self.place, self.locate)
        script.add(f" {with_options(options)};\n", ("source",))


def read_statements(document: Document, values: Mapping[str, str], base: str) -> list[Statement]:
    """Parses `ddl` or `ddl_file`, of which one is required. Raises DdlError with the position in the file that has it,
    and DefinitionError."""
    if ("ddl" in values) == ("ddl_file" in values):
        raise DefinitionError(
            f"{document.where(('source',))}: exactly one of ddl and ddl_file must be set: CREATE TABLE name (columns, "
            "PRIMARY KEY (...) NOT ENFORCED) for each table. Columns are never guessed from documents"
        )
    if "ddl" in values:
        place: Place = ("source", "ddl")
        source = Source(values["ddl"], document.file)
        found = list(
            _statements(source, place, lambda error: at_yaml_position(document, place, source.text, error))
        )
    else:
        place = ("source", "ddl_file")
        file = resolved_path(base, values["ddl_file"])
        try:
            source = Source(read_text(location_of(file)), file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise DefinitionError(
                f"{document.where(place)}: the file {file} cannot be read: {reason}"
            ) from None
        found = list(_statements(source, place, lambda error: error))
    if not found:
        raise DefinitionError(f"{document.where(place)}: there is no CREATE TABLE")
    return found


def kafka_options(values: Mapping[str, str], statement: Statement) -> dict[str, str]:
    """Returns the options in WITH of a table: those of the source."""
    format = values["value.format"]
    options = {"connector": "kafka", "topic": statement.topic or "", "format": format}
    for key, value in values.items():
        if key.startswith(("properties.", "scan.")):
            options[key] = value
        elif key.removeprefix("value.").startswith(f"{format}."):
            options[key.removeprefix("value.")] = value
    return options


def _statements(source: Source, place: Place, locate: Locate) -> Iterator[Statement]:
    try:
        for part in split(source):
            yield _statement(source, list(part.tokens), place, locate)
    except DdlError as error:
        raise locate(error) from None


def _statement(source: Source, tokens: list[Token], place: Place, locate: Locate) -> Statement:
    end = next((n for n, t in enumerate(tokens) if t.keyword == "WITH" and not _depth(tokens[:n])), None)
    last = len(tokens) - 1 if end is None else end
    with_tokens = tokenize(Source("WITH ()", ""))[:-1] if end is None else []
    c = Cursor(source, [*tokens[:-1], *with_tokens, tokens[-1]])
    ddl = parse_create_table(c)
    if c.token.kind != "end":
        c.fail_expected("';' or the end of the statement")
    for key in ddl.options:
        if key != "topic":
            raise source.error(
                f"'{key}': WITH of a table has its 'topic' only; write the other options into the section source",
                tokens[last].start,
            )
    c = Cursor(source, tokens)
    while not c.take("TABLE"):
        c.next()
    c.take("IF", "NOT", "EXISTS")
    table_name(c)
    return Statement(
        ddl, place, locate, source, (c.token.start, tokens[last - 1].end), ddl.options.get("topic")
    )


def _depth(tokens: list[Token]) -> int:
    return sum({"(": 1, ")": -1}.get(token.keyword, 0) for token in tokens)
