"""Folders with names that are no plain text in a URI, and folders that cannot be made."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.errors import BridgeError
from bridge.metrics import BatchReport
from bridge.peek import peek
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.explain import explain
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain
from bridge.pipelines.operations.status import status
from bridge.pipelines.publish.run import publish
from bridge.pipelines.quality.check import check
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import Make, key, tombstone, upsert

ONE = Decimal("1.00")
FOLDERS = {
    "a b?c#d+é&=;'%": "driver",
    "%20 x:y%2F": "spark (the path has '%20' in a name, which delta-rs takes for another one",
}
"""The names of folders, and which engine merges there."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_pipelines_find_a_folder_by_its_name(make: Make, spark: SparkSession, lake: Path, name: str) -> None:
    folder = lake / name
    aside = "ingest: {bad-records: quarantine}\n"
    for number, sections in enumerate(("", "ingest: {reader: spark}\n", "merge: {engine: spark}\n", aside)):
        world = make(folder=name, partitions=1, sections=sections, delta=f"path: table{number}")
        run = {"checkpoint": f"checkpoint{number}"}
        definition = world.definition(run=run)
        world.send([upsert(1, "a"), upsert(2, "b")])
        reports: list[BatchReport] = []
        ingest(spark, definition, listener=reports.append)
        if number == 0:
            assert (reports[0].engine or "").startswith(FOLDERS[name])
        world.send(
            [upsert(1, "c"), tombstone(2), upsert(3, "d"), *([(key(4), "{")] if sections == aside else [])]
        )
        ingest(spark, definition)
        rows = spark.read.format("delta").load(f"{folder}/table{number}").orderBy("id").collect()
        assert [tuple(row) for row in rows] == [(1, "c", ONE), (3, "d", ONE)]
        assert verify(spark, definition).equal
    assert replay(spark, definition).still_bad == 1
    assert resync(spark, definition).updated == 0
    maintain(spark, definition)
    assert status(spark, definition)
    back = make(folder=name, partitions=1, delta="path: table0")
    out = back.definition("back", {"checkpoint": "back"})
    publish(spark, out)
    assert {k for k, _ in back.received()} == {key(1).encode(), key(3).encode()}
    assert verify(spark, out, direction="publish").equal
    world.sections = f"{aside}quality: {{suite: suite.json, results: {{path: results}}}}\n"
    uniqueness = {"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id"]}}
    (folder / "suite.json").write_text(json.dumps({"name": "s", "expectations": [uniqueness], "meta": {}}))
    checked = check(spark, world.definition(run=run))
    assert checked.verdict.success and Path(checked.report).parent.parent == folder
    assert spark.read.format("delta").load(f"{folder}/results").count() > 0
    world.send([upsert(1, "e")])
    planned = explain(spark, world.definition(run=run))
    assert (planned.keys, planned.files_touched) == (1, 1)
    assert [record.key.json for record in peek(world.definition(run=run), limit=1)] == [key(1)]
    assert [path.name for path in lake.iterdir()] == [name]


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(
    make: Make, spark: SparkSession, lake: Path
) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "a"), (key(2), "{")])
    (lake / "file").touch()
    for delta, run, sections in (
        ("path: file/table", "checkpoint", ""),
        ("path: table", "file/checkpoint", ""),
        ("path: table", "checkpoint", "ingest: {bad-records: quarantine, quarantine: {path: file/aside}}\n"),
    ):
        world.delta, world.sections = delta, sections
        with pytest.raises(
            BridgeError, match=rf"{lake}/file/\w+.* cannot be made or written \({lake}/file is a file"
        ):
            ingest(spark, world.definition(run={"checkpoint": run}))
