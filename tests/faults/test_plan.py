"""A seed says all: the same rounds each time, every kind among them, places that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults.plan import KINDS, PLACES, plan

ROOT = Path(__file__).parents[2]


def test_a_seed_says_all() -> None:
    assert plan(7, 50) == plan(7, 50) != plan(8, 50)
    assert plan(7, 50)[:20] == plan(7, 20)


def test_two_hundred_rounds_play_every_kind_on_both_verbs() -> None:
    for seed in range(1, 6):
        rounds = plan(seed, 200)
        assert {r.kind for r in rounds} == set(KINDS)
        assert {r.verb for r in rounds} == set(PLACES)
        assert {r.user for r in rounds} == {"OPTIMIZE", "UPDATE", ""}
        assert all(r.place in PLACES[r.verb] for r in rounds)


def test_the_places_are_in_the_code() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "bridge").rglob("*.py"))
    there = set(re.findall(r'failpoints\.hit\("([^"]+)"\)', code))
    assert {place for places in PLACES.values() for place in places} <= there
