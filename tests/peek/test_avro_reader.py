"""Avro documents as text."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from bridge.format_rules.avro_derive import derive
from bridge.peek.readers import Undecodable
from bridge.peek.view import reader
from tests.peek.pipelines import value_spec

COLUMNS = "id BIGINT, amount DECIMAL(10, 2), at TIMESTAMP(3), tags ARRAY<STRING>, raw BYTES"
ROW: dict[str, Any] = {"id": 1, "amount": None, "at": None, "tags": ["a", None], "raw": b"\x00"}


def test_avro_is_read_by_the_schema_that_flink_derives(tmp_path: Path) -> None:
    """Written by fastavro, which shares nothing with the bridge's own encoder."""
    spec = value_spec(tmp_path, "avro", COLUMNS)
    schema = fastavro.parse_schema(derive(spec.row, legacy_timestamps=True))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, ROW)
    read = reader(spec)
    assert json.loads(read(out.getvalue())) == {**ROW, "raw": "AA=="}
    with pytest.raises(Undecodable, match="1 bytes follow the Avro document"):
        read(out.getvalue() + b"x")
    with pytest.raises(Undecodable, match="no document of its Avro schema"):
        read(b"\x05")
