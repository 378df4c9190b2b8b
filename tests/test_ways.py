"""ARCHITECTURE.md lists the ways of each job, at most 15, and each faster way has its test."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from bridge.ways import told

ROOT = Path(__file__).parents[1]


def test_all_but_the_plainest_are_compared_with_it() -> None:
    shown = (ROOT / "ARCHITECTURE.md").read_text().split("<!-- ways -->\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()[2:]]
    assert len(rows) <= 15 and all(len(row) == 6 and all(row) for row in rows)
    for job, ways in groupby(rows, key=lambda row: row[0]):
        *faster, plainest = (row[-1] for row in ways)
        assert plainest == "–", job
        assert all((ROOT / test.strip("`")).is_file() for test in faster), job


def test_a_way_is_told_with_its_reason() -> None:
    assert (told("driver"), told("spark", "the key format is raw")) == (
        "driver",
        "spark (the key format is raw)",
    )
