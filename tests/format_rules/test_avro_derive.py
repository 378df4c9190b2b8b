"""The Avro schema that Flink derives from a row, and the rows that have none."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.errors import DefinitionError, OptionError
from bridge.format_rules.avro_derive import check, derive
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
        (scalar("TIMESTAMP", 6), "local-timestamp-millis"),
        (scalar("TIMESTAMP_LTZ", 3), "timestamp-millis"),
        (scalar("TIMESTAMP_LTZ", 4), "timestamp-millis"),
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
def test_rows_that_avro_cannot_represent_are_refused_by_field(row: Any, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        check("avro", row)


@pytest.mark.parametrize("name", ["_x1", "ünï", "名"])
def test_names_that_avro_s_java_library_accepts(name: str) -> None:
    check("avro", row_type(**{name: scalar("INT")}))
