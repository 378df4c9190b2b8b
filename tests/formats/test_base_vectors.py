"""Flink's own formats are the judge: decoders and encoders of every path give what Flink gives."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.options.formats import FORMATS
from tests.formats.known_differences import DIFFERENCES
from tests.formats.vector_values import is_same
from tests.formats.vectors import Case, cases, decode, encode

_SEED, _VECTORS, _NARROW = 7, 20, 7


def _differences(spark: SparkSession, case: Case) -> Iterator[str]:
    """What is not Flink's, known or not: the case, what is given, `=>`, what Flink and what the bridge makes of it."""
    skips_errors = case.options.get("ignore-parse-errors") == "true"
    for path, outcomes in (decode(spark, case) if case.decoded else {}).items():
        for asked, found in zip(case.decoded, outcomes, strict=True):
            if found is not None and not is_same(asked.rows, found, skips_errors=skips_errors):
                yield f"{case.name} {asked.document!r}=> {asked.rows!r} | {found!r} ({path})"
    for path, documents in (encode(spark, case) if case.encoded else {}).items():
        for given, document in zip(case.encoded, documents, strict=True):
            if document != given.document:
                yield f"{case.name} {given.row!r}=> {given.document!r} | {document!r} ({path})"


def _known(text: str) -> bool:
    return any(difference.about.search(text) for difference in DIFFERENCES)


def _sample(draw: random.Random, all: Sequence[Case]) -> Iterator[Case]:
    """Cases of few columns, which Spark plans fast: one of json, csv, raw and the CDC formats each; `avro` has none."""
    narrow: dict[str, list[Case]] = {}
    for case in all:
        if len(case.columns) <= _NARROW:
            kind = case.format if FORMATS[case.format].insert_only else "changes"
            narrow.setdefault(kind, []).append(case)
    for case in map(draw.choice, narrow.values()):
        yield replace(
            case,
            decoded=draw.sample(case.decoded, min(_VECTORS, len(case.decoded))),
            encoded=draw.sample(case.encoded, min(_VECTORS, len(case.encoded))),
        )


def test_drawn_documents_and_rows(spark: SparkSession) -> None:
    drawn = _sample(random.Random(_SEED), list(cases()))
    found = [text for case in drawn for text in _differences(spark, case)]
    assert [text for text in found if not _known(text)] == []


@pytest.mark.slow
def test_all_documents_and_rows(spark: SparkSession) -> None:
    """And each known difference is one: a row that no vector needs any more leaves the table."""
    found = [text for case in cases() for text in _differences(spark, case)]
    unknown = [text for text in found if not _known(text)]
    assert unknown == []
    assert [d.what for d in DIFFERENCES if not any(d.about.search(text) for text in found)] == []


def test_the_documentation_lists_the_differences() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    rows = [f"| {d.what} | {d.flink} | {d.bridge} | {d.why} |" for d in DIFFERENCES]
    assert len(rows) <= 10
    assert [row for row in rows if row not in page] == []
