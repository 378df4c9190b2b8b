"""The project's own cases, in the form of the acceptance cases, each naming the documentation that it restates."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.cases.bench import World
from tests.cases.case import Case, load
from tests.cases.judge import Judge
from tests.cases.outcome import Kind, Outcome

OWN = sorted(load(Path(__file__).parent / "own"), key=lambda case: case.id)


@pytest.mark.slow
@pytest.mark.parametrize("case", OWN, ids=lambda case: case.name)
def test_what_the_documentation_says(case: Case, spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    assert case.data["source"]["documentation"].startswith("https://")
    assert Judge(World(spark, broker, tmp_path)).verdict(case) == Outcome(Kind.PASS)
