"""Expressions have the values that Flink itself gave (`make flink-vectors`), or are refused."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.errors import DdlError
from bridge.expressions.signatures import FUNCTIONS
from tests.expressions.known_differences import DIFFERENCES
from tests.expressions.vectors import Vector, drawn_seed, evaluate, inputs, is_same, spark_text, vectors
from tests.expressions.vectors import given as values_given

_DRAWN = 120
_PARTS = 8
"""Of the slow test: each has the time-out of a test, which all at once need on a busy machine."""
_CALL = re.compile(r"\b([A-Z][A-Z0-9_]*)[(\[]")
_UNORDERED = re.compile("MAP_(KEYS|VALUES|ENTRIES)")


def _accepted(chosen: Sequence[Vector]) -> list[tuple[Vector, str]]:
    """Those that the bridge does not refuse. What Flink refuses is not asked: a user's script runs there first."""
    found = []
    for vector in chosen:
        if vector.refused is None and not vector.has_bug:
            try:
                found.append((vector, spark_text(vector.expression)))
            except DdlError:
                continue
    return found


def _differences(spark: SparkSession, chosen: Sequence[Vector]) -> list[str]:
    accepted = _accepted(chosen)
    table = inputs(spark).persist()
    try:
        found = evaluate(table, [text for _, text in accepted])
    finally:
        table.unpersist()
    return [
        f"{vector.expression} => {given}: Flink {flink}, Spark {actual}"
        for (vector, _), values in zip(accepted, found, strict=True)
        for row, (flink, actual) in enumerate(zip(vector.values, values, strict=True))
        if not _is_same(vector, flink, actual)
        if not _is_known(vector.expression, given := values_given(vector.expression, row))
    ]


def _is_same(vector: Vector, flink: Any, actual: Any) -> bool:
    ordered = not _UNORDERED.search(vector.expression)
    return is_same(flink, actual, of_float=vector.type.startswith("FLOAT"), ordered=ordered)


def _is_known(expression: str, given: str) -> bool:
    return any(difference.about.search(f"{expression}=>{given}") for difference in DIFFERENCES)


# PySpark leaves the socket of a collect() for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_sample_has_the_values_of_flink(spark: SparkSession) -> None:
    seed = drawn_seed()
    chosen = random.Random(seed).sample(list(vectors()), _DRAWN)
    assert _differences(spark, chosen) == [], f"drawn with {seed=}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_all_have_the_values_of_flink(spark: SparkSession, part: int) -> None:
    assert _differences(spark, list(vectors())[part::_PARTS]) == []


def test_every_function_is_accepted_in_some_way() -> None:
    missing = set(FUNCTIONS)
    for vector in vectors():
        # To translate an expression costs more than to look at it.
        if (called := missing.intersection(_CALL.findall(vector.expression))) and _accepted([vector]):
            missing -= called
    assert missing == set()


def test_the_documentation_lists_functions_and_differences() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql-functions.md").read_text()
    listed = page.partition("|---|---|")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == FUNCTIONS
    rows = [f"| {d.what} | {d.flink} | {d.bridge} |" for d in DIFFERENCES]
    assert [row for row in rows if row not in page] == []
    assert len(rows) <= 10
