"""`bridge run` as a process of its own, killed at the places where progress is recorded."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.pipelines.processes import Process
from tests.pipelines.scripts.scripts import MakeScript
from tests.pipelines.scripts.test_run import PAGEVIEWS, view

PLACES = (
    "ingest.before-merge",
    "ingest.after-merge",
    "script.before-commit",
    "script.after-commit",
    "publish.opened",
    "shard.after-commit",
    "publish.sent",
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_view_is_counted_twice_or_not_at_all(script_of: MakeScript, lake: Path, tmp_path: Path) -> None:
    """A killed run leaves all processes of its session to end by themselves; the next one goes on."""
    script = script_of(PAGEVIEWS)
    script.create("views", "regions")
    draw, expected, sent = random.Random(5), Counter[str](), defaultdict[str, list[int]](list)
    script.script()
    for number, place in enumerate(PLACES):
        views = [(draw.randrange(20), draw.choice("abcd")) for _ in range(40)]
        expected.update(region for _, region in views)
        script.send("views", [view(user, region) for user, region in views])
        with Process("run", lake / "script.sql", tmp_path / f"run-{number}") as run:
            hit = run.arm(place, "kill")
            # A shard is sent by a Python worker of Spark: the run survives its death, and ends with an error.
            code = 1 if place.startswith("shard.") else -9
            assert run.ended(120) == code, f"{place}: {run.output}"
            assert hit.exists()
    script.run()
    for key, row in script.received("regions"):
        sent[key["user_region"]].append(row["pv"])
    assert {region: counts[-1] for region, counts in sent.items()} == expected
    assert all(counts == sorted(set(counts)) for counts in sent.values()), "a count was sent twice"
