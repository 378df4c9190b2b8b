"""Every row of an ingest beside its peers compares what it says; the jobs are made up."""

from __future__ import annotations

import os

from benchmarks import beside
from benchmarks.ground import Ground as RealGround
from benchmarks.topics import Load
from tests.benchmarks.made_up import Ground

LOAD = Load.random(10_000, 2_000, 1)
OWN = f"spark.sql.shuffle.partitions={os.cpu_count()}"


def ground(**options: bool | str) -> RealGround:
    return Ground(**options)  # type: ignore[arg-type,return-value]


def systems(jobs: Ground, topic: str) -> list[tuple[str, str]]:
    return [(system, str(o.get("conf", ""))) for system, on, o in jobs.jobs if on == topic]


def test_batches_beside_the_recipe_and_flink() -> None:
    outcomes, recipe, bridge, _ = beside.batches(ground(), LOAD, 1000, 3)
    assert [(o.name.partition(", 1,000 a batch, ")[2], o.goal, o.ratio) for o in outcomes[:3]] == [
        ("whole process, beside the tuned recipe", 4.0, 5.0),
        ("whole process, beside Flink → Paimon", 1.0, 0.5),
        ("warm batches, beside the tuned recipe", 5.0, 5.0),
    ]
    assert [(o.name, o.unit, o.goal, o.ratio) for o in outcomes[3:]] == [
        (f"CPU: 10,000 records, 1,000 a batch, beside {peer}", "CPU s per million records", 0.0, ratio)
        for peer, ratio in (("the tuned recipe", 5.0), ("Flink → Paimon", 0.5))
    ]
    assert len(recipe.entries) == len(bridge.entries) == 3


def test_a_backlog_in_one_batch_on_every_side() -> None:
    jobs = Ground()
    outcomes, _, _ = beside.backlog(jobs, LOAD, 2)  # type: ignore[arg-type]
    assert [(o.goal, o.goal_text[:1], o.ratio) for o in outcomes if o.goal] == [
        (1.5, "≥", 0.5),
        (1.7, "≥", 5.0),
        (1.0, "≤", 1.0),
    ]
    assert systems(jobs, "backlog") == [("recipe", OWN), ("bridge", ""), ("Flink → Paimon", "")] * 2
    assert all("batch" not in o or o["batch"] is None for _, topic, o in jobs.jobs if topic == "backlog")


def test_the_recipe_has_the_setting_that_was_faster_in_a_trial() -> None:
    for slow, chosen in ((OWN, ""), ("", OWN)):
        jobs = Ground(slow_conf=slow)
        beside.batches(jobs, LOAD, 1000, 1)  # type: ignore[arg-type]
        assert systems(jobs, "trial") == [("recipe", OWN), ("recipe", "")]
        assert systems(jobs, "changes")[0] == ("recipe", chosen)
        assert len(jobs.loads["trial"]) == 2000


def test_without_flink_its_rows_are_not_measured() -> None:
    outcomes = [o for o in beside.batches(ground(flink=False), LOAD, 1000, 1)[0] if "Flink" in o.name]
    outcomes += [o for o in beside.backlog(ground(flink=False), LOAD, 1)[0] if "Flink" in o.name]
    assert len(outcomes) == 5 and {o.ratio for o in outcomes} == {None}
    assert {o.verdict for o in outcomes} == {"not measured: no Flink here; `make bench-peers` fetches it"}


def test_a_wrong_table_voids_the_rows() -> None:
    outcomes = beside.backlog(ground(wrong="backlog of"), LOAD, 1)[0]
    assert {o.verdict for o in outcomes if "Flink" not in o.name} == {"VOID: recipe: torn"}
