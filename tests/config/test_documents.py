"""Documents that no decoder or encoder would take are refused when the file is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.errors import DefinitionError
from tests.config.files import HEAD, REST, loaded, upsert_file


def definition(columns: str, options: str) -> str:
    ddl = f"""\
    CREATE TABLE orders ({columns}) WITH (
      'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
      'properties.bootstrap.servers' = 'localhost:9092', {options}
    )
"""
    return f"{HEAD}topic:\n  ddl: |\n{ddl}{REST}"


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            "a INT",
            "'format' = 'csv', 'csv.quote-character' = '|', 'csv.disable-quote-character' = 'true'",
            "Format cannot define a quote character and disabled quote character at the same time",
        ),
        (
            "a INT",
            "'format' = 'csv', 'csv.quote-character' = 'abc'",
            "Option 'csv.quote-character' must be a string with single character, but was: abc",
        ),
        ("a INT", "'format' = 'csv', 'csv.field-delimiter' = '\\n'", "must not be a line break"),
        ("a MAP<STRING, INT>", "'format' = 'csv'", "Unsupported type 'MAP<STRING, INT>' for field 'a'"),
        (
            "a STRING",
            "'format' = 'raw', 'raw.charset' = 'UNKNOWN'",
            "Unsupported 'raw.charset' name: UNKNOWN",
        ),
        ("a TIMESTAMP(3)", "'format' = 'raw'", r"The 'raw' format doesn't supports 'TIMESTAMP\(3\)'"),
        ("a MAP<STRING, INT>", "'format' = 'raw'", "The 'raw' format doesn't supports 'MAP<STRING, INT>'"),
        ("a MAP<INT, INT>", "'format' = 'json'", "JSON format doesn't support non-string as key type of map"),
        ("a MAP<INT, INT>", "'format' = 'ogg-json'", "JSON format doesn't support non-string as key type"),
        ("`a-b` INT", "'format' = 'avro'", "'a-b' is no Avro name"),
        ("a TIMESTAMP_LTZ(3)", "'format' = 'avro'", "Unsupported to derive Schema for type: TIMESTAMP_LTZ"),
        (
            "a INT",
            "'format' = 'avro-confluent', 'avro-confluent.url' = 'http://r:1', 'avro-confluent.schema' = '\"int\"'",
            "Schema provided for 'avro-confluent' format does not match the table schema",
        ),
        (
            "a INT",
            "'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://r:1', "
            "'debezium-avro-confluent.schema' = '\"int\"'",
            "Schema provided for 'debezium-avro-confluent' format must be a nullable record",
        ),
        (
            "a INT, k TIMESTAMP(3)",
            "'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'json'",
            r"doesn't supports 'TIMESTAMP\(3\)' as column type. \(format of the key\)",
        ),
    ],
)
def test_refused_when_the_file_is_loaded(tmp_path: Path, columns: str, options: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=rf"orders.yaml:\d+: topic: .*{message}"):
        loaded(tmp_path, definition(columns, options))


@pytest.mark.parametrize(
    ("format", "nullable"),
    [("avro", False), ("avro-confluent", False), ("debezium-avro-confluent", False), ("json", True)],
)
def test_the_primary_key_is_not_null_in_schemas_that_say_so(
    tmp_path: Path, format: str, nullable: bool
) -> None:
    """Flink writes and reads Avro without a union for such a column; its JSON has no schema."""
    url = "" if format in ("avro", "json") else f", '{format}.url' = 'http://r:1'"
    columns = "a INT, b INT, PRIMARY KEY (a) NOT ENFORCED"
    is_changes = format.startswith("debezium")
    text = definition(columns, f"'format' = '{format}'{url}") if is_changes else upsert_file(columns, format)
    topic = loaded(tmp_path, text).topic
    for document in (topic.key, topic.value):
        if document is not None:
            assert [f.type.nullable for f in document.row.fields if f.name == "a"] == [nullable]
    assert [f.type.nullable for f in topic.value.row.fields if f.name == "b"] == [True]
