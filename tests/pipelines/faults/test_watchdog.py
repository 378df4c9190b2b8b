"""An ingest or a publish that hangs in native code ends with 5, and the next one takes over at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.metrics.test_prometheus import gateway
from tests.pipelines.processes import Process
from tests.pipelines.scripts.scripts import MakeScript
from tests.pipelines.scripts.test_run import PAGEVIEWS, view
from tests.pipelines.world import Make, World, upsert


def stalls(run: Process, place: str) -> None:
    """It hangs at a failpoint, ends with 5, and leaves no process."""
    run.until(run.arm(place, "freeze"))
    assert run.ended(200) == 5, run.output
    run.alone(20)


def test_the_next_run_takes_over(
    make: Make, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps Python's lock, so that none of its threads runs; the JVM, which is idle, ends with it."""
    world = make(partitions=1)
    world.send([upsert(1, "a")])
    world.definition(run={"step-timeout": "45 s"})
    log = tmp_path / "bridge.log"
    monkeypatch.setenv("BRIDGE_LOG", str(log))
    with Process("ingest", world.folder / "orders.yaml", tmp_path / "first") as run:
        stalls(run, "ingest.before-merge")
    assert "stalled: ingest orders has not ended this step within 45 s: merging batch 0." in run.output
    written = log.read_text()
    assert "not ended this step within 45 s: merging batch 0." in written
    assert "in _hit" in written and "in apply_latest" in written and "in _send_heartbeats" in written
    begun = time.monotonic()
    with gateway() as (url, told):
        summary = ingest(spark, world.definition(run={"alert": f"{url}/hook"}))
    assert time.monotonic() - begun < 60 and summary.warning is None
    assert "the run before this one was killed, crashed or stalled: `ingest` of 'orders'" in told[0]
    assert [row[:2] for row in world.rows()] == [(1, "a")]


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["consumer", "spark"])
def test_a_run_of_several_pipelines_ends_too(
    make: Make, spark: SparkSession, tmp_path: Path, reader: str
) -> None:
    """`bridge ingest` of two files in one process: one that hangs ends both, with either reader."""
    worlds = dict[str, World]()
    for name in ("one", "two"):
        world = make(folder=name, partitions=1, sections=f"ingest: {{reader: {reader}}}\n")
        world.send([upsert(1, "a")])
        world.definition(name, {"step-timeout": "45 s"})
        worlds[name] = world
    first, *more = (world.folder / f"{name}.yaml" for name, world in worlds.items())
    with Process("ingest", first, tmp_path / "first", more=more) as run:
        stalls(run, "ingest.before-merge")
    assert "has not ended this step within 45 s: merging batch 0." in run.output
    for name, world in worlds.items():
        ingest(spark, world.definition(name))
        assert [row[:2] for row in world.rows()] == [(1, "a")]


@pytest.mark.slow
def test_a_publish_that_hangs_ends_too(make: Make, spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    """After its records were sent, and before it has recorded that: the next run sends them again, and no others."""
    world = make(partitions=1)
    rows = spark.createDataFrame([(1, "a", None)], "id BIGINT, name STRING, amount DECIMAL(10, 2)")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(f"{lake}/table")
    definition = world.definition(run={"step-timeout": "45 s"})
    with Process("publish", world.folder / "orders.yaml", tmp_path / "first") as run:
        stalls(run, "publish.sent")
    assert "stalled: publish orders has not ended this step within 45 s: " in run.output
    assert publish(spark, definition).warning is None
    assert {k for k, _ in world.received()} == {b'{"id":1}'} and len(world.received()) <= 2
    assert publish(spark, definition).records_out == 0


@pytest.mark.slow
def test_a_script_that_hangs_ends_too(script_of: MakeScript, lake: Path, tmp_path: Path) -> None:
    """Before the commit of an INSERT's result; the next run takes over and sends it once."""
    text = f"SET 'bridge.step-timeout' = '45 s';\n{PAGEVIEWS}"
    script = script_of(text)
    script.create("views", "regions")
    script.send("views", [view(1, "a")])
    script.script()
    with Process("run", lake / "script.sql", tmp_path / "first") as run:
        stalls(run, "script.before-commit")
    assert "has not ended this step within 45 s: " in run.output
    script.run()
    assert [(row["user_region"], row["pv"]) for _, row in script.received("regions")] == [("a", 1)]
