"""debezium-avro-confluent: the changes of each op, and the written events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import OptionError
from bridge.formats import catalog as formats
from bridge.formats.base import NEEDS_FULL_DECODE, TRUNCATES
from tests.formats.support import decode_all, encode_changes, row_type, scalar

_FORMAT = formats.get("debezium-avro-confluent")
_ROW = row_type(id=scalar("BIGINT"), tiny=scalar("TINYINT"))
_REPLICA_IDENTITY = (
    'The "before" field of {} message is null, if you are using Debezium Postgres Connector, please check the '
    "Postgres table has been set REPLICA IDENTITY to FULL level."
)


def _envelope() -> str:
    """As Debezium writes it: one record type for both images, `source` in between, `op` not null."""
    fields = [{"name": "id", "type": "long"}, {"name": "tiny", "type": ["null", "int"], "default": None}]
    state = {"type": "record", "name": "Value", "fields": fields, "connect.name": "db.t.Value"}
    source = {
        "type": "record",
        "name": "Source",
        "namespace": "io",
        "fields": [{"name": "db", "type": "string"}],
    }
    envelope = [
        {"name": "before", "type": ["null", state], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": source},
        {"name": "op", "type": "string"},
    ]
    return json.dumps({"type": "record", "name": "Envelope", "namespace": "db.t", "fields": envelope})


def _document(id: int, before: int | None, after: int | None, op: str, tiny: int = 1) -> bytes:
    def state(key: int | None) -> bytes:
        zigzag = bytes([tiny << 1]) if tiny < 64 else bytes([tiny << 1 & 127 | 128, tiny >> 6])
        return b"\x00" if key is None else b"\x02" + bytes([key << 1]) + b"\x02" + zigzag

    return (
        b"\x00"
        + id.to_bytes(4, "big")
        + state(before)
        + state(after)
        + b"\x02d"
        + bytes([len(op) << 1])
        + op.encode()
    )


def test_each_op_gives_the_changes_that_flink_gives(
    spark: SparkSession, registry: SchemaRegistryServer, registry_options: dict[str, Any]
) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    id = int(client.register_schema(registry_options["subject"], Schema(_envelope(), "AVRO")))
    one, two = {"id": 1, "tiny": 1}, {"id": 2, "tiny": 1}
    expected: dict[bytes | None, tuple[Any, str | None]] = {
        _document(id, None, 1, "c"): ([("+I", one)], None),
        _document(id, None, 1, "r"): ([("+I", one)], None),
        _document(id, 1, 2, "u"): ([("-U", one), ("+U", two)], None),
        _document(id, 1, None, "d"): ([("-D", one)], None),
        _document(id, None, None, "d"): (None, _REPLICA_IDENTITY.format("DELETE")),
        _document(id, 1, None, "u"): (None, 'The "after" field of UPDATE message is null'),
        _document(id, None, None, "c"): (None, 'The "after" field of INSERT message is null'),
        _document(id, 1, 2, "t"): (
            None,
            TRUNCATES,
        ),
        _document(id, None, 1, "c", 200): (None, "field 'after.tiny': out of range of TINYINT"),
        b"": (None, None),
        None: (None, None),
    }
    actual = decode_all(spark, _FORMAT.decoder(_ROW, registry_options), list(expected))
    assert actual == list(expected.values())
    fast = decode_all(spark, _FORMAT.decoder(_ROW, registry_options), list(expected), fast=True)
    assert fast == [(None, NEEDS_FULL_DECODE) if "TINYINT" in (e or "") else (rows, e) for rows, e in actual]
    alone = [_document(id, None, 2, "u")]
    assert decode_all(spark, _FORMAT.decoder(_ROW, registry_options), alone) == [
        (None, _REPLICA_IDENTITY.format("UPDATE"))
    ]
    # With a key a retraction has the key's fields only (bridge/formats/cdc/common.py), and no others are read.
    before = {"id": 1, "tiny": None}
    expected = {
        alone[0]: ([("+U", two)], None),
        _document(id, 1, 2, "u"): ([("-U", before), ("+U", two)], None),
        _document(id, 1, None, "d"): ([("-D", before)], None),
    }
    keyed = _FORMAT.decoder(_ROW, registry_options, key=("id",))
    assert decode_all(spark, keyed, list(expected)) == list(expected.values())
    assert decode_all(spark, keyed, list(expected), fast=True) == list(expected.values())


def test_an_update_is_one_message(
    spark: SparkSession, registry: SchemaRegistryServer, registry_options: dict[str, Any]
) -> None:
    """Under the schema that Flink derives: nullable, with records for both images."""
    changes = [(None, (1, 1)), ((1, 1), (2, None)), ((2, None), None), (None, None)]
    written = encode_changes(spark, _FORMAT.encoder(_ROW, registry_options), _ROW, changes)
    latest = SchemaRegistryClient({"url": registry.url}).get_latest_version(registry_options["subject"])
    assert latest.schema is not None
    nothing, envelope = json.loads(str(latest.schema.schema_str))
    assert (nothing, [f["name"] for f in envelope["fields"]]) == ("null", ["before", "after", "op"])
    assert [f["type"][1]["name"] for f in envelope["fields"][:2]] == ["record_before", "record_after"]
    assert [w and w[5:] for w in written] == [
        b"\x02\x00\x02\x02\x02\x02\x02\x02\x02c",
        b"\x02\x02\x02\x02\x02\x02\x02\x02\x04\x00\x02\x02u",
        b"\x02\x02\x02\x04\x00\x00\x02\x02d",
        None,
    ]


def test_a_given_schema_that_is_not_of_the_table_is_refused_with_flink_s_message() -> None:
    options = {"url": "http://127.0.0.1:9", "subject": "s", "schema": _envelope()}
    words = "Schema provided for 'debezium-avro-confluent' format must be a nullable record type with fields"
    with pytest.raises(OptionError, match=words) as refused:
        _FORMAT.decoder(_ROW, options)
    assert "only one of schema and table has source" in str(refused.value)
