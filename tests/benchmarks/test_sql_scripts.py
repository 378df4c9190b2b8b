"""Page views of a script: what is counted, and which batches."""

from __future__ import annotations

import pytest

from benchmarks.goals import faster
from benchmarks.jobs import Ran
from benchmarks.results import Entry
from benchmarks.sql_scripts import Views, warm


@pytest.mark.parametrize("records", [1, 700, 3000])
def test_views_and_different_users_of_each_region(records: int) -> None:
    views = Views(3000)
    users: dict[str, list[int]] = {}
    for user, region in zip(views.users[:records].tolist(), views.regions[:records].tolist(), strict=True):
        users.setdefault(f"r{region}", []).append(user)
    assert views.counts(records) == {region: (len(u), len(set(u))) for region, u in users.items()}


def batches(*seconds: float, wrong: str | None = None) -> list[Entry]:
    return [Entry("w", "s", 1, Ran(s, [], [], None, 10.0, 0.0), wrong) for s in seconds]


def test_the_first_two_batches_are_cold() -> None:
    row = warm("name", 5.0, batches(90, 90, 8, 9, 10), batches(50, 50, 3, 1, 2), faster)
    assert (row.baseline, row.bridge, row.ratio, row.held) == (9.0, 2.0, 4.5, False)
    assert warm("name", 5.0, batches(1, 1, 1), batches(1, 1, 1, wrong="3 regions differ"), faster).wrong == (
        "s: 3 regions differ"
    )
