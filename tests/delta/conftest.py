"""Tests with the fixture `merge` run with every engine: one contract for all."""

from __future__ import annotations

import pytest

from tests.delta.tables import ENGINES, Merge


@pytest.fixture(params=ENGINES)
def merge(request: pytest.FixtureRequest) -> Merge:
    return ENGINES[request.param].merge
