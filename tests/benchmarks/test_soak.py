"""What a soak judges, and a short one."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from benchmarks import soak, soak_sides
from benchmarks.soak import Held, Part, grown, shown
from benchmarks.topics import records

HELD = [Held(1000.0, 40, 300)] * 3
SECOND = Part(
    rate=2000.0,
    table=(0.3, 0.6),
    topic=(0.8, 1.5),
    ingest=HELD,
    publish=HELD,
    batch=(0.2, 0.3),
    range=(0.1, 0.2),
)


@pytest.mark.parametrize(
    ("last", "seconds", "expected"),
    [
        ({}, 300, []),
        ({"table": (0.40, 0.76), "topic": (1.0, 1.84)}, 300, []),
        ({"table": (0.42, 0.6)}, 300, ["topic → table p50 has grown from 0.30 to 0.42 s"]),
        ({"topic": (0.8, 1.9)}, 300, ["topic → table → topic p99 has grown from 1.50 to 1.90 s"]),
        ({"topic": (0.8, 1.9)}, 30, []),
        (
            {"ingest": [Held(1250.0, 40, 300)], "publish": [Held(1190.0, 40, 300)]},
            30,
            ["memory of the ingest has grown from 1,000.00 to 1,250.00 MB"],
        ),
        ({"table": (float("nan"), 0.6)}, 300, ["topic → table p50 has grown from 0.30 to nan s"]),
    ],
)
def test_what_has_grown_by_more_than_a_fifth(
    last: dict[str, tuple[float, float]], seconds: float, expected: list[str]
) -> None:
    assert grown(SECOND, replace(SECOND, **last), seconds=seconds) == expected  # type: ignore[arg-type]


def test_parts_are_columns() -> None:
    screen = Console(width=160, record=True)
    screen.print(shown([SECOND, replace(SECOND, active=7, removed=12_345)], 300))
    text = screen.export_text()
    assert "Parts of 5 minutes" in text and re.search(r"active / removed files +0 / 0 +7 / 12,345", text)
    assert re.search(r"memory \(PSS\) of ingest / publish, MB +1,000 / 1,000", text)


def test_a_load_is_drawn_by_its_seed() -> None:
    (one, said), (same, again), (other, _) = (soak_sides.drawn(seed, 400, 9_000) for seed in (3, 3, 4))
    assert said == again and (one.keys == same.keys).all() and (one.keys != other.keys).any()
    assert sorted(one.keys[:400]) == list(range(400)) and not one.deletes[:400].any()
    assert one.keys.max() < 400 and 0.03 < one.deletes[400:].mean() < 0.07
    assert one.notes is not None and len(one.notes) == len(one)
    for record, length in zip(records(one, 0, 50), one.notes, strict=False):
        assert record["value"] is not None and re.search(rb'"note":"[a-z]{%d}"' % length, record["value"])


def test_every_record_has_an_offset() -> None:
    load, _ = soak_sides.drawn(1, 40, 60)
    found = soak_sides.by_partition(load)
    assert sorted(np.concatenate(list(found.values()))) == list(range(100))
    assert all((np.diff(indexes) > 0).all() for indexes in found.values())


def test_this_process_holds_something() -> None:
    held = Held.of(os.getsid(0))
    assert held.megabytes > 10 and held.threads >= 1 and held.files >= 3


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_three_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--minutes", "3"]) == 0
    assert "table and topics are equal, row by row" in capsys.readouterr().out
