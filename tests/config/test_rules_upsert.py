"""Rules for upsert-kafka tables, with Flink's messages where Flink has the rule."""

from __future__ import annotations

import re

import pytest

from bridge.config import resolve_topic
from bridge.errors import OptionError
from tests.config.tables import COLUMNS, KEYED, upsert

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
