"""The option `schema` against the table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.errors import OptionError
from bridge.format_rules.avro_given import given_schema
from tests.formats.support import row_type, scalar


def _writer(*fields: tuple[str, Any]) -> str:
    return json.dumps(
        {"type": "record", "name": "W", "fields": [{"name": name, "type": type} for name, type in fields]}
    )


def test_a_given_schema_must_match_the_table() -> None:
    row = row_type(a=scalar("INT"), s=scalar("STRING"), t=scalar("TIMESTAMP", 3))
    millis = {"type": "long", "logicalType": "local-timestamp-millis"}
    words = "Schema provided for 'avro-confluent' format does not match the table schema"
    fits = _writer(("a", "int"), ("s", ["string", "null"]), ("t", millis))
    assert [f.name for f in given_schema(fits, row, "avro-confluent.schema", words).fields] == ["a", "s", "t"]
    for fields, reason in (
        ([("a", "long"), ("s", "string"), ("t", millis)], "field 'a': long is not INT"),
        ([("a", "int"), ("s", "string")], "only one of schema and table has t"),
        ([("a", "int"), ("s", ["string", "int"]), ("t", millis)], "field 's': a union of 2 types"),
        ([("a", "int"), ("s", "string"), ("t", "long")], "field 't': long is not TIMESTAMP"),
    ):
        with pytest.raises(OptionError, match=words) as refused:
            given_schema(_writer(*fields), row, "avro-confluent.schema", words)
        assert reason in str(refused.value)
