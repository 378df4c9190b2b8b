"""Rules for kafka tables, with Flink's messages."""

from __future__ import annotations

import re

import pytest

from bridge.config import resolve_topic
from bridge.errors import OptionError
from tests.config.tables import COLUMNS, KEYED, kafka

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
