"""What a publish would do next is what it does; nothing is sent or recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.cli.app import main
from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.explain import explain
from bridge.pipelines.publish.run import publish
from tests.kafka.topics import Fresh
from tests.pipelines.world import Make, World, tombstone, upsert


@pytest.fixture
def worlds(fresh: Fresh, make: Make, spark: SparkSession, broker: Broker, lake: Path) -> tuple[World, World]:
    """A topic that is ingested, and one to which its table is published."""
    into = make(partitions=1)
    topic = fresh("out")
    return into, World(spark, broker, lake, topic)


@pytest.mark.parametrize("once", [False, True], ids=["at-least-once", "exactly-once"])
def test_it_names_the_way_that_the_run_takes(worlds: tuple[World, World], once: bool) -> None:
    into, out = worlds
    if once:
        out.options = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": out.topic}
    into.send([upsert(1, "a"), upsert(2, "b")])
    ingest(into.spark, into.definition())
    for records in ([], [upsert(1, "c"), tombstone(2)]):
        into.send(records)
        ingest(into.spark, into.definition())
        found = explain(out.spark, out.definition("out"))
        reports: list[BatchReport] = []
        publish(out.spark, out.definition("out"), listener=reports.append)
        assert [(r.sender, r.encoder) for r in reports] == [(found.sender, found.encoder)]
        state = status(out.spark, out.definition("out"))
        assert (state.reader, state.sender) == (None, found.sender)
        assert found.range.startswith("all rows of" if not records else "the changes of versions")
        assert (found.transactions is not None) == once
    read = status(into.spark, into.definition(run={"checkpoint": "other"})).reader
    assert read == "consumer"
    done = explain(out.spark, out.definition("out"))
    assert (done.range, done.sender, done.pending_versions) == ("there is nothing to send", None, 0)
    if not once:
        assert reports[0].sender == "driver"


def test_the_command(worlds: tuple[World, World], capsys: pytest.CaptureFixture[str]) -> None:
    into, out = worlds
    into.send([upsert(1, "a")])
    ingest(into.spark, into.definition())
    out.definition("out")
    assert main(["publish", f"{out.folder}/out.yaml", "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "next range of out" in shown and "tasks (all rows of the table are sent)" in shown
    assert main(["publish", f"{out.folder}/out.yaml", "--explain", "--every", "1 h"]) == 2
    assert "--explain is about one file, whose next range is not run" in capsys.readouterr().err
    assert out.received() == []
