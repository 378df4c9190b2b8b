"""Every row of the scenarios is there, and compares what it says; the jobs are made up."""

from __future__ import annotations

import pytest

from benchmarks import scenarios
from benchmarks.found import Found
from benchmarks.plots import svg
from benchmarks.scale import Scale
from tests.benchmarks.made_up import Ground


def played(part: str, ground: Ground | None = None, *, full: bool = False) -> tuple[Found, Ground]:
    ground, found = ground or Ground(), Found()
    getattr(scenarios, part)(ground, Scale.of(10_000, full=full), found)
    return found, ground


def test_a_normal_run_has_no_further_batch_sizes_and_no_deep_backlog() -> None:
    found, ground = played("batches")
    assert {topic for _, topic, _ in ground.jobs} == {"changes", "trial"} and found.plots == {}
    assert [entry.system for entry in found.profiled] == [
        "recipe",
        "bridge",
        "bridge, read by spark",
        "bridge, read by spark, spark",
    ]
    ways = [o.name.partition(": ")[2] for o in found.outcomes[-2:]]
    assert ways == ["reader spark / the default", "reader and engine spark / the default"]
    _, ground = played("backlog")
    assert {topic for _, topic, _ in ground.jobs} == {"backlog", "backlog-trial"}


def test_a_full_run_draws_batch_sizes_and_reads_four_times_the_backlog() -> None:
    found, ground = played("batches", full=True)
    batches = [o.get("batch") for system, topic, o in ground.jobs if topic == "changes"]
    assert batches[-3:] == [3333, 3333, None]
    assert list(found.plots) == ["batch-size"]
    found, ground = played("backlog", full=True)
    assert [(system, topic) for system, topic, _ in ground.jobs][-1] == ("bridge", "deep-backlog")
    memory = found.outcomes[-1]
    assert "20" not in memory.unit and (memory.goal_text, memory.ratio) == ("≤ 1.25", 1.0)
    assert memory.name == "memory: a backlog of 200,000 records, 10,000 keys / of 50,000"


@pytest.mark.parametrize("full", [False, True])
def test_batches_of_adjacent_keys(full: bool) -> None:
    found, ground = played("together", full=full)
    goals = [(o.goal, o.goal_text[:1], o.ratio) for o in found.outcomes]
    assert goals == [*[(10.0, "≥", 5.0)] * full, (1.3, "≤", 1.0), (1.25, "≤", 1.0)]
    rows = {options.get("rows") for _, topic, options in ground.jobs if topic.startswith("together")}
    assert rows == ({10_000, 200_000, 1_000_000} if full else {2_000, 20_000})


def test_short_batches_are_many() -> None:
    """The recipe, which takes long for each, has fewer of them."""
    found, ground = played("together", full=True)
    assert [(system, topic) for system, topic, _ in ground.jobs] == [
        ("bridge", "together-18-10000"),
        ("bridge", "together-18-200000"),
        ("recipe", "together-trial-200000"),
        ("recipe", "together-trial-200000"),
        ("recipe", "together-6-200000"),
        ("bridge", "together-18-1000000"),
    ]
    assert [entry.system for entry in found.profiled] == ["recipe", "bridge"]


def test_every_plot_can_be_drawn() -> None:
    for part, names in (("backlog", ["memory-backlog"]), ("together", ["memory-table"])):
        found, _ = played(part)
        assert list(found.plots) == names
        assert all(svg(plot).count("<polyline") == len(plot.series) for plot in found.plots.values())
