"""Rules between options, and between options and the schema, with the messages of Flink's factories.

Flink checks some of them only for sources and some only for sinks. A pipeline file serves both directions, so all
of them apply.
"""

from __future__ import annotations

from bridge.errors import OptionError
from bridge.options import UPSERT, FormatUse, TableOptions
from bridge.options.general import KEY_FIELDS, TOPIC, TOPIC_PATTERN
from bridge.options.metadata import check_metadata
from bridge.options.properties import check_combinations
from bridge.options.sink import (
    BUFFER_INTERVAL,
    BUFFER_ROWS,
    DELIVERY_GUARANTEE,
    NAMING,
    PARTITIONER,
    SEMANTIC,
    TRANSACTIONAL_ID_PREFIX,
)
from bridge.partitioners import partitioner_class
from bridge.schema import ArrayType, DataType, MapType, PhysicalColumn, RowType, ScalarType, TableSchema


def check_topic(options: TableOptions) -> None:
    """Raises OptionError unless exactly one of 'topic' and 'topic-pattern' is set."""
    if options.has(TOPIC) and options.has(TOPIC_PATTERN):
        raise OptionError("Option 'topic' and 'topic-pattern' shouldn't be set together.")
    if not options.has(TOPIC) and not options.has(TOPIC_PATTERN):
        raise OptionError("Either 'topic' or 'topic-pattern' must be set.")


def value_format(options: TableOptions) -> FormatUse:
    """Returns the format of the value, which both connectors require. Raises OptionError if it is missing."""
    if options.value_format is None:
        raise OptionError("the format of the value is required; set 'value.format' or its alias 'format'")
    return options.value_format


def check_format_options(options: TableOptions) -> None:
    """Raises OptionError for options of one format that exclude each other."""
    for use in (options.key_format, options.value_format):
        if use is None:
            continue
        values = options.format_values(use)
        if values.get("fail-on-missing-field") and values.get("ignore-parse-errors"):
            raise OptionError(
                f"'{use.option}': fail-on-missing-field and ignore-parse-errors shouldn't both be true."
            )


def check_formats(options: TableOptions, table: str, schema: TableSchema) -> None:
    """Raises OptionError if a format cannot be combined with the connector or with a PRIMARY KEY."""
    key, value = options.key_format, value_format(options)
    if options.connector == UPSERT:
        for use, part in ((key, "key"), (value, "value")):
            if use and not use.declared.insert_only:
                name = use.declared.name
                raise OptionError(
                    f"'upsert-kafka' connector doesn't support '{name}' as {part} format, "
                    f"because '{name}' is not in insert-only mode."
                )
        if not schema.primary_key:
            raise OptionError(
                "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY specifies which "
                "columns should be read from or write to the Kafka message key. The PRIMARY KEY also defines records "
                "in the 'upsert-kafka' table should update or delete on which keys."
            )
        return
    if key and not key.declared.insert_only:
        raise OptionError(
            f"A key format should only deal with INSERT-only records. But {key.declared.name} has a changelog mode of "
            f"{key.declared.changelog_mode}."
        )
    if schema.primary_key and value.declared.insert_only:
        raise OptionError(
            f"The Kafka table '{table}' with '{value.declared.name}' format doesn't support defining PRIMARY KEY "
            "constraint on the table, because it can't guarantee the semantic of primary key."
        )


def check_sink(options: TableOptions) -> None:
    """Raises OptionError for illegal buffering, delivery guarantee, transaction naming or partitioner."""
    if options.connector == UPSERT:
        rows, interval = options.get(BUFFER_ROWS) or 0, options.get(BUFFER_INTERVAL) or 0
        if (rows > 0) != (interval > 0):
            raise OptionError(
                f"'{BUFFER_ROWS.key}' and '{BUFFER_INTERVAL.key}' must be set to be greater than zero together to "
                "enable sink buffer flushing."
            )
    if delivery_guarantee(options) == "exactly-once" and not options.has(TRANSACTIONAL_ID_PREFIX):
        raise OptionError(
            f"{TRANSACTIONAL_ID_PREFIX.key} must be specified when using DeliveryGuarantee.EXACTLY_ONCE."
        )
    if options.get(NAMING) == "incrementing":
        raise OptionError(
            f"'{NAMING.key}' = 'incrementing' is refused: if each transaction had a new id, a run that is wrongly "
            "assumed dead could not be fenced; legal values are default, pooling"
        )
    partitioner = options.get(PARTITIONER) or ""
    if options.connector == UPSERT or partitioner in ("default", "fixed"):
        return
    if partitioner == "round-robin":
        if options.has(KEY_FIELDS):
            raise OptionError(
                "Currently 'round-robin' partitioner only works when option 'key.fields' is not specified."
            )
    elif not partitioner:
        raise OptionError(f"Option '{PARTITIONER.key}' should be a non-empty string.")
    else:
        partitioner_class(partitioner)


def check_clients(options: TableOptions) -> None:
    """Raises OptionError for client settings that contradict each other."""
    check_combinations(options.properties(), delivery_guarantee(options))


def delivery_guarantee(options: TableOptions) -> str:
    """Returns the delivery guarantee, which may be set by its deprecated name."""
    if options.connector != UPSERT and options.has(SEMANTIC):
        if options.has(DELIVERY_GUARANTEE):
            raise OptionError(
                f"'{SEMANTIC.key}' is the deprecated name of '{DELIVERY_GUARANTEE.key}'; set only "
                f"'{DELIVERY_GUARANTEE.key}'"
            )
        return options.get(SEMANTIC) or ""
    return options.get(DELIVERY_GUARANTEE) or ""


def check_schema(options: TableOptions, schema: TableSchema) -> None:
    """Checks the column names, the types of the PRIMARY KEY (ADR 028, rule 4) and the metadata columns."""
    check_columns(schema)
    for metadata in schema.metadata:
        declared = value_format(options).declared
        check_metadata(metadata, options.connector, declared, keyed=bool(schema.primary_key))


def check_columns(schema: TableSchema) -> None:
    """Raises OptionError for reserved column names, and for types that are not comparable in the PRIMARY KEY."""
    for name in schema.names:
        if name.startswith("__"):
            raise OptionError(
                f"column '{name}': names that start with two underscores are reserved for the bridge; rename the column"
            )
    for column in schema.physical:
        if column.name in schema.primary_key:
            _check_key_type(column)


def _check_key_type(column: PhysicalColumn) -> None:
    part = _incomparable_type(column.type)
    if part is not None:
        raise OptionError(
            f"column '{column.name}' {column.type.flink()} cannot be in the PRIMARY KEY: the equality of {part} values "
            "differs between systems, so the row of a key might not be found; declare STRING or DECIMAL"
        )


def _incomparable_type(type: DataType) -> str | None:
    if isinstance(type, RowType):
        return next((part for f in type.fields if (part := _incomparable_type(f.type))), None)
    if isinstance(type, MapType):
        return "MAP"
    if isinstance(type, ArrayType):
        return "ARRAY"
    return type.name if isinstance(type, ScalarType) and type.name in ("FLOAT", "DOUBLE") else None
