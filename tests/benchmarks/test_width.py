"""Batches from a topic of many partitions beside a few; the jobs are made up."""

from __future__ import annotations

from benchmarks import width
from tests.benchmarks.made_up import Ground


def test_the_same_records_in_a_few_and_in_many_partitions() -> None:
    ground = Ground()
    (row,) = width.outcomes(ground, 100, 1000, 2)  # type: ignore[arg-type]
    assert row.name == "width: a batch of 100 records, a topic of 1,000 partitions / of 4"
    assert (row.ratio, row.goal, row.verdict) == (1.0, 0.0, "")
    assert [topic for _, topic, _ in ground.jobs] == ["width-4", "width-1000"] * 2
    assert {options["batch"] for _, _, options in ground.jobs} == {100}
