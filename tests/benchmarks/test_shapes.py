"""Drawn shapes beside Flink: a row of speed and of memory for each format and width, of the worst; the jobs are made
up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import shapes
from benchmarks.drawn_columns import FORMATS
from benchmarks.found import Found
from tests.benchmarks.made_up import Ground


@contextmanager
def no_registry(ground: object) -> Iterator[str]:
    yield "http://localhost:1"


def test_a_row_of_speed_and_of_memory_for_each_format_and_width() -> None:
    ground, found = Ground(), Found()
    shapes.play(ground, 10_000, found, seeds=(1, 2), registry=no_registry)  # type: ignore[arg-type]
    assert len(found.outcomes) == 2 * len(FORMATS) * len(shapes.WIDTHS)
    first = found.outcomes[0]
    assert first.name == "10,000 records of json, 5 columns, the worst of 2 shapes, beside Flink → Paimon"
    assert (first.goal, first.verdict) == (1.2, "missed")  # each is half as fast as Flink in the made up jobs
    drawn = {load.rows.types["c0"] for topic, load in ground.loads.items() if topic.startswith("csv-30")}
    assert len(drawn) == 2
    assert [x for x, _ in found.plots["record-size"].series["bridge"]] == [10, 100, 1_000, 10_000]


def test_a_wrong_table_of_any_shape_is_the_row() -> None:
    ground, found = Ground(wrong="csv, 30 columns, seed 2"), Found()
    shapes.play(ground, 10_000, found, seeds=(1, 2), registry=no_registry)  # type: ignore[arg-type]
    assert [o.name for o in found.outcomes if o.verdict.startswith("VOID")] == [
        "4,000 records of csv, 30 columns, the worst of 2 shapes, beside Flink → Paimon",
        "memory: 4,000 records of csv, 30 columns, the worst of 2 shapes, beside Flink → Paimon",
    ]
