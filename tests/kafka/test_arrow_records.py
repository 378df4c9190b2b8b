"""What a task makes of its rows before it sends them; no Spark and no broker."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from bridge.errors import KafkaError
from bridge.kafka.arrow_records import ArrowRecords
from bridge.schema import MetadataColumn, ScalarType, TableSchema
from tests.kafka.topics import topic_of

_HEADER = pa.struct({"key": pa.string(), "value": pa.binary()}.items())


def _batch(**more: pa.Array) -> pa.RecordBatch:
    rows = len(next(iter(more.values())))
    return pa.RecordBatch.from_pydict(
        {"key": pa.array([b"k"] * rows), "value": pa.array([b"v"] * rows), **more}
    )


def test_null_headers_and_headers_without_a_name_are_omitted() -> None:
    """As Flink does: a header has a name. A null value is none of this."""
    headers = pa.array(
        [
            [None, {"key": "a", "value": b"1"}, {"key": None, "value": b"2"}, {"key": "n", "value": None}],
            [None],
            [{"key": None, "value": None}],
            None,
            [],
        ],
        type=pa.list_(_HEADER),
    )
    assert ArrowRecords(("t",)).records(_batch(headers=headers)).headers == [
        [("a", b"1"), ("n", None)],
        [],
        [],
        None,
        [],
    ]


def test_bytes_are_those_of_keys_and_values() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"key": pa.array([b"k", b"kk", None]), "value": pa.array([b"value", None, b""])}
    )
    for part in (batch, batch.slice(1), batch.slice(0, 0)):
        records = ArrowRecords(("t",)).records(part)
        assert records.size == replace(records, counted_bytes=None).size
    assert ArrowRecords(("t",)).records(batch).size == 8


def test_times_are_milliseconds_or_none() -> None:
    times = pa.array([1_000, 1_999, None, 1_582_977_600_123_999], type=pa.timestamp("us", "UTC"))
    assert ArrowRecords(("t",)).records(_batch(timestamp=times)).timestamps == [1, 1, None, 1_582_977_600_123]
    nothing = pa.array([None, None], type=pa.timestamp("us", "UTC"))
    assert ArrowRecords(("t",)).records(_batch(timestamp=nothing)).timestamps == [None, None]


@pytest.mark.parametrize(
    ("micros", "value"),
    [
        (0, "is 1970-01-01T00:00:00Z, which .* replaces by the current time"),
        (999, "is 1970-01-01T00:00:00Z, "),
        (-5_000, "is 5 ms before 1970-01-01T00:00:00Z"),
    ],
)
@pytest.mark.parametrize(
    ("primary", "past"),
    [
        (("at",), "another value in the table .* then `bridge resync FILE`.* Or declare 'at' VIRTUAL"),
        ((), "to skip this one, declare .*'at-least-once'.* 'at' VIRTUAL"),
    ],
)
def test_a_time_that_cannot_be_sent_names_the_ways_out(
    micros: int, value: str, primary: tuple[str, ...], past: str
) -> None:
    """librdkafka takes 0 for now, and no call of its Python client sends it."""
    at = MetadataColumn("at", ScalarType("TIMESTAMP_LTZ", (3,)), "timestamp")
    topic = replace(topic_of("one", "two", servers="x:1"), schema=TableSchema((at,), primary))
    batch = _batch(
        timestamp=pa.array([7_000, micros, None], type=pa.timestamp("us", "UTC")),
        topic=pa.array(["one", "two", "one"]),
    )
    with pytest.raises(KafkaError) as raised:
        ArrowRecords.of(topic).records(batch)
    assert raised.match(
        r"^a record for 'two' cannot be sent: its timestamp \(column 'at', METADATA FROM 'timestamp'\)"
    )
    assert raised.match(value) and raised.match(past)
