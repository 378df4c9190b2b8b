"""Drawn JSON documents: Arrow's decoder gives what both of Spark's paths give, or needs a full decode."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.definition import FormatSpec
from bridge.schema import RowField, RowType
from tests.arrow_formats import drawn_json
from tests.arrow_formats.against_spark import array, compare, made

_FEW = settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "timestamp-format.standard": st.sampled_from(["SQL", "ISO-8601"]),
        "ignore-parse-errors": st.just(True),
    },
)


def given_of(names: Sequence[str], options: dict[str, Any] | None = None) -> FormatSpec:
    fields = tuple(RowField(name, drawn_json.TYPES[name]) for name in names)
    return FormatSpec("json", options or {}, RowType(fields), tuple(names))


@_FEW
@given(
    names=st.lists(st.sampled_from(list(drawn_json.TYPES)), min_size=3, max_size=8, unique=True),
    options=_OPTIONS,
    seed=st.integers(0, 2**32),
)
def test_drawn_documents(spark: SparkSession, names: list[str], options: dict[str, Any], seed: int) -> None:
    rng, drawn = random.Random(seed), given_of(names, options)
    iso = options.get("timestamp-format.standard") == "ISO-8601"
    documents = [drawn_json.document(rng, drawn.row, iso=iso) for _ in range(400)]
    assert compare(spark, drawn, documents) > len(documents) // 10


@pytest.mark.parametrize("standard", ["SQL", "ISO-8601"])
@pytest.mark.parametrize("name", drawn_json.TYPES)
def test_usual_documents_need_no_full_decode(name: str, standard: str) -> None:
    rng, drawn = random.Random(name), given_of([name], {"timestamp-format.standard": standard})
    documents = [drawn_json.usual_document(rng, drawn.row, iso=standard == "ISO-8601") for _ in range(500)]
    assert made(drawn).decode(array(documents)).num_rows == len(documents)


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn_json.TYPES)
def test_many_documents_of_every_type(spark: SparkSession, name: str) -> None:
    rng, drawn = random.Random(), given_of([name])
    documents = [drawn_json.document(rng, drawn.row) for _ in range(3000)]
    usual = [drawn_json.usual_document(rng, drawn.row) for _ in range(1000)]
    assert compare(spark, drawn, [*documents, *usual]) >= len(usual)
