"""Debezium's and GoldenGate's documents: which changes they are, and which are left to Spark's path."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.base import ChangeArrowDecoder
from bridge.arrow_formats.catalog import change_arrow_decoder
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array, spec
from tests.arrow_formats.changes_against_spark import changes_of, made_changes
from tests.refusals import refusal

_TYPES = {"id": "BIGINT", "name": "STRING", "tags": "ARRAY<STRING>", "codes": "ARRAY<INT>"}
_HIDDEN = "__debezium_unavailable_value"


def debezium(**options: Any) -> ChangeArrowDecoder:
    return made_changes(spec("debezium-json", _TYPES, **options), ("id",))


def test_debezium_s_operations() -> None:
    payloads = [
        b'{"before":null,"after":{"id":1,"name":"a"},"op":"c","source":{"ts_ms":1,"x":[{}]},"ts_ms":2}',
        b'{"after":{"id":1,"name":"b"},"op":"r"}',
        b'{"before":{"id":1,"name":5},"after":{"id":2},"op":"u"}',
        b'{"before":null,"after":{"id":2,"name":"c"},"op":"u"}',
        b'{"before":{"id":2},"after":null,"op":"d"}',
    ]
    row = dict.fromkeys(_TYPES)
    expected = [
        ("+", row | {"id": 1, "name": "a"}),
        ("+", row | {"id": 1, "name": "b"}),
        ("-U", {"id": 1}),
        ("+", row | {"id": 2}),
        ("+", row | {"id": 2, "name": "c"}),
        ("-D", {"id": 2}),
    ]
    assert changes_of(debezium().decode(array(payloads))) == expected
    wrapped = [b'{"schema":{"fields":[{}]},"payload":%s}' % payload for payload in payloads]
    assert changes_of(debezium(schema_include=True).decode(array(wrapped))) == expected


def test_documents_without_a_change() -> None:
    """Tombstones, and zero bytes."""
    document = b'{"after":{"id":1},"op":"c"}'
    payloads = pa.array([None, document, b"", document, None], pa.binary())
    assert [row["id"] for _, row in changes_of(debezium().decode(payloads))] == [1, 1]
    for none in ([], [None], [b""], [b"", None]):
        made = debezium().decode(pa.array(none, pa.binary()))
        assert changes_of(made) == []
        assert made.additions.schema == arrow_schema(spec("ogg-json", _TYPES).row)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b'{"after":{"id":1},"op":"t"}', "field 'op' of a change is missing or unknown"),
        (b'{"op":"m","message":{}}', "field 'op' of a change is missing or unknown"),
        (b'{"after":{"id":1}}', "field 'op' of a change is missing or unknown"),
        (b'{"before":{"id":1},"op":"c"}', "a change has no after image"),
        (b'{"before":{"id":1},"after":null,"op":"u"}', "a change has no after image"),
        (b'{"after":{"id":1},"op":"d"}', "a delete has no before image"),
        (b'{"after":{"id":"1"},"op":"c"}', "Arrow's reader refuses a document"),
        (b'{"before":{"id":"1"},"after":{"id":1},"op":"u"}', "Arrow's reader refuses a document"),
        (b'{"after":{"id":1},"op":"c","op":"d"}', "Arrow's reader refuses a document"),
        (b"null", "a document is not one object"),
    ],
)
def test_what_is_left_to_spark(document: bytes, reason: str) -> None:
    with pytest.raises(NotThisWay, match=reason):
        debezium().decode(array([b'{"after":{"id":1},"op":"c"}', document]))


@pytest.mark.parametrize(
    "field",
    [
        f'"name":"{_HIDDEN}"',
        f'"name":"{_HIDDEN}"'.replace("_d", r"\u005fd"),
        f'"tags":["{_HIDDEN}"]',
        f'"codes":{list(_HIDDEN.encode())}',
    ],
)
def test_unavailable_values_are_left_to_spark(field: str) -> None:
    document = f'{{"after":{{"id":1,{field}}},"op":"u"}}'.encode()
    with pytest.raises(NotThisWay, match="has an unavailable value"):
        debezium().decode(array([document]))
    by_ogg = made_changes(spec("ogg-json", _TYPES), ("id",))
    (change,) = changes_of(by_ogg.decode(array([document.replace(b'"op":"u"', b'"op_type":"U"')])))
    assert change[0] == "+"


def test_unavailable_looking_values_are_values() -> None:
    codes = list(_HIDDEN.encode())
    document = f'{{"after":{{"id":1,"name":"{_HIDDEN}.","codes":{codes[::-1]}}},"op":"c"}}'.encode()
    assert len(changes_of(debezium().decode(array([document])))) == 1


def test_a_wrapper_that_is_missing_is_left_to_spark() -> None:
    with pytest.raises(NotThisWay, match="field 'payload' is null or missing"):
        debezium(schema_include=True).decode(array([b'{"after":{"id":1},"op":"c"}']))


def test_golden_gate_s_operations() -> None:
    payloads = [
        b'{"table":"T","op_type":"I","op_ts":"2026-01-01 00:00:00","after":{"id":1}}',
        b'{"op_type":"U","before":{"id":1},"after":{"id":2}}',
        b'{"op_type":"D","before":{"id":2}}',
    ]
    decoder = made_changes(spec("ogg-json", {"id": "BIGINT"}), ("id",))
    expected = [("+", {"id": 1}), ("-U", {"id": 1}), ("+", {"id": 2}), ("-D", {"id": 2})]
    assert changes_of(decoder.decode(array(payloads))) == expected
    assert changes_of(pickle.loads(pickle.dumps(decoder)).decode(array(payloads))) == expected
    with pytest.raises(NotThisWay):
        decoder.decode(array([b'{"op_type":"T"}']))


def test_columns_that_are_not_read() -> None:
    given = spec("debezium-json", {"id": "BIGINT", "photo": "BYTES"})
    assert (
        refusal(lambda: change_arrow_decoder(given, ("id",))) == "field 'photo' of a json document is BYTES"
    )
