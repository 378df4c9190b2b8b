"""Parts are played in their order, and timed."""

from __future__ import annotations

from functools import partial

from benchmarks.found import Found
from benchmarks.goals import at_least
from benchmarks.ground import Ground as RealGround
from benchmarks.parts import NORMAL, PARTS, play
from benchmarks.scale import Scale
from tests.benchmarks.made_up import Ground


def test_a_normal_run_is_the_first_of_all_parts() -> None:
    assert tuple(PARTS)[: len(NORMAL)] == NORMAL


def test_the_asked_parts_are_played_in_their_order_and_timed() -> None:
    def played(name: str, ground: RealGround, scale: Scale, found: Found) -> None:
        found.outcomes.append(at_least(name, "x", 1.0, float(scale.records), 0.0))
        found.by_table_size["bridge"] = [(1.0, 2.0)]

    parts = {name: partial(played, name) for name in ("one", "two", "three")}
    ground = Ground()
    found = play(ground, Scale.of(100, full=False), ["three", "one"], parts)  # type: ignore[arg-type]
    assert [o.name for o in found.outcomes] == ["one", "three"] == list(found.minutes)
    assert ground.said == ["part one: 0.0 min", "part three: 0.0 min"]
    assert list(found.plots) == ["table-size"]
