"""Flink's own formats are the judge: decoders and encoders of every path give what Flink gives."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.options.formats import FORMATS
from tests.expressions.vectors import drawn_seed
from tests.formats.known_differences import DIFFERENCES
from tests.formats.vector_values import is_same
from tests.formats.vectors import Case, cases, decode, encode

_DOCUMENTS, _ROWS = 12, 12
_NARROW, _COLUMNS = 8, 2


@dataclass(frozen=True)
class _Outcome:
    text: str
    """The case, what is given, `=>`, what Flink and what the bridge makes of it."""
    is_same: bool

    @property
    def is_known(self) -> bool:
        return any(difference.is_about(self.text) for difference in DIFFERENCES)


def _outcomes(spark: SparkSession, case: Case) -> Iterator[_Outcome]:
    skips_errors = case.options.get("ignore-parse-errors") == "true"
    for path, outcomes in (decode(spark, case) if case.decoded else {}).items():
        for asked, found in zip(case.decoded, outcomes, strict=True):
            if found is not None:
                text = f"{case.name} {asked.document!r}=> {asked.rows!r} | {found!r} ({path})"
                yield _Outcome(text, is_same(asked.rows, found, skips_errors=skips_errors))
    for path, documents in (encode(spark, case) if case.encoded else {}).items():
        for given, document in zip(case.encoded, documents, strict=True):
            text = f"{case.name} {given.row!r}=> {given.document!r} | {document!r} ({path})"
            yield _Outcome(text, document == given.document)


def _wrong(outcomes: Iterable[_Outcome]) -> list[str]:
    """What differs and is not known to, and what is the same although a known difference is about it."""
    return [outcome.text for outcome in outcomes if outcome.is_same == outcome.is_known]


def _sample(draw: random.Random, all: Sequence[Case]) -> Iterator[Case]:
    """Of each format, but of two alone that read changes, a case to encode, or one of few columns to decode, which
    Spark plans fast."""
    formats = dict.fromkeys(case.format for case in all)
    changes = [format for format in formats if not FORMATS[format].insert_only]
    left_out = draw.sample(changes, len(changes) - 2)
    for format in (format for format in formats if format not in left_out):
        of_format = [case for case in all if case.format == format]
        if draw.random() < 0.5:
            case = draw.choice([case for case in of_format if case.encoded])
            yield replace(case, decoded=[], encoded=_some(draw, case.encoded, _ROWS))
        else:
            case = draw.choice([case for case in (_narrow(draw, c) for c in of_format) if case.decoded])
            yield replace(case, decoded=_some(draw, case.decoded, _DOCUMENTS), encoded=[])


def _narrow(draw: random.Random, case: Case) -> Case:
    """The case with few columns, and the documents that have no other one."""
    if len(case.columns) <= _NARROW:
        return case
    if case.format != "json" and FORMATS[case.format].insert_only:  # a document has all columns
        return replace(case, decoded=[])
    columns = draw.sample(list(case.columns), _COLUMNS)
    others = [f'"{name}"'.encode() for name in case.columns if name not in columns]
    return replace(
        case,
        columns={name: case.columns[name] for name in columns},
        decoded=[d for d in case.decoded if not any(name in (d.document or b"") for name in others)],
    )


def _some(draw: random.Random, all: Sequence[Any], count: int) -> list[Any]:
    return draw.sample(all, min(count, len(all)))


# PySpark leaves the socket of a collect() for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_drawn_documents_and_rows(spark: SparkSession) -> None:
    seed = drawn_seed()
    drawn = list(_sample(random.Random(seed), list(cases())))
    assert [case.format for case in drawn][:4] == ["json", "csv", "raw", "avro"]
    assert _wrong(found for case in drawn for found in _outcomes(spark, case)) == [], f"drawn with {seed=}"


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_all_documents_and_rows(spark: SparkSession) -> None:
    """And each known difference is one: a pattern that no vector needs any more leaves the list."""
    found = [outcome for case in cases() for outcome in _outcomes(spark, case)]
    assert _wrong(found) == []
    unused = {pattern.pattern for difference in DIFFERENCES for pattern in difference.about}
    for outcome in found:
        if not outcome.is_same:
            unused -= {p.pattern for difference in DIFFERENCES for p in difference.matching(outcome.text)}
    assert unused == set()


def test_the_documentation_lists_the_differences() -> None:
    """These, and no others."""
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    rows = [f"| {d.what} | {d.flink} | {d.bridge} | {d.why} |" for d in DIFFERENCES]
    assert [line for line in page.splitlines() if line.startswith("| ")][1:] == rows
    assert len(rows) <= 10
