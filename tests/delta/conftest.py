"""Every engine keeps the same contract: what is said of `merge` is said of each."""

from __future__ import annotations

import pytest

from bridge.delta.merge_contract import Merge
from bridge.delta.merge_spark import LEAN
from tests.delta.tables import ENGINES


@pytest.fixture(autouse=True)
def lean(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark's MERGE does with large tables, it does here with small ones."""
    monkeypatch.setitem(LEAN, "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold", "0")


@pytest.fixture(params=ENGINES)
def merge(request: pytest.FixtureRequest) -> Merge:
    return ENGINES[request.param]
