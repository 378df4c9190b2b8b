"""Documents without any of their fields, by each decoder of json: keys, and envelopes of Kafka Connect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bridge.arrow_formats.catalog import arrow_decoder
from bridge.definition import FormatSpec
from bridge.formats import catalog as formats
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.schema import RowType
from bridge.ways import NotThisWay
from tests.formats.support import decode_all, row_type, scalar

_ROW = row_type(id=scalar("INT"), part=scalar("STRING"))
_ENVELOPE = b'{"schema":{"type":"struct"},"payload":{"id":1,"part":"secret"}}'
_DOCUMENTS = [
    b'{"id":1}',
    b'{"id":null}',
    _ENVELOPE,
    b"{}",
    b'{"ID":1,"other":"secret"}',
    b'[{"id":1},{"Id":2}]',
]
_NONE_OF_THE_KEY = (
    "the document has none of the key's fields 'id', 'part' "
    "(fields are matched by their exact names, as in Flink)"
)


def _decoded(
    spark: SparkSession, documents: list[bytes], row: RowType = _ROW, **given: Any
) -> list[tuple[Any, str | None]]:
    """Rows and errors of the full decode, to which the fast path must not say otherwise."""
    decoder = formats.get("json").decoder(row, given.pop("options", {}), **given)
    full, fast = decode_all(spark, decoder, documents), decode_all(spark, decoder, documents, fast=True)
    assert all(a in (b, (None, NEEDS_FULL_DECODE)) for a, b in zip(fast, full, strict=True))
    return full


def _without_connect(error: str | None) -> str | None:
    return error and error.partition(": it looks")[0]


def test_a_key_without_any_of_its_fields_is_bad(spark: SparkSession) -> None:
    actual = _decoded(spark, _DOCUMENTS, key=_ROW.names)
    assert [rows and [row["id"] for _, row in rows] for rows, _ in actual] == [
        [1],
        [None],
        None,
        None,
        None,
        None,
    ]
    envelope = "the document has none of the fields 'id', 'part'"
    assert [_without_connect(error) for _, error in actual] == [None, None, envelope, *[_NONE_OF_THE_KEY] * 3]
    assert actual[2][1] == (
        f"{envelope}: it looks like the envelope of Kafka Connect, "
        "{\"schema\": ..., \"payload\": ...}, whose row is in 'payload': set 'key.converter.schemas.enable' to "
        "false in the connector and write the topic anew"
    )


def test_where_nulls_are_left_out_an_empty_object_is_a_key_of_nulls(spark: SparkSession) -> None:
    actual = _decoded(
        spark, [b" { } ", _ENVELOPE], key=_ROW.names, options={"encode.ignore-null-fields": True}
    )
    assert actual[0] == ([("+I", {"id": None, "part": None})], None)
    assert "Kafka Connect" in (actual[1][1] or "")


def test_a_value_may_have_none_of_its_fields_unless_it_is_an_envelope(spark: SparkSession) -> None:
    actual = _decoded(spark, _DOCUMENTS)
    assert [len(rows or []) for rows, _ in actual] == [1, 1, 0, 1, 1, 2]
    assert "'value.converter.schemas.enable'" in (actual[2][1] or "")
    with_payload = row_type(payload=row_type(id=scalar("INT")))
    assert _decoded(spark, [_ENVELOPE], with_payload) == [([("+I", {"payload": {"id": 1}})], None)]


@pytest.mark.parametrize("document", _DOCUMENTS[:5])
def test_arrow_leaves_envelopes_to_spark(document: bytes) -> None:
    decoder = arrow_decoder(FormatSpec("json", {}, _ROW, _ROW.names))
    payloads = pa.array([_DOCUMENTS[0], document], pa.binary())
    if document != _ENVELOPE:
        assert decoder.decode(payloads).num_rows == 2
        return
    with pytest.raises(NotThisWay, match="is an envelope of Kafka Connect"):
        decoder.decode(payloads)
    with_schema = replace(_ROW, fields=(*_ROW.fields, *row_type(payload=row_type(id=scalar("INT"))).fields))
    other = arrow_decoder(FormatSpec("json", {}, with_schema, with_schema.names))
    assert other.decode(payloads)["payload"].to_pylist() == [None, {"id": 1}]
