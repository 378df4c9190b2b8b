"""The section `source`: the tables of a job, with their columns and keys.

Those of type `delta` have their columns from their logs, read with delta-rs: without Spark. The id of a table is its
place below `path`: `shop/orders` is `shop.orders`. If `path` is a table itself, its id is the name of its folder. The
bridge's own tables (quarantines, results of checks, states of scripts) are none of the job's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bridge.bridge_folders import QUARANTINE_SUFFIX, RESULTS_SUFFIX, SCRIPT_STATE
from bridge.cdc_jobs.routes import selector_at
from bridge.cdc_jobs.script_text import Statement
from bridge.cdc_jobs.table_ids import MOST_PARTS, TableId, TableSelector
from bridge.config.paths import is_uri, resolved_path
from bridge.config.yaml_errors import located
from bridge.config.yaml_tree import Document, Place
from bridge.ddl.tokens import nearest
from bridge.definition import PublishStart
from bridge.errors import DefinitionError, TableError, UnsupportedError
from bridge.log_layout import log_folder
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType
from bridge.store_options import file_options, misread_name

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


_SCALARS = {
    "string": ScalarType("STRING"),
    "boolean": ScalarType("BOOLEAN"),
    "binary": ScalarType("BYTES"),
    "byte": ScalarType("TINYINT"),
    "short": ScalarType("SMALLINT"),
    "integer": ScalarType("INT"),
    "long": ScalarType("BIGINT"),
    "float": ScalarType("FLOAT"),
    "double": ScalarType("DOUBLE"),
    "date": ScalarType("DATE"),
    "timestamp": ScalarType("TIMESTAMP_LTZ", (6,)),
    "timestamp_ntz": ScalarType("TIMESTAMP", (6,)),
}
"""Primitive types of the Delta protocol ("Primitive Types") as Flink's."""


@dataclass(frozen=True)
class _FoundTable:
    """A Delta table of the job, by its id and its path."""

    id: TableId
    path: str


def find_tables(path: str, selector: TableSelector | None) -> tuple[_FoundTable, ...]:
    """Returns the tables below `path` that `selector` selects, by id; without one, the table that is at `path`.

    On an object store nothing is listed, so the selector must name its tables. Raises DefinitionError, without a
    position, if there is none, and if a name that is written out has none.
    """
    if is_uri(path):
        return _named(path, selector)
    folder = Path(path)
    if _is_table(folder):
        return _one(folder, selector)
    if selector is None:
        raise DefinitionError(
            f"{path} is no Delta table; name the tables in it with `tables`: table, or schema.table for schema/table"
        )
    if not folder.is_dir():
        raise DefinitionError(f"there is no folder {path}")
    present = dict(_listed(folder, ()))
    own = {id for id in present if _is_side_table(id, present)}
    found = tuple(
        _FoundTable(id, str(place))
        for id, place in sorted(present.items())
        if selector.matches(id) and (id not in own or id in (selector.names or ()))
    )
    for name in selector.names or ():
        if not any(TableSelector.parse(".".join(name)).matches(table.id) for table in found):
            raise DefinitionError(
                f"there is no Delta table '{'.'.join(name)}' in {path}; it has {_shown(present)}"
            )
    if not found:
        raise DefinitionError(f"'{selector.text}' selects no Delta table in {path}; it has {_shown(present)}")
    return found


def read_columns(path: str) -> tuple[tuple[str, DataType], ...]:
    """Returns the columns of the newest version of a table, all nullable, as Flink's types.

    Raises TableError if there is no table or its log cannot be read, and UnsupportedError for a type that the bridge
    does not have.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    misread = None if is_uri(path) else misread_name(path)
    if misread:
        raise TableError(f"the Delta table {path} cannot be read: {misread}; give the folder another name")
    try:
        schema = json.loads(DeltaTable(path, storage_options=file_options(path)).schema().to_json())
    except (DeltaError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise TableError(f"the Delta table {path} cannot be read: {first}") from None
    columns = []
    for field in schema["fields"]:
        found = delta_type(field["type"])
        if found is None:
            what = f"column '{field['name']}' of type {json.dumps(field['type'])}"
            raise UnsupportedError(
                f"the Delta table {path}: {what} is not read or written by the bridge; leave the table out, or "
                "publish it with a pipeline file whose DDL does not have the column",
                what,
            )
        columns.append((str(field["name"]), found))
    return tuple(columns)


def delta_type(type: Any) -> DataType | None:
    """Returns a type of the Delta protocol ("Schema Serialization Format") as Flink's, nullable in all its parts; None
    for a type that the bridge does not have (VARIANT, intervals, types of databases)."""
    if isinstance(type, str):
        if type.startswith("decimal(") and type.endswith(")"):
            precision, scale = type[8:-1].split(",")
            return ScalarType("DECIMAL", (int(precision), int(scale)))
        return _SCALARS.get(type)
    if type["type"] == "array":
        element = delta_type(type["elementType"])
        return element and ArrayType(element)
    if type["type"] == "map":
        key, value = delta_type(type["keyType"]), delta_type(type["valueType"])
        return MapType(key, value) if key and value else None
    fields = [(str(field["name"]), delta_type(field["type"])) for field in type["fields"]]
    if any(t is None for _, t in fields):
        return None
    return RowType(tuple(RowField(name, t) for name, t in fields if t is not None))


def _named(path: str, selector: TableSelector | None) -> tuple[_FoundTable, ...]:
    stem = path.rstrip("/")
    if selector is None:
        return (_FoundTable((stem.rpartition("/")[2],), stem),)
    if selector.names is None:
        raise DefinitionError(
            f"'{selector.text}' is a regular expression, and {path} is an object store, which is not listed; name the "
            "tables: shop.orders, shop.items"
        )
    return tuple(_FoundTable(name, "/".join([stem, *name])) for name in selector.names)


def _one(folder: Path, selector: TableSelector | None) -> tuple[_FoundTable, ...]:
    table = _FoundTable((folder.name,), str(folder))
    if selector is not None and not selector.matches(table.id):
        raise DefinitionError(
            f"'{selector.text}' does not select '{folder.name}', the table at {folder}; remove `tables`, or let `path` "
            "name the folder above"
        )
    return (table,)


def _is_table(folder: Path) -> bool:
    return os.path.isdir(log_folder(str(folder)))


def _listed(folder: Path, above: TableId) -> Iterator[tuple[TableId, Path]]:
    with os.scandir(folder) as entries:
        folders = sorted(
            (entry.name, Path(entry.path))
            for entry in entries
            if entry.is_dir() and entry.name[0] not in "._" and entry.name != SCRIPT_STATE
        )
    for name, place in folders:
        if _is_table(place):
            yield (*above, name), place
        elif len(above) + 1 < MOST_PARTS:
            yield from _listed(place, (*above, name))


def _is_side_table(id: TableId, present: Mapping[TableId, Path]) -> bool:
    return any(
        id[-1].endswith(suffix) and (*id[:-1], id[-1].removesuffix(suffix)) in present
        for suffix in (QUARANTINE_SUFFIX, RESULTS_SUFFIX)
    )


def _shown(ids: Mapping[TableId, Path] | Sequence[TableId]) -> str:
    names = sorted(".".join(id) for id in ids)
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (", ".join(names[:10]) + more) or "none"
