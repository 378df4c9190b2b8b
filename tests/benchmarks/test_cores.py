"""The worth of cores is counted work, not a claim."""

from __future__ import annotations

from benchmarks.cores import _work, gain


def test_every_process_counts() -> None:
    assert _work(1, 0.05) > 0
    assert _work(2, 0.05) > 1
    assert gain(0.05) > 0
