"""The section `source`: the tables of a job, with their columns and keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.cdc_jobs.delta_tables import find_tables, read_columns
from bridge.cdc_jobs.routes import selector_at
from bridge.cdc_jobs.source_statements import Statement
from bridge.cdc_jobs.table_ids import TableId
from bridge.config.paths import resolved_path
from bridge.config.yaml_errors import located
from bridge.config.yaml_tree import Document, Place
from bridge.ddl.cursor import nearest
from bridge.definition import PublishStart
from bridge.errors import DefinitionError, TableError, UnsupportedError
from bridge.schema import DataType

_STARTS = {"initial": "snapshot", "latest-offset": "latest"}


@dataclass(frozen=True)
class DeltaPlace:
    """Where a Delta table is, and its columns."""

    path: str
    columns: tuple[tuple[str, DataType], ...]


@dataclass(frozen=True)
class SourceTable:
    """A table of the source: a Delta table, or a topic with its CREATE TABLE."""

    id: TableId
    names: tuple[str, ...]
    """The names of its columns."""
    key: tuple[str, ...]
    """The columns that identify a row; empty if nothing says so."""
    delta: DeltaPlace | None = None
    statement: Statement | None = None

    @property
    def title(self) -> str:
        return ".".join(self.id)

    @property
    def place(self) -> str:
        """The path of the Delta table, or the topic."""
        if self.delta is not None:
            return self.delta.path
        return (self.statement.topic if self.statement is not None else None) or ""


def delta_tables(document: Document, values: Mapping[str, str], base: str) -> list[SourceTable]:
    """Returns the tables of a source of type `delta`, by id; relative paths are relative to `base`.

    Raises DefinitionError with the position for tables and columns that do not exist; TableError.
    """
    selector = (
        None if "tables" not in values else selector_at(document, ("source", "tables"), values["tables"])
    )
    place: Place = ("source", "path" if selector is None else "tables")
    try:
        found = find_tables(resolved_path(base, values["path"]), selector)
        tables = []
        for table in found:
            columns = read_columns(table.path)
            names = tuple(name for name, _ in columns)
            tables.append(SourceTable(table.id, names, (), DeltaPlace(table.path, columns)))
    except TableError as error:
        raise TableError(f"{document.where(('source', 'path'))}: {error}") from None
    except DefinitionError as error:
        raise located(document, place, error) from None
    return _keyed(document, values, tables)


def kafka_tables(
    document: Document, values: Mapping[str, str], statements: Sequence[Statement]
) -> list[SourceTable]:
    """Returns the tables of a source of type `kafka`, one for each CREATE TABLE, with the topic of each.

    Raises DefinitionError with the position for a table whose topic is not known.
    """
    topics = [topic.strip() for topic in values["topic"].split(";") if topic.strip()]
    tables = []
    for statement in statements:
        id = tuple(statement.ddl.name.split("."))
        topic = statement.topic or _topic(id, topics, len(statements))
        if topic is None:
            raise DefinitionError(
                f"{document.where(('source', 'topic'))}: which of {', '.join(topics)} is the topic of table "
                f"{statement.ddl.name}? Name it like its topic, or write WITH ('topic' = '...') behind its columns"
            )
        schema = statement.ddl.schema
        tables.append(
            SourceTable(id, schema.names, schema.primary_key, statement=replace(statement, topic=topic))
        )
    used = {t.statement.topic for t in tables if t.statement is not None}
    for topic in topics:
        if topic not in used:
            raise DefinitionError(
                f"{document.where(('source', 'topic'))}: topic '{topic}' has no table; add its CREATE TABLE, or remove "
                "the topic"
            )
    return tables


def publish_start(document: Document, values: Mapping[str, str]) -> PublishStart:
    """Returns where the publish of a Delta table begins, by `scan.startup.mode` as in Flink CDC's sources."""
    mode = values.get("scan.startup.mode", "initial")
    if mode not in _STARTS:
        raise UnsupportedError(
            f"{document.where(('source', 'scan.startup.mode'))}: '{mode}': legal values are initial (the table, "
            "then its changes) and latest-offset (changes from now on). A publish with a pipeline file begins at a "
            "version or time (publish: {start: version:N})",
            f"scan.startup.mode {mode}",
        )
    return PublishStart(_STARTS[mode])


def _topic(id: TableId, topics: Sequence[str], tables: int) -> str | None:
    if len(topics) == 1 and tables == 1:
        return topics[0]
    return next((topic for topic in topics if topic in (".".join(id), id[-1])), None)


def _keyed(document: Document, values: Mapping[str, str], tables: Sequence[SourceTable]) -> list[SourceTable]:
    """Returns the tables with the keys that `primary-keys` gives them."""
    text = values.get("primary-keys")
    if text is None:
        return list(tables)
    place: Place = ("source", "primary-keys")
    rules = []
    for item in filter(str.strip, text.split(";")):
        selector, _, columns = item.rpartition(":")
        if not selector and ":" in text:
            raise DefinitionError(
                f"{document.where(place)}: '{item.strip()}' names no table; write one list for all tables (id), or "
                "table:columns for each (shop.orders:id;shop.items:order_id,line)"
            )
        rules.append((selector_at(document, place, selector or "\\.*"), columns))
    keyed = []
    for table in tables:
        columns = next((columns for selector, columns in rules if selector.matches(table.id)), "")
        keyed.append(replace(table, key=key_columns(document, place, columns, table)))
    return keyed


def key_columns(document: Document, place: Place, text: str, table: SourceTable) -> tuple[str, ...]:
    """Returns a list of columns. Raises DefinitionError with the position for one that the table does not have."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in table.names:
            raise DefinitionError(
                f"{document.where(place)}: table {table.title} has no column `{name}`; {nearest(name, table.names)}"
            )
    return names
