"""How documents of a writer's schema are read, and which are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.arrow_formats.avro_plan import Plan, document_plan
from bridge.format_rules.avro_derive import derive
from bridge.format_rules.avro_schema import parse
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import spec

_MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def planned(types: dict[str, str], *fields: Any, own: Any = None) -> Plan | str:
    """The plan for a writer whose record has these fields (name, type), or why there is none."""
    row = spec("avro", types).row
    own = own or derive(row, legacy_timestamps=True)
    try:
        return document_plan(row, parse(json.dumps(own), "own"), parse(json.dumps(record(*fields)), "writer"))
    except NotThisWay as reason:
        return str(reason)


def record(*fields: Any, name: str = "W") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def test_fields_are_read_in_the_writers_order_and_others_skipped() -> None:
    plan = planned({"a": "BIGINT", "b": "STRING"}, ("b", "bytes"), ("gone", ["null", "int"]), ("a", "int"))
    assert isinstance(plan, Plan)
    assert [(name, field.kind, field.type is None) for name, field in plan.fields] == [
        ("b", "bytes", False),
        ("gone", "union", True),
        ("a", "int", False),
    ]


def test_units_are_the_writers_or_the_tables() -> None:
    for type, millis in ((_MICROS, False), ("long", True)):
        plan = planned({"a": "TIMESTAMP(3)"}, ("a", type))
        assert isinstance(plan, Plan) and plan.fields[0][1].millis is millis


@pytest.mark.parametrize(
    ("type", "writer", "reason"),
    [
        ("BIGINT", "string", "the writer of field 'x' has string, the table BIGINT"),
        ("INT", "long", "the writer of field 'x' has long, the table INT"),
        ("INT", "null", "the writer of field 'x' has null, the table INT"),
        ("INT", ["null"], "the writer of field 'x' has nothing but null"),
        ("INT", [], "the writer of field 'x' has an unusual union"),
        ("INT", ["int", "int"], "the writer of field 'x' has an unusual union"),
        ("INT", ["null", "string", "int"], "the writer of field 'x' has string, the table INT"),
        ("DECIMAL(5, 2)", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
         "the writer of field 'x' has the scale 1, the table DECIMAL(5, 2)"),
        ("DECIMAL(5, 5)",
         {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 2, "scale": 5},
         "the writer of field 'x' has 2 digits, the table DECIMAL(5, 5)"),
        ("TIMESTAMP(3)", {"type": "long", "logicalType": "timestamp-nanos"},
         "the writer of field 'x' has timestamp-nanos"),
        ("ROW<y INT>", record(("y", "int"), ("y", "int"), name="R"), "the writer of field 'x' has unusual names"),
        ("STRING", {"type": "enum", "name": "E", "symbols": ["a-b"]}, "the writer of field 'x' has unusual names"),
        ("BYTES", {"type": "fixed", "name": "F", "size": -1}, "field 'x' of the writer has an unusual size"),
        ("ROW<y INT NOT NULL>", record(("z", "int"), name="R"),
         "the writer has no field 'x.y', whose default is not null"),
    ],
)  # fmt: skip
def test_what_has_no_plan(type: str, writer: Any, reason: str) -> None:
    assert planned({"x": type}, ("x", writer)) == reason


def test_skipped_fields_that_have_no_plan() -> None:
    node = record(("next", ["null", "N"]), name="N")
    assert (
        planned({"x": "INT"}, ("x", "int"), ("n", node))
        == "field 'n' of the writer is a record within itself"
    )
    items = {"type": "array", "items": "int"}
    assert (
        planned({"x": "INT"}, ("x", "int"), ("l", items))
        == "field 'l' of the writer is a list: its type is array"
    )


def test_a_default_other_than_null_has_no_plan() -> None:
    own = {"type": "record", "name": "T", "fields": [{"name": "x", "type": ["int", "null"], "default": 7}]}
    reason = "the writer has no field 'x', whose default is not null"
    assert planned({"x": "INT"}, ("y", "int"), own=own) == reason
