"""Resolves a DDL into a Topic, the Kafka side of a pipeline, with its start position and end position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.config import rules
from bridge.config.documents import key_columns, key_document, value_document
from bridge.ddl import Ddl
from bridge.definition import Bounded, DeliveryGuarantee, Sink, Startup, Topic
from bridge.errors import OptionError
from bridge.offsets import Offsets
from bridge.options import UPSERT, Option, TableOptions
from bridge.options.general import GROUP_ID, TOPIC, TOPIC_PATTERN
from bridge.options.scan import (
    BOUNDED_MODE,
    BOUNDED_OFFSETS,
    BOUNDED_TIMESTAMP,
    DISCOVERY_INTERVAL,
    IDLE_TIMEOUT,
    SCAN_PARALLELISM,
    STARTUP_MODE,
    STARTUP_OFFSETS,
    STARTUP_TIMESTAMP,
    UPSERT_STARTUP_MODE,
)
from bridge.options.sink import (
    BUFFER_INTERVAL,
    BUFFER_ROWS,
    PARTITIONER,
    SINK_PARALLELISM,
    TABLE_ID_HEADERS,
    TRANSACTIONAL_ID_PREFIX,
)
from bridge.options.table_options import is_secret
from bridge.secret import Secret


def startup(options: TableOptions, topics: tuple[str, ...], *, base_is_existing: bool) -> Startup:
    """Returns the start position. Raises OptionError, as Flink does, for a missing or superfluous companion option.

    Raises it also for `scan.startup.*` options of an upsert-kafka table unless `base_is_existing` (ADR 028, rule 12).
    """
    option = STARTUP_MODE
    if options.connector == UPSERT:
        option = UPSERT_STARTUP_MODE
        named = [o.key for o in (option, STARTUP_OFFSETS, STARTUP_TIMESTAMP) if options.has(o)]
        if named and not base_is_existing:
            raise OptionError(
                f"'{named[0]}' is refused: 'upsert-kafka' always starts at the earliest offset, since a changelog "
                "without its beginning does not define a table. If the Delta table already contains the changes before "
                "the start position, set 'ingest.base: existing'"
            )
    mode = options.get(option) or ""
    _check_companions(options, "startup", option, STARTUP_OFFSETS, STARTUP_TIMESTAMP)
    _check_single_topic(mode, topics)
    return Startup(
        mode,
        _offsets(options, topics, STARTUP_OFFSETS),
        options.get(STARTUP_TIMESTAMP),
    )


def bounded(options: TableOptions, topics: tuple[str, ...]) -> Bounded:
    """Returns the end position. Raises OptionError, as Flink does, for a missing or superfluous companion option."""
    mode = options.get(BOUNDED_MODE) or ""
    _check_companions(options, "bounded", BOUNDED_MODE, BOUNDED_OFFSETS, BOUNDED_TIMESTAMP)
    _check_single_topic(mode, topics)
    if mode == "group-offsets" and not options.has(GROUP_ID):
        raise OptionError(f"'{GROUP_ID.key}' is required in 'group-offsets' bounded mode but missing.")
    return Bounded(mode, _offsets(options, topics, BOUNDED_OFFSETS), options.get(BOUNDED_TIMESTAMP))


def _check_companions(
    options: TableOptions,
    name: str,
    option: Option[str],
    offsets: Option[dict[int, int]],
    timestamp: Option[int],
) -> None:
    mode = options.get(option)
    companions: tuple[tuple[Option[Any], str], ...] = (
        (timestamp, "timestamp"),
        (offsets, "specific-offsets"),
    )
    for companion, its_mode in companions:
        if mode == its_mode and not options.has(companion):
            raise OptionError(f"'{companion.key}' is required in '{mode}' {name} mode but missing.")
        # Flink ignores it, and would then read more or less than the option suggests.
        if mode != its_mode and options.has(companion):
            raise OptionError(
                f"'{companion.key}' has no effect unless '{option.key}' = '{its_mode}'; the mode is '{mode}'. Set the "
                "mode, or remove the option"
            )


def _check_single_topic(mode: str, topics: tuple[str, ...]) -> None:
    if mode == "specific-offsets" and len(topics) != 1:
        raise OptionError("Currently Kafka source only supports specific offset for single topic.")


def _offsets(
    options: TableOptions, topics: tuple[str, ...], option: Option[dict[int, int]]
) -> Offsets | None:
    partition_offsets = options.get(option)
    return (
        None
        if partition_offsets is None
        else Offsets({(topics[0], p): o for p, o in partition_offsets.items()})
    )


def resolve_topic(ddl: Ddl, *, base_is_existing: bool = False) -> Topic:
    """Checks all rules and applies all defaults. `unsupported` refuses features that this version cannot run.

    Values of `ddl.options` that are `Secret` or belong to secret options are `Secret` in the result, and no message
    quotes them. Raises OptionError, with Flink's message where Flink has the rule.
    """
    options = {k: Secret(_text(v)) if is_secret(k) else v for k, v in ddl.options.items()}
    given = table_options(options)
    rules.check_topic(given)
    topics = given.get(TOPIC) or ()
    starts = startup(given, topics, base_is_existing=base_is_existing)
    ends = bounded(given, topics)
    rules.check_format_options(given)
    rules.check_formats(given, ddl.name, ddl.schema)
    rules.check_sink(given)
    rules.check_clients(given)
    keys = key_columns(given, ddl.schema)
    value = value_document(given, rules.value_format(given), ddl.schema, keys)
    rules.check_schema(given, ddl.schema)
    key_use = given.key_format
    return Topic(
        connector=given.connector,
        names=topics,
        schema=ddl.schema,
        key=key_document(given, key_use, ddl.schema, keys) if key_use else None,
        value=value,
        properties={
            k.removeprefix("properties."): v for k, v in options.items() if k.startswith("properties.")
        },
        startup=starts,
        bounded=ends,
        sink=_sink(given),
        parallelism=given.get(SCAN_PARALLELISM),
        discovery_interval_ms=_or(given.get(DISCOVERY_INTERVAL), 300_000),
        table=ddl.name,
        pattern=given.get(TOPIC_PATTERN),
        idle_timeout_ms=_or(given.get(IDLE_TIMEOUT), 0),
        options=options,
    )


def table_options(options: Mapping[str, str]) -> TableOptions:
    """Returns the options as typed values; only parsers see the text of `Secret` values."""
    masked = [key for key, value in options.items() if isinstance(value, Secret)]
    return TableOptions({key: _text(value) for key, value in options.items()}, masked)


def table_id_headers(table: str | None, topic: Topic) -> tuple[tuple[str, str], ...]:
    """Returns the headers of `sink.add-tableId-to-header-enabled`: the name of the Delta table, or else of the DDL."""
    return table_id(table or topic.table) if table_options(topic.options).get(TABLE_ID_HEADERS) else ()


def table_id(name: str) -> tuple[tuple[str, str], ...]:
    """Returns the TableId of Flink CDC as headers; if the name has fewer than three parts, the first ones are empty."""
    parts = ["", "", *name.split(".")][-3:]
    return tuple(zip(("namespace", "schemaName", "tableName"), parts, strict=True))


def _text(value: str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _sink(options: TableOptions) -> Sink:
    rows = interval = 0
    if options.connector == UPSERT:
        rows, interval = max(0, options.get(BUFFER_ROWS) or 0), options.get(BUFFER_INTERVAL) or 0
    guarantee = DeliveryGuarantee(rules.delivery_guarantee(options))
    partitioner = "default" if options.connector == UPSERT else options.get(PARTITIONER) or ""
    return Sink(
        guarantee,
        rows,
        interval,
        options.get(SINK_PARALLELISM),
        partitioner,
        options.get(TRANSACTIONAL_ID_PREFIX),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
