"""docs/reliability.md: written and read back, percentiles by hand, and what it says now."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.checker import FAULTS
from tests.faults.report import LEAKS, Outcome, parsed, percentile, recovery, rendered, written

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"


def test_percentiles_are_values_that_were_there() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile(list(range(1, 201)), 99) == 198
    assert percentile([5.0], 99) == 5.0
    assert math.isnan(percentile([], 50))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    outcome = Outcome(
        seed=7,
        rounds=200,
        kinds=Counter({"kill all": 120, "broker": 80}),
        found=Counter({"lost": 2}),
        records_in=12_345,
        recoveries={"ingest": recovery([("first start", 99.0), ("kill all", 5.0), ("broker", 9.0)])},
        stall=1.5,
        users=["OPTIMIZE", "UPDATE lost: X"],
    )
    assert not outcome.clean
    file = tmp_path / "reliability.md"
    for _ in range(2):
        written(outcome, file)
    assert [p.name for p in tmp_path.iterdir()] == ["reliability.md"]
    found = parsed(file.read_text(encoding="utf-8"))
    assert found[""]["seed"] == "7" and found[""]["records written"] == "12,345"
    assert found["What was found"]["lost"] == "2" and found["What was found"]["reordered"] == "0"
    assert found["What was done"] | {"round": ""} == {"round": "", "kill all": "120", "broker": "80"}
    del found["Recovery"]["who"]
    assert found["Recovery"] == {"ingest": "5.0 s"}
    assert "| ingest | 5.0 s | 9.0 s | 2 |" in rendered(outcome)
    assert json.loads(outcome.json())["kinds"] == {"kill all": 120, "broker": 80}
    assert max(map(len, rendered(outcome).splitlines())) <= 130


@pytest.mark.skipif(not DOCUMENT.exists(), reason="`make faults` has not been run yet")
def test_the_document_claims_nothing_but_zeros_of_two_hundred_rounds() -> None:
    found = parsed(DOCUMENT.read_text(encoding="utf-8"))
    counts = found["What was found"]
    del counts["fault"]
    assert counts == dict.fromkeys((*FAULTS, *LEAKS), "0")
    assert int(found[""]["rounds"].replace(",", "")) >= 200 and found[""]["seed"].isdigit()
    assert {"ingest", "publish"} <= set(found["Recovery"])
    assert sum(int(n) for name, n in found["What was done"].items() if name != "round") >= 200
