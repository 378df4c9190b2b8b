"""Every engine keeps the same contract: what is said of `merge` is said of each."""

from __future__ import annotations

import pytest

from bridge.delta.merging import Merge
from tests.delta.tables import ENGINES


@pytest.fixture(params=ENGINES)
def merge(request: pytest.FixtureRequest) -> Merge:
    return ENGINES[request.param]
