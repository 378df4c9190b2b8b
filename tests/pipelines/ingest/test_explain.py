"""`ingest --explain`: what the next batch would touch, and nothing touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.cli.app import main
from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport
from bridge.offsets import Offsets
from bridge.pipelines.ingest.explain import Explained, end_of_stream, explain
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import Make, World, tombstone, upsert


@pytest.fixture
def world(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> World:
    """Ids 0 to 79 in four files, twenty that lie together in each."""
    made = World.make(spark, broker, lake, unique)
    made.send([upsert(0, "n0")])
    ingest(spark, made.definition())
    rows = spark.range(1, 80, 1, 4).selectExpr("id", "concat('n', id) AS name", "1.00BD AS amount")
    rows.selectExpr("id", "name", "CAST(amount AS DECIMAL(10, 2)) AS amount").write.format("delta").mode(
        "append"
    ).save(f"{lake}/table")
    return made


def explained(world: World, ids: Iterable[int]) -> Explained:
    world.send([upsert(n, "changed") for n in ids])
    return explain(world.spark, world.definition())


def test_keys_that_lie_together_touch_the_file_that_holds_them(world: World) -> None:
    before = world.history()
    found = explained(world, [*range(25, 35), *range(25, 35)])
    assert (found.pending_records, found.records, found.keys, found.deletes) == (20, 20, 10, 0)
    assert (found.files, found.rows) == (5, 80)
    assert (found.files_in_range, found.files_touched, found.rows_touched) == (1, 1, 10)
    assert 0 < found.bytes_touched == found.bytes_in_range < found.bytes
    assert found.why == "the keys lie together: 1 of 5 files contain one, and statistics rule out the others"
    assert found.engine == "driver"
    assert world.history() == before


@pytest.mark.slow
def test_the_engine_is_the_one_that_the_ingest_takes(world: World) -> None:
    world.sections = "merge: {max-batch: 1 b}\n"
    found = explained(world, [1])
    assert found.engine == "spark (the batch has 0 MiB, more than 0 MiB)"
    world.sections = "merge: {max-touched: 1 b}\n"
    found = explain(world.spark, world.definition())
    assert found.engine == "spark (the batch touches files of 0 MiB, more than 0 MiB)"
    done: list[BatchReport] = []
    ingest(world.spark, world.definition(), listener=done.append)
    assert [report.engine for report in done] == [found.engine]
    world.sections = "merge: {engine: spark}\n"
    assert explained(world, [2]).engine == "spark (set by merge.engine)"
    world.sections = "merge: {engine: driver}\n"
    assert explain(world.spark, world.definition()).engine == "driver (set by merge.engine)"


@pytest.mark.slow
def test_keys_that_lie_everywhere(world: World) -> None:
    found = explained(world, [0, 5, 25, 45, 70])
    assert (found.files_touched, found.rows_touched) == (5, 5)
    assert found.why.startswith("the keys are spread over the table: 5 of 5 files contain one.")


@pytest.mark.slow
def test_ranges_that_say_nothing_are_told_apart_from_files_that_hold_keys(world: World) -> None:
    """Every file spans all ids, but few hold a key."""
    path = f"{world.folder}/table"
    shuffled = world.table().selectExpr("*", "id % 5 AS part").repartitionByRange(5, "part").drop("part")
    shuffled.write.format("delta").mode("overwrite").save(path)
    found = explained(world, [10, 15, 20, 25, 30])
    assert (found.files, found.files_in_range, found.files_touched) == (5, 5, 1)
    assert "5 files may contain one by their smallest and largest key where 1 do" in found.why


@pytest.mark.slow
def test_far_apart_new_and_deleted_keys(world: World) -> None:
    found = explained(world, [5, 70])
    assert (
        found.why == "the keys lie far apart: 2 of 5 files contain one of 2; statistics rule out the others"
    )
    ingest(world.spark, world.definition())
    assert explained(world, []).why == "there is nothing to apply"
    assert explained(world, [500]).why == "no key of the batch is in the table: its rows are new"
    world.send([tombstone(500), tombstone(6)])
    found = explain(world.spark, world.definition())
    assert (found.keys, found.deletes, found.rows_touched) == (2, 2, 1)


def test_before_the_first_batch_there_is_no_table_and_none_is_made(
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = World.make(spark, broker, lake, unique)
    world.send([upsert(n, "a") for n in range(30)])
    world.definition(run={"max-offsets-per-batch": 10})
    assert main(["ingest", f"{lake}/orders.yaml", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "of 30 pending" in out and "the table is empty: rows are written" in out
    assert not (lake / "table").exists() and not (lake / "checkpoint").exists()


@pytest.mark.parametrize("reader", ["auto", "spark"])
def test_a_limited_batch_is_the_one_that_the_ingest_takes(make: Make, reader: str) -> None:
    """Consumers use the limit up, and Spark's streaming source rounds each partition's share down."""
    world = make(partitions=3, sections=f"ingest: {{reader: {reader}}}\n")
    for partition, count in enumerate((7, 7, 6)):
        world.send([upsert(10 * partition + n, "a") for n in range(count)], partition=partition)
    limited = {"max-offsets-per-batch": 10}
    found = explain(world.spark, world.definition(run=limited))
    assert found.records == world.batches(limited)[0].records_in


def test_a_batch_of_a_stream_takes_its_share_of_every_partition() -> None:
    start, end = (
        Offsets({("t", 0): 10, ("t", 1): 0, ("t", 2): 5}),
        Offsets({("t", 0): 110, ("t", 1): 300, ("t", 2): 6}),
    )
    assert end_of_stream(start, end, 402) == end_of_stream(start, end, 401) == end
    assert end_of_stream(start, end, 40) == Offsets({("t", 0): 19, ("t", 1): 29, ("t", 2): 6})
