"""A record as lines for a terminal.

The row kind of a record.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.peek.records import Record
from bridge.peek.view import DecodedRecord, Part, kind_of
from tests.peek.pipelines import definition


def test_nothing_in_a_record_reaches_the_terminal_as_a_command() -> None:
    record = Record("orders", 0, 7, None, b"k", b"v", (("\x1b[2Jname", b"\x1b[2Jvalue"),))
    shown = DecodedRecord(record, "+U", Part('"k"'), Part('"\x9b31m"')).lines().split("\n")
    assert [line for line in shown if not line.isprintable()] == []
    assert shown[3] == "  headers  \N{REPLACEMENT CHARACTER}[2Jname=\N{REPLACEMENT CHARACTER}[2Jvalue"


def test_a_null_value_of_an_upsert_topic_is_a_delete(tmp_path: Path) -> None:
    topic = definition(tmp_path).topic
    assert kind_of(topic, None, None) == "-D"
    assert kind_of(topic, b"{}", "{}") == "+U"
    assert kind_of(topic, b"broken", None) == "+U", "no tombstone, whatever its bytes are"


@pytest.mark.parametrize(
    ("format", "document", "kind"),
    [
        ("json", {"op": "d"}, "+I"),
        ("debezium-json", {"op": "c"}, "+I"),
        ("debezium-json", {"op": "r"}, "+I"),
        ("debezium-json", {"op": "u"}, "-U +U"),
        ("debezium-json", {"op": "d"}, "-D"),
        ("debezium-json", {"schema": {}, "payload": {"op": "d"}}, "-D"),
        ("canal-json", {"type": "UPDATE"}, "-U +U"),
        ("maxwell-json", {"type": "insert"}, "+I"),
        ("ogg-json", {"op_type": "D"}, "-D"),
        ("debezium-json", {"op": "x"}, ""),
        ("debezium-json", {"op": "t"}, "t"),
        ("canal-json", {"type": "ALTER"}, "ALTER"),
        ("debezium-json", [1], ""),
    ],
)
def test_a_cdc_document_names_its_operation(tmp_path: Path, format: str, document: object, kind: str) -> None:
    topic = definition(
        tmp_path, columns="id BIGINT", connector="kafka", key__format=None, value__format=None, format=format
    ).topic
    assert kind_of(topic, b"there", json.dumps(document)) == kind


def test_a_null_value_of_a_cdc_topic_has_no_kind(tmp_path: Path) -> None:
    topic = definition(
        tmp_path,
        columns="id BIGINT",
        connector="kafka",
        key__format=None,
        value__format=None,
        format="canal-json",
    ).topic
    assert kind_of(topic, None, None) == ""
