"""Resolves a CREATE TABLE of a script into a Table: its connector, and which changes it gives and takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from typing import Any

from bridge.config import refuse_topic, resolve_topic
from bridge.config.change_semantics import (
    POSITION,
    column_rules,
    delete_condition,
    ignored_nulls,
    naming_column,
    refuse_ignored_name,
    refuse_unfit_first_row,
    refuse_unfit_rules,
    refuse_unfit_truncates,
    sequence_columns,
    sequence_metadata,
)
from bridge.config.definition_warnings import warnings
from bridge.config.documents import refuse_unfit_documents
from bridge.config.paths import resolved_path
from bridge.config.rules import check_columns
from bridge.config.topic import table_id_headers
from bridge.config.unsupported import refuse_key
from bridge.config.validators import check_ignored_nulls, check_interval, check_sequence
from bridge.ddl import Ddl
from bridge.definition import DeltaTarget, Topic, Truncate
from bridge.errors import OptionError
from bridge.options import FORMATS
from bridge.options.kinds import BOOLEAN, STRING, duration_ms
from bridge.options.model import KAFKA, UPSERT, Option
from bridge.options.scan import IDLE_TIMEOUT
from bridge.schema import Column, MetadataColumn, PhysicalColumn
from bridge.secret import Secret


class Connector(str, Enum):
    """The connectors of a script."""

    UPSERT_KAFKA = UPSERT
    KAFKA = KAFKA
    DELTA = "delta"
    PRINT = "print"
    BLACKHOLE = "blackhole"


@dataclass(frozen=True)
class Table:
    """A table of a script. Exactly one of `topic` and `delta` is set, or none for `print` and `blackhole`."""

    name: str
    ddl: Ddl
    connector: Connector
    topic: Topic | None = None
    delta: DeltaTarget | None = None
    idle_timeout_ms: int = 0
    """Time without rows after which a partition no longer holds the watermark back; 0 is never."""
    warnings: tuple[str, ...] = ()
    proctime: tuple[str, ...] = ()
    """Columns AS PROCTIME() in the script, which the table does not have."""
    changes: DeltaTarget = field(default_factory=DeltaTarget)
    """How the changes of a topic are applied to the table that keeps its rows; names no table."""

    @property
    def key(self) -> tuple[str, ...]:
        """The PRIMARY KEY in its order; empty without one."""
        return self.ddl.schema.primary_key

    @property
    def is_source(self) -> bool:
        return self.topic is not None or self.delta is not None

    @property
    def is_updating(self) -> bool:
        """True if the table as a source has updates and deletes: an upsert topic, a CDC format, a table with a key."""
        return bool(self.key) or (self.topic is not None and not FORMATS[self.topic.value.name].insert_only)

    @property
    def accepts_updates(self) -> bool:
        """True if the table as a sink takes updates and deletes, and not inserts only."""
        return self.is_updating or self.connector in (Connector.PRINT, Connector.BLACKHOLE)

    @property
    def sink_columns(self) -> tuple[PhysicalColumn | MetadataColumn, ...]:
        """The columns that an INSERT writes: all except computed and VIRTUAL ones, in the order of the DDL."""
        return tuple(c for c in self.ddl.schema if _is_written(c))  # type: ignore[misc]

    @property
    def masked_options(self) -> Mapping[str, str]:
        """The options in WITH, of which secret ones are `Secret`."""
        return self.topic.options if self.topic is not None else self.ddl.options

    @property
    def place(self) -> str:
        """Where the rows are: the topics, or the path or name of the Delta table; empty for `print`."""
        if self.topic is not None:
            return self.topic.title
        return str(self.delta or "")

    @property
    def written_place(self) -> str:
        """`place` as the script writes it, which stays the same when the script is moved with its tables."""
        options = self.ddl.options
        return options.get("path") or options.get("table-path") or self.place


_DELTA = (
    Option("path", STRING, "Path of the Delta table, relative to the script."),
    Option("table-path", STRING, "The name of `path` in Delta's connector for Flink."),
    Option("table", STRING, "Name of the Delta table: table, schema.table or catalog.schema.table."),
    Option("delta.*", STRING, "A property of the Delta table, set when the bridge creates it."),
)
_PRINT = (
    Option("print-identifier", STRING, "Text before every row."),
    Option("standard-error", BOOLEAN, "Print to standard error.", default="false"),
)
_OPTIONS: dict[Connector, tuple[Option[Any], ...]] = {
    Connector.DELTA: _DELTA,
    Connector.PRINT: _PRINT,
    Connector.BLACKHOLE: (),
}


def resolve_table(ddl: Ddl, base: str, idle_timeout_ms: int = 0) -> Table:
    """Checks all options of the table, whose references are substituted, and applies all defaults; that of the idle
    timeout is `idle_timeout_ms`.

    Raises OptionError and UnsupportedError, with the messages of a pipeline file and without a position; no message
    quotes a secret.
    """
    connector = _connector(ddl.options)
    if connector in (Connector.UPSERT_KAFKA, Connector.KAFKA):
        topic = resolve_topic(ddl)
        refuse_topic(topic)
        refuse_unfit_documents(topic)
        idle_ms = topic.idle_timeout_ms if IDLE_TIMEOUT.key in ddl.options else idle_timeout_ms
        sink = replace(topic.sink, headers=table_id_headers(None, topic))
        topic = replace(topic, sink=sink, idle_timeout_ms=idle_ms)
        return Table(ddl.name, ddl, connector, topic, None, idle_ms, tuple(warnings(topic)))
    _check_options(ddl.options, connector)
    _check_columns(ddl, connector)
    delta = _delta(ddl.options, base) if connector is Connector.DELTA else None
    return Table(ddl.name, ddl, connector, delta=delta, idle_timeout_ms=idle_timeout_ms)


SEQUENCE_BY, DELETE_MEMORY = "bridge.sequence-by", "bridge.delete-memory"
APPLY_AS_DELETE, IGNORE_NULLS = "bridge.apply-as-delete", "bridge.ignore-null-updates"
HISTORY = "bridge.history"
_TRUNCATE, _APPLY_AS_TRUNCATE = "bridge.truncate", "bridge.apply-as-truncate"
_UPDATE_COLUMNS, _AGGREGATE = "bridge.update-columns", "bridge.aggregate"
_SOFT_DELETE, _FIRST_ROW, _IGNORE_DELETE = "bridge.soft-delete", "bridge.first-row", "bridge.ignore-delete"
CHANGE_OPTIONS = (
    SEQUENCE_BY,
    DELETE_MEMORY,
    APPLY_AS_DELETE,
    IGNORE_NULLS,
    _SOFT_DELETE,
    _TRUNCATE,
    _APPLY_AS_TRUNCATE,
    _FIRST_ROW,
    _IGNORE_DELETE,
    _UPDATE_COLUMNS,
    _AGGREGATE,
    HISTORY,
)
"""Options of tables of topics, as the keys of `delta` in a pipeline file; `;` separates columns."""


def with_change_options(table: Table, options: Mapping[str, str]) -> Table:
    """Returns the table with its CHANGE_OPTIONS, which `options` holds alone. Raises OptionError and DdlError."""
    for key, value in options.items():
        if isinstance(value, Secret):
            raise OptionError(f"'{key}' cannot come from a secret, because reports show it; use ${{env:...}}")
        if table.topic is None:
            raise OptionError(
                f"'{key}' is about the records of a topic; remove it from '{table.connector.value}'"
            )
    if HISTORY in options:
        raise OptionError(
            f"'{HISTORY}' is refused, because the queries of a script read a topic as one row for each PRIMARY KEY; "
            "keep the history by a pipeline file with `delta: {history: scd2}`, and read its table with "
            "'connector' = 'delta' and the column of its starts in the PRIMARY KEY (of `history: append`, without one)"
        )
    if _SOFT_DELETE in options:
        raise OptionError(
            f"'{_SOFT_DELETE}' has no effect in a script, whose INSERTs do not see deleted rows; remove it, or keep "
            "the topic in a table of its own by a pipeline file with `delta: {soft-delete: ...}`"
        )
    if DELETE_MEMORY in options and SEQUENCE_BY not in options:
        raise OptionError(
            f"'{DELETE_MEMORY}' has no effect without '{SEQUENCE_BY}'; set it, or remove this one"
        )
    if table.topic is None:
        return table
    names, kept = (
        [name.strip() for name in options.get(key, default).split(";")]
        for key, default in ((SEQUENCE_BY, POSITION), (IGNORE_NULLS, "false"))
    )
    memory = options.get(DELETE_MEMORY, "7 d")
    ignored = {"true": True, "false": False}.get(";".join(kept), kept)
    _check(SEQUENCE_BY, check_sequence, names)
    _check(DELETE_MEMORY, check_interval, memory)
    _check(IGNORE_NULLS, check_ignored_nulls, ignored)
    given = POSITION if names == [POSITION] else names
    for key, is_set in ((IGNORE_NULLS, bool(ignored)), (_UPDATE_COLUMNS, _UPDATE_COLUMNS in options)):
        if is_set and given != POSITION:
            raise OptionError(f"'{key}' cannot be combined with '{SEQUENCE_BY}'; remove one of them")
    sequence = sequence_columns(given, table.topic, f"'{SEQUENCE_BY}'")
    changes = DeltaTarget(
        sequence_by=sequence,
        sequence_metadata=sequence_metadata(sequence, table.topic),
        delete_memory_seconds=duration_ms(memory) / 1000,
        apply_as_delete=delete_condition(options.get(APPLY_AS_DELETE), table.topic, f"'{APPLY_AS_DELETE}'"),
        ignore_nulls=ignored_nulls(ignored, table.topic, f"'{IGNORE_NULLS}'"),
        ignores_all_nulls=ignored is True,
        truncate=_truncate(options),
        apply_as_truncate=delete_condition(
            options.get(_APPLY_AS_TRUNCATE), table.topic, f"'{_APPLY_AS_TRUNCATE}'"
        ),
        first_row=_is_true(options, _FIRST_ROW),
        ignore_delete=_is_true(options, _IGNORE_DELETE),
        update_columns=naming_column(options.get(_UPDATE_COLUMNS), table.topic, f"'{_UPDATE_COLUMNS}'"),
        aggregate=column_rules(_rules(options), table.topic, f"'{_AGGREGATE}'"),
    )
    refuse_unfit_truncates(changes, table.topic, "'bridge.{}'")
    refuse_unfit_first_row(changes, table.topic, "'bridge.{}'")
    refuse_ignored_name(changes, "'bridge.{}'")
    refuse_unfit_rules(changes, "'bridge.{}'")
    return replace(table, changes=changes)


def _is_true(options: Mapping[str, str], key: str) -> bool:
    given = options.get(key, "false")
    if given not in ("true", "false"):
        raise OptionError(f"'{key}' = '{given}' is not legal; legal values are true, false")
    return given == "true"


def _rules(options: Mapping[str, str]) -> dict[str, str]:
    """The columns of 'bridge.aggregate' with their rules, as texts."""
    parts = [part.split(":") for part in options.get(_AGGREGATE, "").split(";") if part.strip()]
    if wrong := next((":".join(part) for part in parts if len(part) != 2), None):
        raise OptionError(
            f"'{_AGGREGATE}': {wrong.strip()!r} is no column with a rule, as in total: sum; low: min"
        )
    return {name.strip(): rule.strip() for name, rule in parts}


def _truncate(options: Mapping[str, str]) -> Truncate:
    given, legal = options.get(_TRUNCATE, Truncate.REFUSE.value), [mode.value for mode in Truncate]
    if given not in legal:
        raise OptionError(f"'{_TRUNCATE}' = '{given}' is not legal; legal values are {', '.join(legal)}")
    return Truncate(given)


def _check(key: str, check: Callable[[Any], Any], value: Any) -> None:
    try:
        check(value)
    except ValueError as error:
        raise OptionError(f"'{key}' is {error}") from None


def _connector(options: Mapping[str, str]) -> Connector:
    name = options.get("connector")
    legal = ", ".join(c.value for c in Connector)
    if name is None:
        raise OptionError(f"'connector' is missing in WITH; the connectors of a script are {legal}")
    if isinstance(name, Secret):
        raise OptionError("'connector' cannot come from a secret; write it in the statement")
    try:
        return Connector(name)
    except ValueError:
        near = get_close_matches(name.lower(), [c.value for c in Connector], 1, 0.6)
        hint = f"did you mean '{near[0]}'?" if near else f"the connectors of a script are {legal}"
        raise OptionError(f"'connector' = '{name}' is not supported; {hint}") from None


def _check_options(options: Mapping[str, str], connector: Connector) -> None:
    legal = {option.key: option for option in _OPTIONS[connector]}
    for key, value in options.items():
        prefixed = next((o for k, o in legal.items() if k.endswith(".*") and key.startswith(k[:-1])), None)
        option = legal.get(key) or prefixed
        if key != "connector" and option is None:
            near = get_close_matches(key.lower(), legal, 1, 0.6)
            names = ", ".join(f"'{k}'" for k in legal) or "none but 'connector'"
            hint = f"did you mean '{near[0]}'?" if near else f"its options are {names}"
            raise OptionError(f"'{key}' is not an option of connector '{connector.value}'; {hint}")
        if isinstance(value, Secret):
            raise OptionError(f"'{key}' cannot come from a secret, because reports show it; use ${{env:...}}")
        if option is not None:
            option.parse(value)


def _check_columns(ddl: Ddl, connector: Connector) -> None:
    for column in ddl.schema.metadata:
        raise OptionError(
            f"column '{column.name}': connector '{connector.value}' has no metadata; remove METADATA"
        )
    check_columns(ddl.schema)
    refuse_key(ddl.schema)


def _delta(options: Mapping[str, str], base: str) -> DeltaTarget:
    given = [key for key in ("path", "table-path", "table") if key in options]
    if len(given) != 1:
        found = "none is set" if not given else f"{' and '.join(repr(k) for k in given)} are set"
        raise OptionError(f"connector 'delta' requires one of 'path' (or 'table-path') and 'table'; {found}")
    if not options[given[0]].strip():
        raise OptionError(f"'{given[0]}' is empty; set a value")
    properties = {k: v for k, v in options.items() if k.startswith("delta.")}
    if given == ["table"]:
        return DeltaTarget(table=options["table"], properties=properties)
    return DeltaTarget(resolved_path(base, options[given[0]]), properties=properties)


def _is_written(column: Column) -> bool:
    return isinstance(column, PhysicalColumn) or (isinstance(column, MetadataColumn) and not column.virtual)
