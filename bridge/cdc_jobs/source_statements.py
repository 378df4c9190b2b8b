"""The CREATE TABLEs of a source of type `kafka`, in `ddl` or `ddl_file`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bridge.cdc_jobs.script_text import Locate, ScriptText, with_options
from bridge.config.ddl_text import at_yaml_position
from bridge.config.paths import resolved_path
from bridge.config.yaml_tree import Document, Place
from bridge.ddl import Ddl
from bridge.ddl.cursor import Cursor
from bridge.ddl.statement import parse_create_table, table_name
from bridge.ddl.tokens import Source, Token, tokenize
from bridge.errors import DdlError, DefinitionError
from bridge.schema import quote
from bridge.sql.parse import split
from bridge.user_files import location_of, read_text


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
        found = list(_statements(source, place, _in_yaml(document, place, source)))
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


def _in_yaml(document: Document, place: Place, source: Source) -> Locate:
    return lambda error: at_yaml_position(document, place, source.text, error)


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
