"""Writer's schemas that cannot be read as the table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.format_rules.avro_derive import derive
from bridge.format_rules.avro_schema import parse
from bridge.formats.avro.schema_resolution import Incompatible, resolve
from bridge.schema import ArrayType, DataType
from tests.formats.support import row_type, scalar


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
def test_the_error_of_an_incompatible_schema_names_the_field(
    type: DataType, writer: str | None, words: str
) -> None:
    row = row_type(x=type)
    own = parse(json.dumps(derive(row, legacy_timestamps=True)), "own")
    fields = [] if writer is None else [("x", json.loads(writer) if writer[0] in "{[" else writer)]
    with pytest.raises(Incompatible, match=words):
        resolve(row.required(), own, parse(_writer(*fields), "writer"))
