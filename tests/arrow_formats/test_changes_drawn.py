"""Drawn change documents: Arrow's decoders give the changes that both of Spark's paths give, or need a full decode."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.arrow_formats.against_spark import array
from tests.arrow_formats.changes_against_spark import compare_changes, made_changes
from tests.arrow_formats.drawing import times
from tests.arrow_formats.drawn_changes import Documents, drawn_spec
from tests.arrow_formats.drawn_json import TYPES

KINDS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "debezium": ("debezium-json", {}, False),
    "debezium with schema": ("debezium-json", {"schema-include": True}, False),
    "ogg": ("ogg-json", {}, False),
    "maxwell": ("maxwell-json", {}, False),
    "canal": ("canal-json", {}, True),
    "canal by Flink": ("canal-json", {}, False),
}
"""The format, its options, and whether values are written as texts."""


PLAIN = ["flag", "int", "big", "text", "char", "day", "at3", "ltz6", "ints"]
"""Fields of which no value needs a full decode because of another field, as a decimal does beside 1e-300."""


def drawn(kind: str, seed: int, fields: int, of: Sequence[str] = tuple(TYPES)) -> Documents:
    """Documents of a drawn schema and drawn options."""
    rng, (format, options, as_texts) = random.Random(seed), KINDS[kind]
    drawn_options = dict(options)
    if rng.random() < 0.3:
        drawn_options["timestamp-format.standard"] = "ISO-8601"
    if rng.random() < 0.3:
        drawn_options["ignore-parse-errors"] = True
    spec, key = drawn_spec(rng, format, fields=fields, of=of, options=drawn_options)
    return Documents(rng, spec, key, as_texts)


def compared(spark: SparkSession, documents: Documents, count: int) -> None:
    made = [documents.any() for _ in range(count)] + [documents.usual() for _ in range(count // 2)]
    assert compare_changes(spark, documents.spec, documents.key, made) > count // 8


@pytest.mark.parametrize("kind", ["debezium", "canal"])
@times(1)
@given(seed=st.integers(0, 2**32))
def test_drawn_documents(spark: SparkSession, kind: str, seed: int) -> None:
    compared(spark, drawn(kind, seed, 3), 150)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@times(6)
@given(seed=st.integers(0, 2**32))
def test_many_drawn_documents(spark: SparkSession, kind: str, seed: int) -> None:
    compared(spark, drawn(kind, seed, 6), 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_usual_documents_need_no_full_decode(kind: str) -> None:
    for seed in range(20):
        documents = drawn(kind, seed, 6, PLAIN)
        payloads = [documents.usual() for _ in range(100)]
        assert made_changes(documents.spec, documents.key).decode(array(payloads)).additions.num_rows
