"""Expressions have the types and values that Flink itself gave (`make flink-vectors`), or are refused."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlglot import exp

from benchmarks.flink_vectors.corpus import expressions
from bridge.ddl.elements import spark_text
from bridge.errors import DdlError
from bridge.expressions.signatures import FUNCTIONS
from bridge.expressions.typed import type_of
from bridge.session import child_session
from tests.expressions.known_differences import DIFFERENCES, is_known
from tests.expressions.vectors import Vector, drawn_seed, evaluate, inputs, is_same, translated, vectors
from tests.expressions.vectors import given as values_given
from tests.sql.scripts import refusal

_DRAWN = 80
_PARTS = 16
"""Of the slow test: each has the time-out of a test, which all at once need on a busy machine."""
_PAGE = Path(__file__).parents[2] / "docs" / "sql-functions.md"
_WITH_KEYWORDS = {
    "CASE",
    "CAST",
    "TRY_CAST",
    "IF",
    "EXTRACT",
    "TRIM",
    "OVERLAY",
    "POSITION",
    "FLOOR",
    "CEIL",
    "ARRAY",
}
_CALL = re.compile(r"\b([A-Z][A-Z0-9_]*)[(\[]")
_UNORDERED = re.compile("MAP_(KEYS|VALUES|ENTRIES)")


def _accepted(chosen: Sequence[Vector]) -> list[tuple[Vector, exp.Expr]]:
    """Those that the bridge does not refuse. What Flink refuses is not asked: a user's script runs there first."""
    found = []
    for vector in chosen:
        if vector.refused is None:
            try:
                found.append((vector, translated(vector.expression)))
            except DdlError:
                continue
    return found


def _faults(spark: SparkSession, chosen: Sequence[Vector]) -> list[str]:
    """Other types and values than Flink's, and values that are listed as different and are not."""
    accepted = _accepted(chosen)
    table = inputs(spark).persist()
    try:
        found = evaluate(table, [spark_text(root) for _, root in accepted])
    finally:
        table.unpersist()
    faults = [
        f"{vector.expression}: Flink's type is {vector.type}, here {type.flink()}"
        for vector, root in accepted
        if (type := type_of(root)) is not None and _plain(type.flink()) != _plain(vector.type)
    ]
    for (vector, _), values in zip(accepted, found, strict=True):
        for row, actual in enumerate(values):
            if not vector.is_judged(row):
                continue
            flink, is_listed = vector.values[row], is_known(vector, row)
            if is_listed == _is_same(vector, flink, actual):
                what = "which are equal, but listed as different" if is_listed else "which differ"
                given = values_given(vector.expression, row)
                faults.append(f"{vector.expression} => {given}: Flink {flink}, Spark {actual}, {what}")
    return faults


def _plain(type: str) -> str:
    """The type without NOT NULL, and without the lengths of texts and bytes, which the bridge does not derive."""
    without_null = type.replace(" NOT NULL", "")
    without_length = re.sub(r"\b(VAR)?CHAR\(\d+\)", "STRING", without_null)
    return re.sub(r"\b(VAR)?BINARY\(\d+\)", "BYTES", without_length)


def _is_same(vector: Vector, flink: Any, actual: Any) -> bool:
    ordered = not _UNORDERED.search(vector.expression)
    return is_same(flink, actual, of_float="FLOAT" in vector.type, ordered=ordered)


# PySpark leaves the socket of a collect() for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_sample_has_the_values_of_flink(spark: SparkSession) -> None:
    """FUNCTION=REVERSE: all expressions that call it."""
    seed = drawn_seed()
    chosen = random.Random(seed).sample(list(vectors()), _DRAWN)
    if function := os.environ.get("FUNCTION"):
        chosen = [vector for vector in vectors() if function in _CALL.findall(vector.expression)]
        assert chosen, f"Flink was not asked for {function}"
    assert _faults(spark, chosen) == [], f"drawn with {seed=}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_all_have_the_values_of_flink(spark: SparkSession, compiled: bool, part: int) -> None:
    """Spark compiles the expressions of users; the sessions of tests do not."""
    session = child_session(spark)
    if compiled:
        session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
        session.conf.set("spark.sql.codegen.wholeStage", "true")
    assert _faults(session, list(vectors())[part::_PARTS]) == []


def test_every_function_is_accepted_in_some_way() -> None:
    missing = set(FUNCTIONS)
    for vector in vectors():
        # To translate an expression costs more than to look at it.
        if (called := missing.intersection(_CALL.findall(vector.expression))) and _accepted([vector]):
            missing -= called
    assert missing == set()


def test_the_corpus_is_what_flink_was_asked() -> None:
    assert [vector.expression for vector in vectors()] == expressions()


def test_the_documentation_lists_functions_and_differences() -> None:
    listed = _PAGE.read_text().partition("|---|---|")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == FUNCTIONS
    table = _PAGE.read_text().partition("|---|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == [f"| {d.what} | {d.flink} | {d.bridge} |" for d in DIFFERENCES]
    assert len(DIFFERENCES) <= 10


def test_the_documentation_says_which_of_the_most_used_functions_are_refused() -> None:
    page = _PAGE.read_text().partition("## The functions that scripts use most")[2]
    accepted, refused = page.partition("## ")[0].split("| Refused |")
    names = re.findall(r"`(\w+)`", accepted)
    assert set(names) <= FUNCTIONS | _WITH_KEYWORDS
    examples = re.findall(r"^\| `(.+?)` \|", refused, re.MULTILINE)
    assert len(names) + len(examples) >= 60
    for example in examples:
        query = f"SELECT region, {example} FROM views GROUP BY region, price, ts, page"
        name = re.search("[A-Z_]{3,}", example)
        assert name is not None
        assert name[0] in refusal(query, "r STRING, x INT", "r")
