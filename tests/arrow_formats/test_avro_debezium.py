"""Debezium's events in Avro: Arrow's decoder gives the changes that Spark's paths give, or leaves events to them."""

from __future__ import annotations

import io
import json
import pickle
import random
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.arrow_formats.base import ChangeArrowDecoder, SchemaArrowDecoder
from bridge.arrow_formats.catalog import change_arrow_decoder
from bridge.definition import FormatSpec
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.format_rules.avro_derive import derive
from bridge.format_rules.avro_given import envelope
from bridge.schema import RowField, RowType
from bridge.secret import Secret
from bridge.ways import NotThisWay
from tests.arrow_formats import drawn_avro
from tests.arrow_formats.against_spark import array, spec
from tests.arrow_formats.changes_against_spark import changes_of, compare_changes
from tests.arrow_formats.drawing import times
from tests.formats.support import scalar
from tests.refusals import refusal

_FORMAT = "debezium-avro-confluent"
_VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
}
_SOURCE = {
    "type": "record",
    "name": "Source",
    "fields": [
        {"name": "version", "type": "string"},
        {"name": "ts_ms", "type": "long"},
        {"name": "snapshot", "type": ["null", {"type": "enum", "name": "S", "symbols": ["true", "false"]}]},
    ],
}
_BLOCK = {"type": "record", "name": "Block", "fields": [{"name": "id", "type": "string"}]}
_EVENT = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", _VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": _SOURCE},
        {"name": "transaction", "type": ["null", _BLOCK], "default": None},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
"""As Debezium registers it: one record type for both images, by its name in the second."""
_PARSED = fastavro.parse_schema(_EVENT)
_KEYS = [scalar("BIGINT"), scalar("STRING"), scalar("INT"), scalar("BYTES"), scalar("DECIMAL", 18, 0)]


def event(op: str, before: Any, after: Any, id: int = 7) -> bytes:
    def image(values: Any) -> Any:
        return None if values is None else dict(zip(("id", "name"), values, strict=True))

    source = {"version": "2.5", "ts_ms": 1, "snapshot": "false"}
    fields = {"before": image(before), "after": image(after), "source": source, "op": op, "ts_ms": 5}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _PARSED, {**fields, "transaction": None})
    return b"\0" + id.to_bytes(4, "big") + out.getvalue()


def known() -> ChangeArrowDecoder:
    given = spec(_FORMAT, {"id": "BIGINT", "name": "STRING"}, url=Secret("http://me:secret@127.0.0.1:9"))
    decoder = change_arrow_decoder(given, ("id",))
    assert isinstance(decoder, SchemaArrowDecoder)
    assert b"secret" not in pickle.dumps(decoder)
    return decoder.with_schemas({7: json.dumps(_EVENT)})


def test_events_as_debezium_writes_them() -> None:
    payloads = [
        event("r", None, (1, "a")),
        event("u", (1, "a"), (2, None)),
        b"",
        event("u", None, (2, "b")),
        event("d", (2, "b"), None),
    ]
    changes = [
        ("+", {"id": 1, "name": "a"}),
        ("-U", {"id": 1}),
        ("+", {"id": 2, "name": None}),
        ("+", {"id": 2, "name": "b"}),
        ("-D", {"id": 2}),
    ]
    assert changes_of(known().decode(array(payloads))) == changes
    assert changes_of(known().decode(array(payloads * 500))) == changes * 500
    assert changes_of(known().decode(array([b""]))) == []


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (event("t", None, None), "field 'op' of a change is missing or unknown"),
        (event("c", (1, "a"), None), "a change has no after image"),
        (event("d", None, (1, "a")), "a delete has no before image"),
        (event("c", None, (1, "a"), id=8), "schema id 8: it is not known yet"),
        (event("c", None, (1, "a"))[:-3], "."),
    ],
)
def test_what_is_left_to_spark(payload: bytes, reason: str) -> None:
    with pytest.raises(NotThisWay, match=reason):
        known().decode(array([event("c", None, (1, "a")), payload]))


def test_columns_that_are_not_read() -> None:
    given = spec(_FORMAT, {"id": "BIGINT", "tags": "ARRAY<STRING>"}, url="http://127.0.0.1:9")
    reason = "field 'before.tags' of the writer is a list: its type is array"
    assert refusal(lambda: change_arrow_decoder(given, ("id",))) == reason


def _compared(
    spark: SparkSession, registry: SchemaRegistryServer, subject: str, seed: int, count: int
) -> int:
    """Compare events of several writers, all but one drawn; return of how many Arrow reads changes."""
    rng = random.Random(seed)
    row = RowType((RowField("k", rng.choice(_KEYS)), *drawn_avro.drawn_row(rng, deep=1).fields))
    whole = envelope(row, row)
    client, made = SchemaRegistryClient({"url": registry.url}), []
    writers = [
        derive(whole, legacy_timestamps=True, nullable=True),
        *(drawn_avro.drawn_writer(rng, whole) for _ in range(2)),
    ]
    for writer in writers:
        id = int(client.register_schema(subject, Schema(json.dumps(writer), "AVRO")))
        for wild in (False, True):
            for document in drawn_avro.documents(
                rng, writer, count, wild=wild, changed=lambda value: _with_operation(rng, value)
            ):
                framed = b"\0" + id.to_bytes(4, "big") + document
                made.append(drawn_avro.damaged(rng, framed) if rng.random() < 0.2 else framed)
    given = FormatSpec(_FORMAT, {"url": registry.url, "subject": subject}, row, row.names)
    return compare_changes(spark, given, ("k",), made)


def _with_operation(rng: random.Random, value: Any) -> Any:
    """An event with an operation, where its schema has a text, and no enum, for it."""
    drawn = value.get("op") if isinstance(value, dict) else None
    is_text = isinstance(drawn, str) and drawn not in drawn_avro.SYMBOLS
    fits = is_text or (isinstance(drawn, bytes) and len(drawn) == 1)
    if fits and rng.random() < 0.95:
        op = rng.choice("cruuuddd")
        value["op"] = op.encode() if isinstance(drawn, bytes) else op
    return value


@times(1)
@given(seed=st.integers(0, 2**32))
def test_drawn_events_of_several_writers(
    spark: SparkSession, registry: SchemaRegistryServer, unique: Callable[[str], str], seed: int
) -> None:
    assert _compared(spark, registry, unique("subject"), seed, 60) > 10


@pytest.mark.slow
@times(12)
@given(seed=st.integers(0, 2**32))
def test_many_drawn_events_of_several_writers(
    spark: SparkSession, registry: SchemaRegistryServer, unique: Callable[[str], str], seed: int
) -> None:
    _compared(spark, registry, unique("subject"), seed, 100)
