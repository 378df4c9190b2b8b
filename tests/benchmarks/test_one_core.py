"""What of a batch does not shrink with more cores, by Amdahl's law."""

from __future__ import annotations

import os

import pytest

from benchmarks import one_core
from benchmarks.topics import Load
from tests.benchmarks.made_up import Ground


@pytest.mark.parametrize(
    ("one", "all_", "gain", "left"),
    [
        (4.0, 2.0, 2.0, 0.0),  # all of it shrinks
        (4.0, 4.0, 2.0, 4.0),  # nothing does
        (3.0, 2.0, 2.0, 1.0),
        (3.0, 2.0, 1.5, 0.0),  # as much as the cores give
        (5.0, 2.0, 2.0, 0.0),  # more than that: a faster cache, chance
        (1.0, 2.0, 2.0, 2.0),
    ],
)
def test_what_does_not_shrink(one: float, all_: float, gain: float, left: float) -> None:
    assert one_core.unshrunk(one, all_, gain) == pytest.approx(left)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_core, "gain", lambda: 1.5)
    ground = Ground()
    first, second = one_core.outcomes(ground, Load.random(100, 10, 1), 10)  # type: ignore[arg-type]
    assert [options.get("cores") for _, _, options in ground.jobs] == [1, None]
    assert (first.ratio, second.ratio) == (1.0, 1.0) and "1.50 times the work" in second.name


def test_without_taskset_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    (row,) = one_core.outcomes(Ground(), Load.random(100, 10, 1), 10)  # type: ignore[arg-type]
    assert row.verdict == "not measured: it needs two cores and taskset"
