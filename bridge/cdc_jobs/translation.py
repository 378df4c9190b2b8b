"""Tables that are transformed, or come from topics: a script in Flink SQL, which runs as any other script does.

Each table has a CREATE TABLE, a view with the projection and the filter, and an INSERT for each table of the sink.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bridge.cdc_jobs.job import source_name
from bridge.cdc_jobs.job_settings import JobSettings
from bridge.cdc_jobs.projection import Projected, expression_names, project, slices, unescaped
from bridge.cdc_jobs.publishes import require_key
from bridge.cdc_jobs.references import References
from bridge.cdc_jobs.routes import Routed
from bridge.cdc_jobs.script_text import Locate, ScriptText, create_table, literal
from bridge.cdc_jobs.sinks import JobSinks
from bridge.cdc_jobs.source_statements import kafka_options
from bridge.cdc_jobs.table_ids import TableId
from bridge.cdc_jobs.transforms import Transformed
from bridge.config.ddl_text import at_yaml_position
from bridge.config.yaml_tree import Document, Place
from bridge.ddl.tokens import Source, tokenize
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
                parts = slices(filter, tokenize(filter)[:-1], one.table.id)
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
