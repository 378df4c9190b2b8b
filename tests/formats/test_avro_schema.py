"""Avro schemas without Spark: derived as Flink does, given, parsed, resolved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.errors import DefinitionError, OptionError
from bridge.format_rules.avro_derive import check, derive
from bridge.format_rules.avro_given import given
from bridge.format_rules.avro_schema import parse
from bridge.formats.avro.schema_resolution import Incompatible, resolve
from bridge.schema import ArrayType, DataType, MapType
from tests.formats.support import row_type, scalar

_SPACE = "org.apache.flink.avro.generated"


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": _SPACE, "fields": list(fields)}


def test_the_schema_is_the_one_that_flink_derives() -> None:
    """AvroSchemaConverter: names of nested records, unions with null first, NOT NULL without union or default."""
    row = row_type(
        id=scalar("BIGINT").required(),
        small=scalar("SMALLINT"),
        price=scalar("DECIMAL", 9, 2).required(),
        at=scalar("TIMESTAMP", 3),
        deep=row_type(day=scalar("DATE")),
        list=ArrayType(row_type(x=scalar("DOUBLE")).required()).required(),
        tags=MapType(scalar("STRING").required(), scalar("BYTES")),
    )
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    day = {"type": "int", "logicalType": "date"}
    deep = _record("record_deep", {"name": "day", "type": ["null", day], "default": None})
    items = _record("record_list", {"name": "x", "type": ["null", "double"], "default": None})
    assert derive(row, legacy_timestamps=True) == _record(
        "record",
        {"name": "id", "type": "long"},
        {"name": "small", "type": ["null", "int"], "default": None},
        {"name": "price", "type": decimal},
        {"name": "at", "type": ["null", millis], "default": None},
        {"name": "deep", "type": ["null", deep], "default": None},
        {"name": "list", "type": {"type": "array", "items": items}},
        {"name": "tags", "type": ["null", {"type": "map", "values": ["null", "bytes"]}], "default": None},
    )


@pytest.mark.parametrize(
    ("type", "logical"),
    [
        (scalar("TIMESTAMP", 0), "local-timestamp-millis"),
        (scalar("TIMESTAMP", 6), "local-timestamp-micros"),
        (scalar("TIMESTAMP_LTZ", 3), "timestamp-millis"),
        (scalar("TIMESTAMP_LTZ", 4), "timestamp-micros"),
    ],
)
def test_timestamps_have_new_types_since_flink_1_19(type: DataType, logical: str) -> None:
    made = derive(row_type(t=type), legacy_timestamps=False)
    assert made["fields"][0]["type"] == ["null", {"type": "long", "logicalType": logical}]


@pytest.mark.parametrize(
    ("type", "words"),
    [
        (scalar("TIMESTAMP", 6), "Avro does not support TIMESTAMP type with precision: 6"),
        (scalar("TIMESTAMP_LTZ", 3), "Unsupported to derive Schema for type: TIMESTAMP_LTZ"),
    ],
)
def test_the_old_mapping_refuses_what_flink_refuses(type: DataType, words: str) -> None:
    with pytest.raises(OptionError, match=words) as refused:
        check("avro", row_type(t=type), strict_legacy=True)
    assert "field 't'" in str(refused.value) and "'avro.timestamp_mapping.legacy' = 'false'" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (row_type(**{"a.b": scalar("INT")}), "'a.b' is no Avro name"),
        (row_type(r=row_type(**{"1st": scalar("INT")})), "'r.1st' is no Avro name"),
        (row_type(**{"": scalar("INT")}), "'' is no Avro name"),
        (row_type(a=scalar("INT"), A=scalar("INT")), "differ by case"),
        (row_type(m=MapType(scalar("INT"), scalar("INT"))), "non-string as key type of map.*INT.*'m'"),
        (row_type(t=scalar("TIME", 0)), "no TIME type"),
        (
            row_type(a_b=row_type(x=scalar("INT")), a=row_type(b=row_type(x=scalar("INT")))),
            "field 'a.b'.*field 'a_b'.*record_a_b",
        ),
    ],
)
def test_what_avro_cannot_hold_is_refused_by_name(row: Any, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        check("avro", row)


@pytest.mark.parametrize("name", ["_x1", "ünï", "名"])
def test_names_that_avro_s_java_library_takes(name: str) -> None:
    check("avro", row_type(**{name: scalar("INT")}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not known"),
        ('"nothing"', "the type 'nothing' is not known"),
        ('{"type": "record", "name": "a"}', "at or below 'fields'"),
        ('{"type": "record", "name": "a", "fields": [{"name": "x", "type": "b"}]}', "'b' is not known"),
        (
            '[{"type": "fixed", "name": "a", "size": 1}, {"type": "fixed", "name": "a", "size": 2}]',
            "defined twice",
        ),
        ("{}", "not an Avro schema"),
        ("7", "not an Avro schema"),
    ],
)
def test_what_is_no_schema_is_said(text: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=f"^'avro-confluent.schema': .*{words}"):
        parse(text, "'avro-confluent.schema'")


def test_names_are_followed_through_namespaces_and_into_themselves() -> None:
    tree = {
        "type": "record",
        "name": "a.Tree",
        "fields": [
            {"name": "leaf", "type": {"type": "enum", "name": "Leaf", "symbols": ["X"]}},
            {"name": "next", "type": ["null", "Tree"]},
            {"name": "again", "type": "a.Leaf"},
        ],
    }
    leaf, following, again = parse(json.dumps(tree), "it").fields
    assert (leaf.node.full_name, again.node.full_name) == ("a.Leaf", "a.Leaf")
    assert following.node.branches[1].full_name == "a.Tree"
    assert parse("string", "it").kind == "string"


def _writer(*fields: tuple[str, Any]) -> str:
    return json.dumps(
        {"type": "record", "name": "W", "fields": [{"name": name, "type": type} for name, type in fields]}
    )


@pytest.mark.parametrize(
    ("type", "writer", "words"),
    [
        (scalar("BIGINT"), "string", "field 'x': the writer has string, the table BIGINT"),
        (scalar("INT"), "long", "field 'x': the writer has long, the table INT"),
        (scalar("INT").required(), None, "field 'x': the writer's schema has no such field"),
        (scalar("STRING"), "null", "field 'x': the writer has nothing but null"),
        (
            row_type(y=scalar("INT")),
            _writer(("y", "double")).replace("W", "V"),
            "field 'x.y': the writer has double",
        ),
        (ArrayType(scalar("INT")), '{"type": "map", "values": "int"}', "field 'x': the writer has map"),
        (scalar("TIMESTAMP", 3), '{"type": "long", "logicalType": "timestamp-nanos"}', "timestamp-nanos"),
        (
            scalar("DECIMAL", 10, 2),
            '{"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 40}',
            "field 'x': the writer's scale is 40",
        ),
    ],
)
def test_an_incompatible_schema_is_told_by_field(type: DataType, writer: str | None, words: str) -> None:
    row = row_type(x=type)
    own = parse(json.dumps(derive(row, legacy_timestamps=True)), "own")
    fields = [] if writer is None else [("x", json.loads(writer) if writer[0] in "{[" else writer)]
    with pytest.raises(Incompatible, match=words):
        resolve(row.required(), own, parse(_writer(*fields), "writer"))


def test_a_given_schema_must_say_what_the_table_says() -> None:
    row = row_type(a=scalar("INT"), s=scalar("STRING"), t=scalar("TIMESTAMP", 3))
    millis = {"type": "long", "logicalType": "local-timestamp-millis"}
    words = "Schema provided for 'avro-confluent' format does not match the table schema"
    fits = _writer(("a", "int"), ("s", ["string", "null"]), ("t", millis))
    assert [f.name for f in given(fits, row, "avro-confluent.schema", words).fields] == ["a", "s", "t"]
    for fields, reason in (
        ([("a", "long"), ("s", "string"), ("t", millis)], "field 'a': long is not INT"),
        ([("a", "int"), ("s", "string")], "only one of schema and table has t"),
        ([("a", "int"), ("s", ["string", "int"]), ("t", millis)], "field 's': a union of 2 types"),
        ([("a", "int"), ("s", "string"), ("t", "long")], "field 't': long is not TIMESTAMP"),
    ):
        with pytest.raises(OptionError, match=words) as refused:
            given(_writer(*fields), row, "avro-confluent.schema", words)
        assert reason in str(refused.value)
