"""Keys of WITH: where each is legal, and the messages for illegal ones.

Which values of WITH are secret.
"""

from __future__ import annotations

import re

import pytest

from bridge.errors import OptionError
from bridge.options import TableOptions
from bridge.options.general import TOPIC
from bridge.options.scan import SCAN_PARALLELISM
from bridge.options.table_options import is_secret

UPSERT = {
    "connector": "upsert-kafka",
    "topic": "t",
    "properties.bootstrap.servers": "localhost:9092",
    "key.format": "json",
    "value.format": "json",
}
KAFKA = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "localhost:9092",
    "format": "json",
}


@pytest.mark.parametrize(
    ("base", "more", "message"),
    [
        (
            UPSERT,
            {"connector": "upsert_kafka"},
            "'connector': Unsupported value 'upsert_kafka'. Supported values are",
        ),
        (UPSERT, {"sink.paralelism": "2"}, "did you mean 'sink.parallelism'?"),
        (
            UPSERT,
            {"Topic": "t"},
            "'Topic' is not an option of connector 'upsert-kafka'; did you mean 'topic'?",
        ),
        (UPSERT, {"zzz": "1"}, "'zzz' is not an option of connector 'upsert-kafka'; the options are "),
        (
            UPSERT,
            {"key.fields": "id"},
            "'key.fields' is an option of connector 'kafka', not of 'upsert-kafka'",
        ),
        (
            KAFKA,
            {"sink.buffer-flush.max-rows": "2"},
            "'sink.buffer-flush.max-rows' is an option of connector 'upsert-kafka', not of 'kafka'",
        ),
        (
            UPSERT,
            {"json.ignore-parse-errors": "true"},
            "'json.ignore-parse-errors' has the wrong prefix for this table: write 'value.json.ignore-parse-errors'",
        ),
        (
            KAFKA,
            {"value.json.ignore-parse-errors": "true"},
            "has the wrong prefix for this table: write 'json.ignore-parse-errors'",
        ),
        (
            UPSERT,
            {"value.csv.null-literal": "x"},
            "'value.csv.null-literal' is an option of format 'csv', which this table does not use",
        ),
        (UPSERT, {"value.json.ignore-parse-error": "x"}, "did you mean 'value.json.ignore-parse-errors'?"),
        (UPSERT, {"properties.*": "x"}, "'properties.*' is not a setting of Kafka's clients"),
        (
            UPSERT,
            {"format": "json"},
            "'format' is an alias of 'value.format'; set only one of them",
        ),
        (
            UPSERT,
            {"value.format": "togg-json"},
            "format 'togg-json' is not known. Known formats are json, csv, raw,",
        ),
        (
            UPSERT,
            {"value.format": "protobuf"},
            "'value.format' = 'protobuf' is refused: Flink decodes it with Java",
        ),
        (
            UPSERT,
            {"aliyun.kafka.endpoint": "x"},
            "'aliyun.kafka.endpoint' is refused: it logs in to ApsaraMQ",
        ),
        (
            UPSERT,
            {"scan.watermark.alignment.group": "g"},
            "'scan.watermark.alignment.group' is refused: a pipeline reads",
        ),
        (
            UPSERT,
            {"value.json.decode.json-parser.enabled": "false"},
            "is refused: 'false' selects Flink's tree parser",
        ),
        (UPSERT, {"type": "upsert-kafka"}, "in WITH, use 'connector'"),
    ],
)
def test_illegal_keys(base: dict[str, str], more: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        TableOptions({**base, **more})


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("connector", "'connector' is missing in WITH; set it to 'upsert-kafka' or 'kafka'"),
        ("properties.bootstrap.servers", "connector 'upsert-kafka' requires 'properties.bootstrap.servers'"),
        ("key.format", "requires 'key.format'"),
        ("value.format", "requires 'value.format'"),
    ],
)
def test_missing_keys(left_out: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        TableOptions({k: v for k, v in UPSERT.items() if k != left_out})


def test_all_missing_keys_are_named_at_once() -> None:
    with pytest.raises(OptionError, match=r"'properties.bootstrap.servers', 'key.format', 'value.format'"):
        TableOptions({"connector": "upsert-kafka"})


def test_values_without_effect_are_checked() -> None:
    with pytest.raises(OptionError, match=r"^'scan.bounded.timestamp-millis': 'soon' is not a whole number"):
        TableOptions({**UPSERT, "scan.bounded.timestamp-millis": "soon"})


def test_refused_options_may_have_their_default() -> None:
    options = TableOptions({**UPSERT, "value.json.decode.json-parser.enabled": "TRUE"})
    assert options.value_format
    assert "decode.json-parser.enabled" not in options.format_values(options.value_format)


def test_typed_values_and_defaults() -> None:
    options = TableOptions({**UPSERT, "scan.parallelism": "4", "key.json.map-null-key.mode": "literal"})
    assert options.get(TOPIC) == ("t",)
    assert options.get(SCAN_PARALLELISM) == 4
    assert options.key_format
    assert options.value_format
    assert options.format_values(options.key_format)["map-null-key.mode"] == "LITERAL"
    assert options.format_values(options.value_format) == {
        "fail-on-missing-field": False,
        "ignore-parse-errors": False,
        "timestamp-format.standard": "SQL",
        "map-null-key.mode": "FAIL",
        "map-null-key.literal": "null",
        "encode.decimal-as-plain-number": False,
        "encode.ignore-null-fields": False,
    }


def test_format_is_an_alias_of_value_format() -> None:
    values = {k: v for k, v in UPSERT.items() if k != "value.format"}
    options = TableOptions({**values, "format": "json", "json.encode.ignore-null-fields": "true"})
    assert options.value_format
    assert options.format_values(options.value_format)["encode.ignore-null-fields"] is True


def test_effective_options_name_their_origin() -> None:
    options = TableOptions({**UPSERT, "properties.client.id": "c"})
    shown = {e.option.key: (e.text, e.is_set) for e in options.effective()}
    assert shown["value.fields-include"] == ("ALL", False)
    assert shown["topic"] == ("t", True)
    assert shown["properties.client.id"] == ("c", True)
    assert shown["value.json.timestamp-format.standard"] == ("SQL", False)
    assert "properties.*" not in shown


@pytest.mark.parametrize("key", ["format", "value.format"])
def test_the_name_of_a_format_is_no_secret(key: str) -> None:
    values = {k: v for k, v in UPSERT.items() if k != "value.format"}
    with pytest.raises(OptionError, match="cannot come from a secret"):
        TableOptions({**values, key: "json"}, {key})


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("properties.sasl.jaas.config", True),
        ("properties.sasl.oauthbearer.client.credentials.client.secret", True),
        ("properties.ssl.keystore.password", True),
        ("properties.ssl.keystore.key", True),
        ("properties.ssl.key.password", True),
        ("value.avro-confluent.basic-auth.user-info", True),
        ("value.avro-confluent.bearer-auth.token", True),
        ("aliyun.kafka.accessKeySecret", True),
        ("properties.sasl.mechanism", False),
        ("properties.security.protocol", False),
        ("properties.ssl.keystore.location", False),
        ("properties.bootstrap.servers", False),
        ("key.format", False),
        ("key.json.map-null-key.mode", False),
        ("topic", False),
    ],
)
def test_which_values_are_masked(key: str, secret: bool) -> None:
    assert is_secret(key) is secret
