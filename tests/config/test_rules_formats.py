"""Rules for format options, with Flink's messages, and rules for tables that are published."""

from __future__ import annotations

import re

import pytest

from bridge.config import refuse_unpublishable, resolve_topic
from bridge.errors import OptionError
from tests.config.tables import KEYED, kafka, upsert

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
