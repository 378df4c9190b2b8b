"""Fixtures of the quality tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest
from pyspark.sql import DataFrame

from bridge.quality.run import run
from bridge.quality.suite import load
from bridge.quality.verdict import Outcome


class Checked(Protocol):
    """Runs one expectation, given by its type and arguments, on a frame."""

    def __call__(self, frame: DataFrame, type: str, key: Sequence[str] = (), **kwargs: Any) -> Outcome: ...


@pytest.fixture
def checked(tmp_path: Path) -> Checked:
    def check(frame: DataFrame, type: str, key: Sequence[str] = (), **kwargs: Any) -> Outcome:
        file = tmp_path / "one.json"
        file.write_text(json.dumps({"name": "one", "expectations": [{"type": type, "kwargs": kwargs}]}))
        (outcome,) = run(frame, load(file), key=key).expectations
        return outcome

    return check
