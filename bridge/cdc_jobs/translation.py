"""Tables that are transformed, or come from topics: a script in Flink SQL, which runs as any other script does.

Each table has a CREATE TABLE, a view with the projection and the filter, and an INSERT for each table of the sink.

Of `projection` and `filter` of a transform rule, only what SQL does not have is done here: `\\*`, a computed column
that takes the place of a column with its name, and the metadata fields `__table_name__` and the like, which are
constants of a table. Expressions stay as they are written; `sql` analyses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bridge.cdc_jobs.job import source_name
from bridge.cdc_jobs.job_settings import JobSettings
from bridge.cdc_jobs.publishes import require_key
from bridge.cdc_jobs.references import References
from bridge.cdc_jobs.routes import Routed
from bridge.cdc_jobs.script_text import Locate, ScriptText, create_table, kafka_options, literal
from bridge.cdc_jobs.sinks import JobSinks
from bridge.cdc_jobs.table_ids import TableId
from bridge.cdc_jobs.transforms import Transformed
from bridge.config.ddl_text import at_yaml_position
from bridge.config.yaml_tree import Document, Place
from bridge.ddl.tokens import Source, Token, nearest, tokenize
from bridge.definition import PublishStart
from bridge.errors import DdlError, DefinitionError, UnsupportedError
from bridge.schema import DataType, quote
from bridge.sql import Script, load_script
from bridge.sql.script import view_columns

_Target = tuple[Transformed, Routed, str]


def translated_script(
    document: Document,
    references: References,
    source: Mapping[str, str],
    sinks: JobSinks,
    settings: JobSettings,
    targets: Sequence[_Target],
    start: PublishStart,
) -> Script:
    """Returns the script of the tables in `targets`, each with its route and topic.

    Raises what `load_script` raises, with the position in the job's file: of an expression, or of the section or option
    that a part of the script comes from.
    """
    return _Translation(document, references, sinks).script(source, settings, targets, start)


class _Translation:
    def __init__(self, document: Document, references: References, sinks: JobSinks) -> None:
        self.document, self.references, self.sinks = document, references, sinks
        self.text = ScriptText(document)

    def script(
        self,
        source: Mapping[str, str],
        settings: JobSettings,
        targets: Sequence[_Target],
        start: PublishStart,
    ) -> Script:
        self.text.add(f"SET 'pipeline.name' = {literal(_plain(settings.name))};\n", ("pipeline", "name"))
        for key, value in (
            ("bridge.state", settings.state and _plain(settings.state)),
            ("bridge.step-timeout", settings.step_timeout),
            ("bridge.bad-records", settings.bad_records),
        ):
            if value is not None:
                self.text.add(f"SET '{key}' = {literal(value)};\n", ("pipeline", key))
        tables = {one.table.id: one for one, _, _ in targets}
        for one in tables.values():
            require_key(self.document, self.sinks, one)
            self._create_source(one, source, start)
            self._create_view(one)
        types = self._types({_view(id): one for id, one in tables.items()})
        for one, route, topic in targets:
            self._insert(one, route, topic, types[_view(one.table.id)])
        try:
            script = load_script(
                self.document.file,
                text=self.text.text,
                environ=self.references.environ,
                secrets=self.references.secrets,
            )
        except DefinitionError as error:
            raise self.text.located(error) from None
        written = {".".join(route.sink): (route.sink, one.key) for one, route, _ in targets}
        return replace(
            script,
            tables=tuple(
                replace(t, topic=self.sinks.written(t.topic, *written[t.name]))
                if t.topic is not None and t.name in written
                else t
                for t in script.tables
            ),
        )

    def _create_source(self, one: Transformed, source: Mapping[str, str], start: PublishStart) -> None:
        table, name = one.table, _source(one.table.id)
        if table.statement is not None:
            table.statement.write(self.text, name, kafka_options(source, table.statement))
            return
        assert table.delta is not None
        if start.mode != "snapshot":
            place: Place = ("source", "scan.startup.mode")
            raise UnsupportedError(
                f"{self.document.where(place)}: a table with a projection or filter is read whole; the legal value is "
                "initial",
                "scan.startup.mode with a transform",
            )
        options = {"connector": "delta", "path": _plain(table.delta.path)}
        self.text.add(f"{create_table(name, table.delta.columns, one.key, options)};\n", ("source",))

    def _create_view(self, one: Transformed) -> None:
        """Adds the view of a table. A filter may name computed columns, so they come in a view before it."""
        columns = self._projected(one)
        view, source = _view(one.table.id), _source(one.table.id)
        filter, names = self._filter(one)
        computed = [column.name for column in columns if column.expression]
        if filter is None or not names & set(computed):
            self._select(one, view, columns, source, filter)
            return
        for name in names & set(computed) & set(one.table.names):
            place: Place = (*one.place, "filter")
            raise DefinitionError(
                f"{self.document.where(place)}: `{name}` is a column of the table and a computed column of the "
                "projection; give the computed column another name"
            )
        others = [Projected(name) for name in one.table.names if name not in {c.name for c in columns}]
        inner = f"computed_{view}"
        self._select(one, inner, [*columns, *others], source, None)
        self._select(one, view, [Projected(column.name) for column in columns], inner, filter)

    def _projected(self, one: Transformed) -> Sequence[Projected]:
        if one.rule is None or one.rule.projection is None:
            return [Projected(name) for name in one.table.names]
        place: Place = (*one.place, "projection")
        try:
            return project(Source(one.rule.projection, self.document.file), one.table.names, one.table.id)
        except DdlError as error:
            raise self._locate(place, one.rule.projection)(error) from None

    def _filter(self, one: Transformed) -> tuple[Source | None, set[str]]:
        if one.rule is None or one.rule.filter is None:
            return None, set()
        source, place = Source(one.rule.filter, self.document.file), (*one.place, "filter")
        try:
            names = expression_names(source)
        except DdlError as error:
            raise self._locate(place, source.text)(error) from None
        if len(tokenize(source)) == 1:
            raise DefinitionError(f"{self.document.where(place)}: it is empty; set a value")
        return source, names

    def _select(
        self, one: Transformed, view: str, columns: Sequence[Projected], source: str, filter: Source | None
    ) -> None:
        place: Place = one.place
        if one.rule is not None and one.rule.projection is not None:
            place = (*one.place, "projection")
        self.text.add(f"CREATE VIEW {quote(view)} AS SELECT ", place)
        for number, column in enumerate(columns):
            self.text.add(", " if number else "", place)
            if column.expression and one.rule is not None and one.rule.projection is not None:
                text = unescaped(Source(one.rule.projection, self.document.file))
                self._expression(text, column.expression, place, one)
                self.text.add(" AS ", place)
            self.text.add(quote(column.name), place)
        self.text.add(f" FROM {quote(source)}", place)
        if filter is not None:
            place = (*one.place, "filter")
            self.text.add(" WHERE ", place)
            try:
                parts = _slices(filter, tokenize(filter)[:-1], one.table.id)
            except DdlError as error:
                raise self._locate(place, filter.text)(error) from None
            self._expression(filter, parts, place, one)
        self.text.add(";\n", place)

    def _expression(
        self, source: Source, parts: Sequence[tuple[int, int] | str], place: Place, one: Transformed
    ) -> None:
        for part in parts:
            if isinstance(part, str):
                self.text.add(part, place)
            else:
                self.text.add_original(source, *part, place, self._locate(place, source.text))

    def _locate(self, place: Place, text: str) -> Locate:
        return lambda error: at_yaml_position(self.document, place, text, error)

    def _types(self, views: Mapping[str, Transformed]) -> Mapping[str, tuple[tuple[str, DataType], ...]]:
        """Returns the columns of the views. Raises DefinitionError for one whose type only Spark can derive."""
        try:
            found = view_columns(
                self.document.file,
                self.text.text,
                environ=self.references.environ,
                secrets=self.references.secrets,
            )
        except DefinitionError as error:
            raise self.text.located(error) from None
        types = {}
        for name, one in views.items():
            columns = []
            for column in found[name]:
                if column.type is None:
                    place: Place = (*one.place, "projection")
                    raise DefinitionError(
                        f"{self.document.where(place)}: the type of `{column.name}` is not known before Spark runs; "
                        f"write CAST(... AS type) AS {column.name}"
                    )
                columns.append((column.name, column.type))
            types[name] = tuple(columns)
        return types

    def _insert(
        self, one: Transformed, route: Routed, topic: str, columns: Sequence[tuple[str, DataType]]
    ) -> None:
        names = [name for name, _ in columns]
        missing = [name for name in one.key if name not in names]
        if missing:
            place: Place = (*one.place, "projection")
            raise DefinitionError(
                f"{self.document.where(place)}: it leaves out `{missing[0]}`, which is in the key of "
                f"table {one.table.title}, ({', '.join(one.key)}); add it"
            )
        sink = ".".join(route.sink)
        options = self.sinks.options(route.sink, topic, one.key)
        self.text.add(f"{create_table(sink, columns, one.key, options)};\n", ("sink",))
        listed = ", ".join(map(quote, names))
        self.text.add(
            f"INSERT INTO {quote(sink)} SELECT {listed} FROM {quote(_view(one.table.id))};\n", one.place
        )


def _plain(text: str) -> str:
    """Returns a text in which the script finds no references."""
    return text.replace("${", "$${")


def _source(id: TableId) -> str:
    return source_name(".".join(id))


def _view(id: TableId) -> str:
    return f"transform_{'.'.join(id)}"


_Slice = tuple[int, int] | str
"""A part of an expression: where it is in the text, or a text that takes its place."""

_METADATA = ("__namespace_name__", "__schema_name__", "__table_name__")


@dataclass(frozen=True)
class Projected:
    """A column of the projection; without an expression it is the table's column of that name."""

    name: str
    expression: tuple[_Slice, ...] = ()


def project(source: Source, columns: Sequence[str], table: TableId) -> tuple[Projected, ...]:
    """Returns the columns that a projection selects of a table with `columns`, in the order of Flink CDC.

    A column that is named again replaces the one before, in its place. Raises DdlError in `source` for a column that
    the table does not have, and for an expression without a name.
    """
    source = unescaped(source)
    found: dict[str, Projected] = {}
    for item in _items(source):
        if len(item) == 1 and item[0].keyword == "*":
            found |= {name: found.get(name, Projected(name)) for name in columns}
            continue
        column = _column(source, item, columns, table)
        found[column.name] = column
    return tuple(found.values())


def unescaped(source: Source) -> Source:
    """Returns the text with `*` for `\\*`, which YAML would read as an alias; a blank keeps the positions.

    Strings, quoted names and comments stay as they are. Raises DdlError for one that is not closed.
    """
    tokens, text = tokenize(source), source.text
    for escape, star in pairwise(tokens):
        if (escape.keyword, star.keyword) == ("\\", "*") and escape.end == star.start:
            text = f"{text[: escape.start]} {text[escape.end :]}"
    return Source(text, source.file)


def _slices(source: Source, tokens: Sequence[Token], table: TableId) -> tuple[_Slice, ...]:
    """Returns the text of the tokens, with the metadata fields of the table as strings in it.

    Raises DdlError for `__data_event_type__`.
    """
    parts: list[_Slice] = []
    begin = tokens[0].start
    names = dict(zip(_METADATA, ["", "", *table][-3:], strict=True))
    for token in tokens:
        if token.text == "__data_event_type__" and token.kind in ("word", "name"):
            raise source.error(
                "__data_event_type__ is not a part of a row: a row may be computed again, and is the same then; the "
                "kind of a change is in the messages of debezium-json (op) and canal-json (type)",
                token.start,
            )
        if token.text in names and token.kind in ("word", "name"):
            text = names[token.text].replace("'", "''")
            parts += [(begin, token.start), f"'{text}'"]
            begin = token.end
    parts.append((begin, tokens[-1].end))
    return tuple(part for part in parts if isinstance(part, str) or part[0] < part[1])


def expression_names(source: Source) -> set[str]:
    """Returns the words of an expression that may be columns."""
    return {token.text for token in tokenize(source) if token.kind in ("word", "name")}


def _items(source: Source) -> Iterator[list[Token]]:
    """Yields the tokens of each item of the list; commas in parentheses separate arguments."""
    item: list[Token] = []
    depth = 0
    for token in tokenize(source):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.keyword, 0)
        if token.kind == "end" or (token.keyword == "," and depth == 0):
            if not item:
                raise source.error("a column is missing here; remove the comma, or name one", token.start)
            yield item
            item = []
        else:
            item.append(token)


def _column(source: Source, item: Sequence[Token], columns: Sequence[str], table: TableId) -> Projected:
    first = item[0]
    if len(item) == 1 and first.kind in ("word", "name") and first.text not in _METADATA:
        if first.text not in columns:
            raise source.error(
                f"table {'.'.join(table)} has no column `{first.text}`; {nearest(first.text, columns)}",
                first.start,
            )
        return Projected(first.text)
    if len(item) < 3 or item[-2].keyword != "AS" or item[-1].kind not in ("word", "name"):
        raise _unnamed(source, first)
    name = item[-1].text
    if name.startswith("__"):
        raise source.error(
            f"column `{name}`: names that start with two underscores are reserved for the bridge; choose another",
            item[-1].start,
        )
    return Projected(name, _slices(source, item[:-2], table))


def _unnamed(source: Source, token: Token) -> DdlError:
    return source.error(
        "an expression needs a name: UPPER(name) AS upper_name; legal are \\*, columns, and expression AS name",
        token.start,
    )
