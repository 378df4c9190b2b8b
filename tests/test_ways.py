"""The list of ways is what ARCHITECTURE.md shows, and each faster way has its test."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.ways import WAYS, Way, told

ROOT = Path(__file__).parents[1]


def test_the_page_shows_the_list() -> None:
    shown = (ROOT / "ARCHITECTURE.md").read_text().split("<!-- ways -->\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()[2:]]
    assert rows == [
        [w.job, w.name, w.when, w.object_stores, w.clusters, f"`tests/{w.equal}`" if w.equal else "–"]
        for w in WAYS
    ]
    assert len(WAYS) <= 15


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.job}: {way.name}")
def test_all_but_the_plainest_are_compared_with_it(way: Way) -> None:
    plainest = [w for w in WAYS if w.job == way.job][-1]
    assert bool(way.equal) == (way is not plainest)
    assert not way.equal or (ROOT / "tests" / way.equal).is_file()


def test_a_way_is_told_with_its_reason() -> None:
    assert (told("driver"), told("spark", "the key format is raw")) == (
        "driver",
        "spark (the key format is raw)",
    )
