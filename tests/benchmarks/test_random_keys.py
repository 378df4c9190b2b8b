"""Small batches into large tables: the jobs are made up."""

from __future__ import annotations

import pytest

from benchmarks import random_keys
from benchmarks.found import Found
from benchmarks.scale import Scale
from tests.benchmarks.made_up import Ground


def played(ground: Ground, *, full: bool) -> Found:
    found = Found()
    random_keys.play(ground, Scale.of(10_000, full=full), found)  # type: ignore[arg-type]
    return found


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_keys, "engines", lambda: ("spark", "driver"))


def test_goals_count_for_the_large_table_of_a_full_run_only() -> None:
    names = {
        "10 random keys into 200,000 rows, beside the tuned recipe": (8.0, 5.0),
        "10 random keys into 200,000 rows, mean, beside Flink → Paimon": (1.0, 0.5),
        "8 random keys into 200,000 rows / 10 random keys into 200,000 rows": (0.5, 1.0),
    }
    full = played(Ground(), full=True)
    assert {o.name: (o.goal, o.ratio) for o in full.outcomes} == names
    assert [o.goal for o in played(Ground(), full=False).outcomes] == [0.0, 0.0, 0.5]


def test_large_batches_have_no_goal() -> None:
    found = Found()
    random_keys.play_large(Ground(), Scale.of(10_000, full=True), found)  # type: ignore[arg-type]
    assert {o.name: o.goal for o in found.outcomes} == {
        "1,000 random keys into 200,000 rows, beside the tuned recipe": 0.0,
        "1,000 random keys into 200,000 rows, mean, beside Flink → Paimon": 0.0,
    }


def test_flink_has_a_job_for_each_batch_and_all_have_the_same_records() -> None:
    ground = Ground()
    played(ground, full=True)
    assert [name for name in ground.loads if name.startswith("random-10-200000-")] == [
        f"random-10-200000-{n}" for n in range(6)
    ]
    assert len(ground.loads["random-10-200000"]) == 60
    rounds = [(system, options.get("rows")) for system, topic, options in ground.jobs if "10-200000" in topic]
    turn = [(system, 200_000) for system in ("recipe", "bridge", "Flink → Paimon")]
    assert rounds[: 2 + 9] == [("recipe", 200_000)] * 2 + turn * 3


def test_the_engine_that_was_not_chosen_is_shown_beside() -> None:
    ground = Ground()
    found = played(ground, full=False)
    assert {options.get("engine") for _, _, options in ground.jobs} == {None, "driver"}
    assert [entry.system for entry in found.profiled] == ["recipe", "bridge", "bridge, driver"]
    assert set(found.by_table_size) == {"recipe, random", "bridge, random", "bridge, driver, random"}


def test_without_flink_its_row_is_not_measured() -> None:
    verdicts = [o.verdict for o in played(Ground(flink=False), full=True).outcomes if "Flink" in o.name]
    assert verdicts == ["not measured: no Flink here; `make bench-peers` fetches it"]
