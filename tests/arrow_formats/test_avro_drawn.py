"""Drawn schemas, values and damage: Arrow's decoders of Avro give what Spark's paths give, or leave it to them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.definition import FormatSpec
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.format_rules.avro_derive import derive
from bridge.schema import RowField, RowType
from tests.arrow_formats import drawn_avro
from tests.arrow_formats.against_spark import compare
from tests.arrow_formats.drawing import times

_WRITERS = 4
"""Schemas of a subject; the newest five are known from the first."""


def _spec(format: str, row: RowType, **options: Any) -> FormatSpec:
    return FormatSpec(format, options, row, row.names)


def _plain(spark: SparkSession, seed: int, count: int) -> None:
    rng = random.Random(seed)
    fields = [RowField(f"s{at}", type) for at, type in enumerate(rng.sample(drawn_avro.SCALARS, 6))]
    row = RowType((*fields, *drawn_avro.drawn_row(rng).fields))
    schema = derive(row, legacy_timestamps=False)
    made = drawn_avro.documents(rng, schema, count, wild=False)
    made += drawn_avro.documents(rng, schema, count, wild=True)
    damaged = [drawn_avro.damaged(rng, document) for document in made]
    drawn = _spec("avro", row, **{"timestamp_mapping.legacy": False})
    assert compare(spark, drawn, damaged) > count // 5


def _framed(spark: SparkSession, registry: SchemaRegistryServer, subject: str, seed: int, count: int) -> int:
    """Compare documents of several writers, all but one drawn; return how many Arrow reads."""
    rng = random.Random(seed)
    row = drawn_avro.drawn_row(rng)
    client, made = SchemaRegistryClient({"url": registry.url}), []
    writers = [
        derive(row, legacy_timestamps=True),
        *(drawn_avro.drawn_writer(rng, row) for _ in range(_WRITERS - 1)),
    ]
    for writer in writers:
        id = int(client.register_schema(subject, Schema(json.dumps(writer), "AVRO")))
        for wild in (False, True):
            for document in drawn_avro.documents(rng, writer, count, wild=wild):
                head = b"\0" + id.to_bytes(4, "big")
                made.append(
                    drawn_avro.damaged(rng, head + document) if rng.random() < 0.3 else head + document
                )
    return compare(spark, _spec("avro-confluent", row, url=registry.url, subject=subject), made)


@times(2)
@given(seed=st.integers(0, 2**32))
def test_drawn_documents(spark: SparkSession, seed: int) -> None:
    _plain(spark, seed, 150)


@times(2)
@given(seed=st.integers(0, 2**32))
def test_drawn_documents_of_several_writers(
    spark: SparkSession, registry: SchemaRegistryServer, unique: Callable[[str], str], seed: int
) -> None:
    assert _framed(spark, registry, unique("subject"), seed, 50) > 10


@pytest.mark.slow
@times(12)
@given(seed=st.integers(0, 2**32))
def test_many_drawn_documents(spark: SparkSession, seed: int) -> None:
    _plain(spark, seed, 500)


@pytest.mark.slow
@times(12)
@given(seed=st.integers(0, 2**32))
def test_many_drawn_documents_of_several_writers(
    spark: SparkSession, registry: SchemaRegistryServer, unique: Callable[[str], str], seed: int
) -> None:
    _framed(spark, registry, unique("subject"), seed, 50)
