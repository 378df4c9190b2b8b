"""A gate judges the rows of a range alike, whether the driver or tasks send it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import QualityError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.pipelines.world import World, key, tombstone, upsert

SUITE = {
    "name": "s",
    "expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}}],
}


@pytest.mark.parametrize("action", ["warn", "fail"])
def test_the_driver_judges_as_tasks_do(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], action: str
) -> None:
    into = World.make(spark, broker, lake, unique, partitions=1)
    into.send([upsert(1, "a"), upsert(2, "b")])
    ingest(spark, into.definition())
    (lake / "suite.json").write_text(json.dumps(SUITE))
    outs = []
    for encoder in ("auto", "spark"):
        broker.create_topic(topic := unique("out"))
        sections = f"quality: {{suite: suite.json, gate: {action}}}\npublish: {{encoder: {encoder}}}\n"
        outs.append(World(spark, broker, lake, topic, sections=sections))

    def publish_all() -> list[BatchReport]:
        reports: list[BatchReport] = []
        for number, out in enumerate(outs):
            run = {"checkpoint": f"out{number}"}
            publish(spark, out.definition(f"out{number}", run=run), listener=reports.append)
        return reports

    publish_all()
    into.send([(key(2), '{"id": 2}'), upsert(3, "c"), tombstone(1)])
    ingest(spark, into.definition())
    if action == "warn":
        mine, theirs = publish_all()
        assert (mine.sender, theirs.sender) == ("driver", "tasks (publish.encoder is spark)")
        assert (mine.unexpected_rows, theirs.unexpected_rows) == (1, 1)
        told = [
            str(report.warning).replace(out.topic, "")
            for report, out in zip((mine, theirs), outs, strict=True)
        ]
        assert told[0].replace("out0", "out1") == told[1]
    else:
        errors = []
        for number, out in enumerate(outs):
            with pytest.raises(QualityError, match=r'for example \{"id":2\}') as caught:
                publish(spark, out.definition(f"out{number}", run={"checkpoint": f"out{number}"}))
            errors.append(str(caught.value).replace("out0", "out1"))
        assert errors[0] == errors[1]
    received = [sorted(map(str, out.received())) for out in outs]
    assert received[0] == received[1] and len(received[0]) == (5 if action == "warn" else 2)
