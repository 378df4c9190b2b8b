"""Every row of the table of goals is there, and compares what it says; the jobs are made up."""

from __future__ import annotations

import pytest

from benchmarks import scenarios
from benchmarks.plots import svg
from benchmarks.scenarios import Found, Scale, play
from tests.benchmarks.made_up import Ground


def played(ground: Ground, *, full: bool = False, rows: int = 10_000) -> Found:
    return play(ground, Scale.of(rows, full=full))  # type: ignore[arg-type]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "engines", lambda: ("spark", "delta-rs"))


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("full", [False, True])
def test_each_goal_has_its_row(full: bool) -> None:
    outcomes = [o for o in played(Ground(), full=full).outcomes if o.goal]
    goals = [(o.goal, o.goal_text[:1], o.ratio) for o in outcomes]
    assert goals == [
        (4.0, "≥", 5.0),  # cold start
        (5.0, "≥", 5.0),  # warm batches
        (10.0, "≥", 5.0),  # a backlog beside the recipe's rate
        (2.5, "≥", pytest.approx(5 / 4.75, abs=0.001)),
        *[(1.25, "≤", 1.0)] * (1 + full),  # memory by backlog
        *[(goal, "≥", 5.0) for goal in (3.0, 5.0)] * (1 + full),  # few random keys, many
        *[(10.0, "≥", 5.0)] * full,  # keys that lie together
        (1.3, "≤", 1.0),
        (1.25, "≤", 1.0),  # memory by table
        (1.5, "≥", 1.0),
    ]


@pytest.mark.usefixtures("engines")
def test_each_engine_meets_the_large_table_and_the_default_is_left_alone_elsewhere() -> None:
    ground = Ground()
    played(ground)
    asked = [(topic, options.get("engine")) for system, topic, options in ground.jobs if system != "recipe"]
    assert {engine for topic, engine in asked if topic.startswith("random")} == {"spark", "delta-rs"}
    assert {engine for topic, engine in asked if topic.startswith(("together", "backlog"))} == {None}


def test_without_a_choice_of_engines_no_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "engines", lambda: ())
    ground = Ground()
    found = played(ground)
    assert all(options.get("engine") is None for _, _, options in ground.jobs)
    assert [o.goal for o in found.outcomes if "random" in o.name] == [3.0]


def test_a_wrong_table_voids_the_rows_that_used_it_and_no_others() -> None:
    found = played(Ground(wrong="backlog of"))
    assert [o.name.split(",")[0] for o in found.outcomes if o.wrong] == [
        "backlog of 50",
        "backlog of 50",
        "memory: a backlog of 50",
    ]


def test_full_has_the_tables_of_the_goals_and_a_backlog_of_several_batches() -> None:
    scale = Scale.of(1_000_000, full=True)
    assert scale.tables == (1_000_000, 20_000_000, 100_000_000) and scale.random_tables[-1] == 20_000_000
    ground = Ground()
    played(ground, full=True)
    assert [topic for _, topic, _ in ground.jobs if "backlog" in topic] == ["backlog", "deep-backlog"]
    assert "random-1000-200000" in [topic for _, topic, _ in ground.jobs]
    assert {options.get("rows") for _, topic, options in ground.jobs if topic.startswith("together")} == {
        10_000,
        200_000,
        1_000_000,
    }


@pytest.mark.usefixtures("engines")
def test_the_short_form_spares_the_recipe_what_there_is_no_time_for() -> None:
    ground = Ground()
    found = played(ground)
    assert [topic for system, topic, _ in ground.jobs if system == "recipe"] == [
        "changes",
        "random-10-20000",
    ]
    backlog = next(o.name for o in found.outcomes if o.goal == 10.0)
    assert backlog.endswith("default settings (the recipe: 10,000 records, 1,000 per batch)")


def test_parts_can_be_played_alone() -> None:
    ground = Ground()
    found = play(ground, Scale.of(10_000, full=False), ["cluster"])  # type: ignore[arg-type]
    assert [o.goal for o in found.outcomes] == [1.5]
    assert [(topic, options["master"]) for _, topic, options in ground.jobs] == [
        ("cluster", "local[1]"),
        ("cluster", "local-cluster[2,1,2048]"),
    ]


def test_short_batches_are_many() -> None:
    """The recipe, which takes long for each, has fewer of them."""
    ground = Ground()
    found = play(ground, Scale.of(10_000, full=True), ["together"])  # type: ignore[arg-type]
    assert [(system, topic) for system, topic, _ in ground.jobs] == [
        ("bridge", "together-18-10000"),
        ("bridge", "together-18-200000"),
        ("recipe", "together-6-200000"),
        ("bridge", "together-18-1000000"),
    ]
    assert [entry.system for entry in found.profiled] == ["recipe", "bridge"]


def test_every_plot_can_be_drawn() -> None:
    found = played(Ground())
    assert list(found.plots) == ["batch-size", "memory-backlog", "table-size", "memory-table"]
    assert all(svg(plot).count("<polyline") == len(plot.series) for plot in found.plots.values())
