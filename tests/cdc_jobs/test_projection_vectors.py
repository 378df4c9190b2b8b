"""Projections and filters of a job go the way of a SELECT: the vectors of Flink become the same Spark SQL."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from bridge.errors import DdlError
from tests.expressions.places import SOURCE, selected, transformed
from tests.expressions.vectors import drawn_seed, spark_text, vectors

_DRAWN, _AT_ONCE, _PARTS = 100, 20, 8


def _accepted(expressions: Iterable[str]) -> list[tuple[str, str]]:
    """Those that a computed column takes, with their Spark SQL there."""
    found = []
    for text in expressions:
        try:
            found.append((text, spark_text(text)))
        except DdlError:
            continue
    return found


def _of_columns() -> dict[str, str]:
    """The vectors with columns that Flink does not refuse, with their types; without maps that JSON cannot have."""
    return {
        v.expression: v.type
        for v in vectors()
        if v.refused is None and "c_" in v.expression and not re.search("MAP<(?!STRING|CHAR|VARCHAR)", v.type)
    }


def _check(folder: Path, expressions: Mapping[str, str]) -> None:
    accepted = _accepted(expressions)
    for at in range(0, len(accepted), _AT_ONCE):
        chosen = accepted[at : at + _AT_ONCE]
        items = "rid, " + ", ".join(f"{text} AS v{n}" for n, (text, _) in enumerate(chosen))
        conditions = [
            (text, computed) for text, computed in chosen if expressions[text].startswith("BOOLEAN")
        ]
        condition = " AND ".join(f"({text})" for text, _ in conditions)
        query = selected(items, condition)
        assert f"FROM ({query}) AS `transform_orders`" in transformed(folder, items, condition)
        parts = [f", {_qualified(computed)} AS `v{n}`" for n, (_, computed) in enumerate(chosen)]
        parts += [f"({_qualified(computed)})" for _, computed in conditions]
        assert [part for part in parts if part not in query] == []


def _qualified(text: str) -> str:
    """The text of a computed column with the columns of the table as in a SELECT."""
    return re.sub(r"(?<!`\.)`(c_\w+)`", rf"`{SOURCE}`.`\1`", text)


def test_a_sample_becomes_the_same(tmp_path: Path) -> None:
    seed = drawn_seed()
    every = _of_columns()
    _check(tmp_path, {text: every[text] for text in random.Random(seed).sample(list(every), _DRAWN)})


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_all_become_the_same(tmp_path: Path, part: int) -> None:
    every = _of_columns()
    _check(tmp_path, {text: every[text] for text in list(every)[part::_PARTS]})
