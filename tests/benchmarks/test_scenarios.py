"""Every row of the table of goals is there, and compares what it says; the jobs are made up."""

from __future__ import annotations

import pytest

from benchmarks import beside, scenarios
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
        (4.0, "≥", 5.0),  # whole process beside the tuned recipe
        (1.0, "≥", 0.5),  # beside Flink
        (5.0, "≥", 5.0),  # warm batches
        (1.5, "≥", 0.5),  # a backlog beside Flink
        (1.7, "≥", 5.0),  # beside the tuned recipe
        (1.0, "≤", 1.0),  # memory beside Flink
        *[(1.25, "≤", 1.0)] * full,  # memory by backlog
        (8.0, "≥", 5.0),  # few random keys
        (0.5, "≤", 1.0),  # eight of them
        *[(8.0, "≥", 5.0)] * full,  # many
        *[(10.0, "≥", 5.0)] * full,  # keys that lie together
        (1.3, "≤", 1.0),
        (1.25, "≤", 1.0),  # memory by table
    ]


def test_without_flink_its_rows_are_not_measured() -> None:
    outcomes = [o for o in played(Ground(flink=False)).outcomes if "Flink" in o.name]
    assert len(outcomes) == 3 and {o.ratio for o in outcomes} == {None}
    assert {o.verdict for o in outcomes} == {"not measured: no Flink here; `make bench-peers` fetches it"}


def test_rounds_are_played_in_turn_and_an_untuned_recipe_first() -> None:
    ground = Ground()
    play(ground, Scale.of(10_000, full=False), ["batches"])  # type: ignore[arg-type]
    systems = [system for system, topic, _ in ground.jobs if topic == "changes"]
    assert systems == ["recipe", *["recipe", "bridge", "Flink → Paimon"] * 3, "bridge"]
    confs = [
        o.get("conf", "") for system, topic, o in ground.jobs if topic == "changes" and system == "recipe"
    ]
    assert confs[0] == "" and set(confs[1:]) == {beside.tuned()}


@pytest.mark.usefixtures("engines")
def test_each_engine_meets_the_large_table_and_the_default_is_left_alone_elsewhere() -> None:
    ground = Ground()
    played(ground)
    asked = [(topic, options.get("engine")) for system, topic, options in ground.jobs if system != "recipe"]
    assert {engine for topic, engine in asked if topic.startswith("random-10-")} == {"spark", "delta-rs"}
    assert {engine for topic, engine in asked if topic.startswith(("together", "backlog", "random-8-"))} == {
        None
    }


def test_without_a_choice_of_engines_no_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "engines", lambda: ())
    ground = Ground()
    found = played(ground)
    assert all(options.get("engine") is None for _, _, options in ground.jobs)
    assert [o.goal for o in found.outcomes if "random" in o.name] == [0.0, 0.5]


def test_a_wrong_table_voids_the_rows_that_used_it_and_no_others() -> None:
    found = played(Ground(wrong="backlog of"))
    wrong = [o.name for o in found.outcomes if o.wrong]
    assert len(wrong) == 4 and all("backlog of 50,000" in name for name in wrong)


def test_full_has_the_tables_of_the_goals_and_a_backlog_of_several_batches() -> None:
    scale = Scale.of(1_000_000, full=True)
    assert scale.tables == (1_000_000, 20_000_000, 100_000_000) and scale.random_tables[-1] == 20_000_000
    ground = Ground()
    played(ground, full=True)
    assert [topic for _, topic, _ in ground.jobs if "backlog" in topic] == [*["backlog"] * 9, "deep-backlog"]
    assert "random-1000-200000" in [topic for _, topic, _ in ground.jobs]
    assert {options.get("rows") for _, topic, options in ground.jobs if topic.startswith("together")} == {
        10_000,
        200_000,
        1_000_000,
    }


@pytest.mark.usefixtures("engines")
def test_the_short_form_spares_the_recipe_what_there_is_no_time_for() -> None:
    ground = Ground()
    played(ground)
    topics = [topic for system, topic, _ in ground.jobs if system == "recipe"]
    assert sorted(set(topics)) == ["backlog", "changes", "random-10-20000"]


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
