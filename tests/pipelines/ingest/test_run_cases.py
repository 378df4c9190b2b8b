"""Cases restated from the documentation of AUTO CDC and Paimon, in the form of the acceptance cases; each names its
source. `delta` is beside that form: what a pipeline file says of changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import World

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 1_000])
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem[:4])
def test_cases(
    file: Path,
    batch: int,
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
) -> None:
    case: dict[str, Any] = json.loads(file.read_text("utf-8"))
    assert case["source"]["project"] and case["kind"] == "ingest"
    declared = [f"{column['name']} {column['type']}" for column in case["columns"]]
    more: dict[str, str | None] = {}
    if case["connector"] == "kafka":
        more = {"connector": "kafka", "key.format": None, "value.format": case["format"]}
        more["scan.startup.mode"] = "earliest-offset"
    world = World.make(
        spark,
        broker,
        lake,
        unique,
        partitions=1,
        cleanup="delete",
        columns=f"{', '.join(declared)}, PRIMARY KEY ({', '.join(case['primary_key'])}) NOT ENFORCED",
        options=more,
        delta=f"path: table, {case['delta']}",
    )
    world.send([(record["key"], record["value"]) for record in case["records"]])
    definition = world.definition(run={"max-offsets-per-batch": batch})
    if "expected_error" in case:
        with pytest.raises(BadRecordError, match=case["expected_error"]["message_contains"]):
            ingest(spark, definition)
        return
    ingest(spark, definition)
    assert world.rows() == sorted((tuple(row) for row in case["expected_table"]), key=str)
    assert verify(spark, definition).equal
