"""Rules for format options, with Flink's messages, and rules for tables that are published.

Rules for kafka tables, with Flink's messages.

Rules for upsert-kafka tables, with Flink's messages where Flink has the rule.
"""

from __future__ import annotations

import re

import pytest

from bridge.config import refuse_unpublishable, resolve_topic
from bridge.errors import OptionError
from tests.config.tables import COLUMNS, KEYED, kafka, upsert

JSON_VALUES = [
    (
        "ignore-parse-errors",
        "abc",
        "Unrecognized option for boolean: abc. Expected either true or false(case insensitive)",
    ),
    (
        "timestamp-format.standard",
        "test",
        "Unsupported value 'test' for timestamp-format.standard. Supported values are [SQL, ISO-8601].",
    ),
    (
        "timestamp-format.standard",
        "iso-8601",
        "Unsupported value 'iso-8601' for timestamp-format.standard. Supported values are [SQL, ISO-8601].",
    ),
    (
        "map-null-key.mode",
        "invalid",
        "Unsupported value 'invalid' for option map-null-key.mode. Supported values are [LITERAL, FAIL, "
        "DROP].",
    ),
]


@pytest.mark.parametrize("format", ["json", "debezium-json", "canal-json", "maxwell-json", "ogg-json"])
@pytest.mark.parametrize(("key", "value", "message"), JSON_VALUES)
def test_values_of_json_options(format: str, key: str, value: str, message: str) -> None:
    table = kafka(format=format)
    table.options[f"{format}.{key}"] = value
    with pytest.raises(OptionError, match=re.escape(f"'{format}.{key}': {message}")):
        resolve_topic(table)


@pytest.mark.parametrize(
    ("column", "virtual", "published"),
    [("timestamp", "", True), ("topic", "", True), ("partition", "", False), ("partition", "VIRTUAL", True)],
)
def test_only_a_publish_refuses_read_only_metadata(column: str, virtual: str, published: bool) -> None:
    topic = resolve_topic(upsert(f"m STRING METADATA FROM '{column}' {virtual}, {KEYED}"))
    if published:
        refuse_unpublishable(topic)
        return
    message = f"metadata '{column}' of column 'm' is read-only; declare the column VIRTUAL"
    with pytest.raises(OptionError, match=re.escape(message)):
        refuse_unpublishable(topic)


def test_debezium_with_schema_cannot_be_written() -> None:
    table = kafka(format="debezium-json", debezium_json__schema_include="true")
    message = (
        "Debezium JSON serialization doesn't support 'debezium-json.schema-include' option been set to true."
    )
    with pytest.raises(OptionError, match=re.escape(message)):
        refuse_unpublishable(resolve_topic(table))


KAFKA_RULES: list[tuple[str, dict[str, str], str]] = [
    (COLUMNS, {}, "the format of the value is required; set 'value.format' or its alias 'format'"),
    (
        "id INT, name STRING",
        {"key__fields": "non_existing", "key__format": "json", "format": "json"},
        "Could not find the field 'non_existing' in the table schema for usage in the key format. A key field must be "
        "a regular, physical column. The following columns can be selected in the 'key.fields' option:\n[id, name]",
    ),
    (
        "k_id INT, id STRING",
        {"key__fields": "k_id", "key__fields_prefix": "k_", "key__format": "json", "format": "json"},
        "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it to 'EXCEPT_KEY' "
        "instead to avoid field overlaps.",
    ),
    (
        "k_id INT, id STRING",
        {
            "key__fields": "k_id;id",
            "key__fields_prefix": "k_",
            "key__format": "json",
            "format": "json",
            "value__fields_include": "EXCEPT_KEY",
        },
        "All fields in 'key.fields' must be prefixed with 'k_' when option 'key.fields-prefix' is set but field 'id' "
        "is not prefixed.",
    ),
    (
        COLUMNS,
        {"key__fields": "region;region", "key__format": "json", "format": "json"},
        "'key.fields' lists the field 'region' twice",
    ),
    (
        COLUMNS,
        {"key__fields": "region", "format": "json"},
        "The option 'key.fields' can only be declared if a key format is defined using 'key.format'.",
    ),
    (
        COLUMNS,
        {"key__format": "json", "format": "json"},
        "A key format 'key.format' requires the declaration of one or more of key fields using 'key.fields'.",
    ),
    (
        COLUMNS,
        {"key__format": "debezium-json", "key__fields": "region", "format": "json"},
        "A key format should only deal with INSERT-only records. But debezium-json has a changelog mode of",
    ),
    (
        KEYED,
        {"format": "json"},
        "The Kafka table 'clicks' with 'json' format doesn't support defining PRIMARY KEY constraint on the table, "
        "because it can't guarantee the semantic of primary key.",
    ),
    (
        COLUMNS,
        {"format": "json", "scan__startup__mode": "timestamp"},
        "'scan.startup.timestamp-millis' is required in 'timestamp' startup mode but missing.",
    ),
    (
        COLUMNS,
        {"format": "json", "scan__startup__mode": "specific-offsets"},
        "'scan.startup.specific-offsets' is required in 'specific-offsets' startup mode but missing.",
    ),
    (
        COLUMNS,
        {
            "format": "json",
            "topic": "a;b",
            "scan__startup__mode": "specific-offsets",
            "scan__startup__specific_offsets": "partition:0,offset:1",
        },
        "Currently Kafka source only supports specific offset for single topic.",
    ),
    (
        COLUMNS,
        {"format": "json", "sink__partitioner": "abc"},
        "Could not find and instantiate partitioner class 'abc'",
    ),
    (
        COLUMNS,
        {"format": "json", "sink__partitioner": ""},
        "Option 'sink.partitioner' should be a non-empty string.",
    ),
    (
        COLUMNS,
        {
            "format": "json",
            "sink__partitioner": "round-robin",
            "key__fields": "region",
            "key__format": "json",
        },
        "Currently 'round-robin' partitioner only works when option 'key.fields' is not specified.",
    ),
    (
        COLUMNS,
        {"format": "json", "sink__semantic": "none", "sink__delivery_guarantee": "none"},
        "'sink.semantic' is the deprecated name of 'sink.delivery-guarantee'",
    ),
    (
        COLUMNS,
        {"format": "json", "sink__semantic": "exactly-once"},
        "sink.transactional-id-prefix must be specified when using DeliveryGuarantee.EXACTLY_ONCE.",
    ),
    (
        COLUMNS,
        {"format": "json", "topic_pattern": "t.*"},
        "Option 'topic' and 'topic-pattern' shouldn't be set together.",
    ),
]


@pytest.mark.parametrize(("columns", "options", "message"), KAFKA_RULES)
def test_kafka(columns: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        resolve_topic(kafka(columns, **options))


def test_a_topic_is_required() -> None:
    table = kafka(format="json")
    del table.options["topic"]
    with pytest.raises(OptionError, match=re.escape("Either 'topic' or 'topic-pattern' must be set.")):
        resolve_topic(table)


UPSERT_RULES: list[tuple[str, dict[str, str], str]] = [
    (
        COLUMNS,
        {},
        "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY specifies which columns "
        "should be read from or write to the Kafka message key. The PRIMARY KEY also defines records in the "
        "'upsert-kafka' table should update or delete on which keys.",
    ),
    (
        KEYED,
        {"value__format": "debezium-json"},
        "'upsert-kafka' connector doesn't support 'debezium-json' as value format, because 'debezium-json' is not in "
        "insert-only mode.",
    ),
    (
        KEYED,
        {"key__format": "canal-json"},
        "'upsert-kafka' connector doesn't support 'canal-json' as key format, because 'canal-json' is not in "
        "insert-only mode.",
    ),
    (
        KEYED,
        {"sink__buffer_flush__max_rows": "0", "sink__buffer_flush__interval": "1s"},
        "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater than zero together "
        "to enable sink buffer flushing.",
    ),
    (
        f"{COLUMNS}, PRIMARY KEY (region, view_count) NOT ENFORCED",
        {"key__format": "raw"},
        "'key.format' = 'raw': The 'raw' format only supports single physical column. However the defined schema "
        "contains 2 of them: [region, view_count].",
    ),
    (KEYED, {"value__format": "raw"}, "'value.fields-include' = 'EXCEPT_KEY' excludes the key columns"),
    (KEYED, {"sink__buffer_flush__max_rows": "10"}, "must be set to be greater than zero together"),
    (
        KEYED,
        {"scan__bounded__mode": "specific-offsets"},
        "'scan.bounded.specific-offsets' is required in 'specific-offsets' bounded mode but missing.",
    ),
    (
        KEYED,
        {"scan__bounded__mode": "timestamp"},
        "'scan.bounded.timestamp-millis' is required in 'timestamp' bounded mode but missing.",
    ),
    (
        KEYED,
        {"scan__bounded__mode": "group-offsets"},
        "'properties.group.id' is required in 'group-offsets' bounded mode but missing.",
    ),
    (
        KEYED,
        {"scan__bounded__timestamp_millis": "1"},
        "'scan.bounded.timestamp-millis' has no effect unless 'scan.bounded.mode' = 'timestamp'; the mode is "
        "'unbounded'. Set the mode, or remove the option",
    ),
    (
        KEYED,
        {"scan__startup__mode": "earliest-offset"},
        "'scan.startup.mode' is refused: 'upsert-kafka' always starts at the earliest offset, since a changelog "
        "without its beginning does not define a table. If the Delta table already contains the changes before the "
        "start position, set 'ingest.base: existing'",
    ),
    (
        KEYED,
        {"sink__delivery_guarantee": "exactly-once"},
        "sink.transactional-id-prefix must be specified when using DeliveryGuarantee.EXACTLY_ONCE.",
    ),
    (
        KEYED,
        {"key__fields_prefix": "r"},
        "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it to 'EXCEPT_KEY' "
        "instead to avoid field overlaps.",
    ),
    (
        KEYED,
        {"key__fields_prefix": "k_", "value__fields_include": "EXCEPT_KEY"},
        "All fields in the PRIMARY KEY must be prefixed with 'k_' when option 'key.fields-prefix' is set but field "
        "'region' is not prefixed.",
    ),
    (
        KEYED,
        {"key__fields_prefix": "region", "value__fields_include": "EXCEPT_KEY"},
        "the name of key field 'region' consists of the prefix only",
    ),
    (
        KEYED,
        {"value__json__fail_on_missing_field": "true", "value__json__ignore_parse_errors": "true"},
        "'value.format': fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
    ),
    (
        KEYED,
        {"topic_pattern": "t.*"},
        "Option 'topic' and 'topic-pattern' shouldn't be set together.",
    ),
    (
        "id FLOAT, PRIMARY KEY (id) NOT ENFORCED",
        {},
        "column 'id' FLOAT cannot be in the PRIMARY KEY",
    ),
    ("id DOUBLE, PRIMARY KEY (id) NOT ENFORCED", {}, "the equality of DOUBLE values differs between systems"),
    (
        "id ARRAY<INT>, PRIMARY KEY (id) NOT ENFORCED",
        {},
        "the equality of ARRAY values differs between systems",
    ),
    (
        "id ROW<a MAP<INT, INT>>, PRIMARY KEY (id) NOT ENFORCED",
        {},
        "the equality of MAP values differs between systems",
    ),
    (
        "id INT, x STRING METADATA FROM 'time', PRIMARY KEY (id) NOT ENFORCED",
        {},
        "Invalid metadata key 'time' in column 'x'",
    ),
]


@pytest.mark.parametrize(("columns", "options", "message"), UPSERT_RULES)
def test_upsert_kafka(columns: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        resolve_topic(upsert(columns, **options))


def test_a_secret_is_not_quoted_by_a_rule() -> None:
    table = upsert(properties__sasl__jaas__config="hunter2", scan__bounded__mode="timestamp")
    with pytest.raises(OptionError, match=r"scan\.bounded\.timestamp-millis") as error:
        resolve_topic(table)
    assert "hunter2" not in str(error.value)
