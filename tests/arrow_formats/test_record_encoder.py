"""Drawn rows: the records that tasks make of them are, byte for byte, those that Spark makes."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.arrow_formats import record_encoder as module
from bridge.arrow_formats.record_encoder import RETRACTS, record_encoder
from bridge.columns import POSITION
from bridge.definition import FormatSpec, Topic
from bridge.encode import encode, leave_to_tasks
from bridge.errors import UnwritableRowError
from bridge.schema import PhysicalColumn, RowField, RowType, TableSchema
from tests.arrow_formats.drawing import times
from tests.arrow_formats.drawn_rows import TYPES, drawn_rows
from tests.refusals import refusal

_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "timestamp-format.standard": st.sampled_from(["SQL", "ISO-8601"]),
        "encode.decimal-as-plain-number": st.booleans(),
        "encode.ignore-null-fields": st.booleans(),
    },
)


def _spec(columns: list[str], options: dict[str, Any], prefix: str = "") -> FormatSpec:
    fields = (RowField(f"{prefix}{name}", TYPES[name]) for name in columns)
    return FormatSpec("json", options, RowType(tuple(fields)), tuple(columns))


def _topic(names: list[str], key: FormatSpec | None, value: FormatSpec) -> Topic:
    schema = TableSchema(tuple(PhysicalColumn(name, TYPES[name]) for name in names), (names[0],))
    return Topic("upsert-kafka", ("t",), schema, key, value, {})


def _compare(spark: SparkSession, topic: Topic, rng: random.Random, rows: int = 300) -> None:
    encoder = record_encoder(topic)
    changes = drawn_rows(spark, rng, {c.name: c.type for c in topic.schema.physical}, rows)
    expected = encode(changes, topic).orderBy(f"{POSITION}.version").toArrow()
    raw = leave_to_tasks(changes, topic, encoder).orderBy(f"{POSITION}.version").toArrow()
    assert raw.column_names == [*encoder.sources.values(), RETRACTS, POSITION]
    [batch] = raw.combine_chunks().to_batches()
    cut = rng.randrange(rows)  # batches of a shard are cut, too
    keys, values = [], []
    for part in (batch.slice(0, cut), batch.slice(cut), batch.slice(0, 0)):
        made_keys, made_values = encoder.documents(part)
        keys += made_keys.to_pylist()
        values += made_values.to_pylist()
    assert keys == expected["key"].to_pylist()
    assert values == expected["value"].to_pylist()


@times(6)
@given(
    names=st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=8, unique=True),
    key_options=_OPTIONS,
    options=_OPTIONS,
    seed=st.integers(0, 2**32),
)
def test_drawn_rows(
    spark: SparkSession,
    names: list[str],
    key_options: dict[str, Any],
    options: dict[str, Any],
    seed: int,
) -> None:
    rng = random.Random(seed)
    key = rng.choice([None, _spec(names[: rng.randint(1, len(names))], key_options, "k_")])
    fields = rng.sample(names, rng.randint(0, len(names)))
    _compare(spark, _topic(names, key, _spec(fields, options)), rng)


@pytest.mark.parametrize("standard", ["SQL", "ISO-8601"])
def test_rows_of_every_type(spark: SparkSession, standard: str) -> None:
    names, rng = list(TYPES), random.Random(standard)
    value = _spec(names, {"timestamp-format.standard": standard})
    _compare(spark, _topic(names, _spec(names[:2], {}), value), rng, rows=2000)


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_many_rows_of_every_type(spark: SparkSession, name: str) -> None:
    value = _spec([name], {})
    for _ in range(3):
        _compare(spark, _topic([name], value, value), random.Random(), rows=20_000)


def test_batches_of_many_bytes(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 2 GiB of texts have another type in Arrow."""
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    names = ["int", "text", "money", "bytes", "at3", "day", "double", "q`u'o\"t\\e\n.名"]
    for options in ({}, {"encode.ignore-null-fields": True}):
        topic = _topic(names, _spec(names[:2], {}), _spec(names, options))
        _compare(spark, topic, random.Random(4))


def test_documents_of_many_bytes_have_the_large_type(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = record_encoder(_topic(["text"], None, _spec(["text"], {})))
    batch = pa.RecordBatch.from_pydict({"__0": pa.array(["é"]), RETRACTS: pa.array([False])})
    assert encoder.documents(batch)[1].type == pa.binary()
    made = pa.array(['{"text":"é"}'.encode()], pa.large_binary())
    assert (
        encoder.documents(batch.cast(pa.schema([("__0", pa.large_string()), (RETRACTS, pa.bool_())])))[1]
        == made
    )
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    assert encoder.documents(batch)[1] == made


def test_texts_that_are_not_utf_8_are_refused_unless_their_row_is_gone() -> None:
    texts = pa.array([b"a", b"\xff"])
    bad = pa.Array.from_buffers(pa.string(), 2, texts.buffers())
    encoder = record_encoder(_topic(["int", "text"], _spec(["int"], {}), _spec(["text"], {})))

    def documents(gone: bool) -> tuple[pa.Array, pa.Array]:
        columns = {"__0": pa.array([1, 2], pa.int32()), "__1": bad, RETRACTS: pa.array([False, gone])}
        return encoder.documents(pa.RecordBatch.from_pydict(columns))

    keys, values = documents(gone=True)
    assert keys.to_pylist() == [b'{"int":1}', b'{"int":2}'] and values.to_pylist() == [b'{"text":"a"}', None]
    with pytest.raises(
        UnwritableRowError, match="column 'text' of a row holds a text that is not valid UTF-8, which "
    ):
        documents(gone=False)


def test_why_there_is_none() -> None:
    key = _spec(["int"], {})
    csv = FormatSpec("csv", {}, key.row, key.columns)
    assert refusal(lambda: record_encoder(_topic(["int"], key, csv))) == "the format is csv"
    assert refusal(lambda: record_encoder(_topic(["int"], csv, key))) == "the format is csv"
