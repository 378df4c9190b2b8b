"""Ingest through a real broker into a real table: what is applied, what is committed, what is refused."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from bridge.errors import BadRecordError, TableError, TopicMissingError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.status import status
from tests.pipelines.world import Make, key, tombstone, upsert, value


def test_a_changelog_becomes_a_table_and_later_changes_follow(make: Make) -> None:
    world = make()
    world.send(
        [upsert(1, "a"), upsert(2, "b"), upsert(1, "a2"), tombstone(2), tombstone(77), upsert(3, None)]
    )
    first = ingest(world.spark, world.definition())
    assert world.rows() == [(1, "a2", Decimal("1.00")), (3, None, Decimal("1.00"))]
    assert (first.records_in, first.inserted, first.updated, first.deleted, first.pending_records) == (
        6,
        2,
        0,
        0,
        0,
    )

    world.send(
        [upsert(1, "a2"), upsert(2, "back"), tombstone(3), upsert(1, "a3"), upsert(4, "x"), tombstone(4)]
    )
    second = ingest(world.spark, world.definition())
    assert world.rows() == [(1, "a3", Decimal("1.00")), (2, "back", Decimal("1.00"))]
    assert (second.inserted, second.updated, second.deleted, second.unchanged) == (1, 1, 1, 1)

    nothing = ingest(world.spark, world.definition())
    assert nothing.batches == 0 and nothing.records_in == 0


def test_each_batch_is_one_commit_that_carries_its_end_offsets(make: Make) -> None:
    world = make(partitions=1)
    world.send([upsert(n, "x") for n in range(7)])
    reports = world.batches({"max-offsets-per-batch": 3})
    assert [r.records_in for r in reports] == [3, 3, 1]
    assert [r.pending_records for r in reports] == [4, 1, 0]
    merges = [commit for commit in world.history() if commit["operation"] == "MERGE"]
    offsets = [json.loads(c["userMetadata"])["bridge"]["offsets"][world.topic]["0"] for c in merges]
    assert offsets == [7, 6, 3]
    assert [r.version for r in reports] == [c["version"] for c in reversed(merges)]


@pytest.mark.slow
def test_a_batch_that_changes_nothing_writes_no_file_and_no_feed_row(make: Make) -> None:
    world = make()
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    files = set((world.folder / "table").rglob("*.parquet"))
    world.send([upsert(1, "a"), upsert(2, "b"), tombstone(99)])
    again = ingest(world.spark, world.definition())
    assert (again.records_in, again.unchanged, again.inserted + again.updated + again.deleted) == (3, 3, 0)
    assert set((world.folder / "table").rglob("*.parquet")) == files
    feed = world.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    assert feed.load(str(world.folder / "table")).where(f"_commit_version = {again.version}").count() == 0


@pytest.mark.parametrize("reader", ["consumer", "spark"])
def test_no_count_is_below_0_where_a_key_has_several_rows(make: Make, reader: str) -> None:
    """Another writer's: a change of one key then changes more rows than there are keys."""
    world = make(partitions=1, sections=f"ingest: {{reader: {reader}}}\n")
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    for name in ("b", "c"):
        world.spark.sql(f"INSERT INTO delta.`{world.folder}/table` VALUES (1, '{name}', 1)")
    world.send([tombstone(1)])
    summary = ingest(world.spark, world.definition())
    assert (summary.deleted, summary.unchanged) == (3, 0)
    assert world.rows() == []


def test_the_checkpoint_may_be_lost_or_copied(make: Make) -> None:
    """Progress is the table's: with the checkpoint gone the next run neither repeats nor misses a record."""
    world = make()
    world.send([upsert(1, "old"), upsert(2, "b")])
    ingest(world.spark, world.definition())
    shutil.rmtree(world.folder / "checkpoint", ignore_errors=True)
    world.send([upsert(1, "new")])
    again = ingest(world.spark, world.definition())
    assert again.records_in == 1
    assert world.rows() == [(1, "new", Decimal("1.00")), (2, "b", Decimal("1.00"))]


def test_the_last_record_of_a_key_counts_even_if_its_timestamp_is_older(make: Make) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "first")], timestamp=1_600_000_000_000)
    world.send([upsert(1, "last")], timestamp=1_500_000_000_000)
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "last", Decimal("1.00"))]


def test_a_key_in_two_partitions_is_decided_by_timestamp_and_counted(make: Make) -> None:
    world = make(partitions=2)
    world.send([upsert(1, "newer")], partition=1, timestamp=1_600_000_000_000)
    world.send([upsert(1, "older")], partition=0, timestamp=1_500_000_000_000)
    found = ingest(world.spark, world.definition())
    assert world.rows() == [(1, "newer", Decimal("1.00"))]
    assert found.keys_in_two_partitions == 1


def test_spaces_in_a_key_document_do_not_make_another_key(make: Make) -> None:
    world = make(partitions=1)
    world.send([('{"id":1}', value(1, "a")), ('{ "id": 1 }', value(1, "b"))])
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "b", Decimal("1.00"))]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ((key(1), '{"id":1,"name"'), r"topic-.*-0 at offset 1, row \(id: 1\): "),
        pytest.param((key(1), ""), r"topic-.*-0 at offset 1, row \(id: 1\): ", marks=pytest.mark.slow),
        ((key(1), '{"id":1,"amount":123456789012.00}'), r"topic-.*-0 at offset 1, row \(id: 1\): .*amount"),
        pytest.param(("not json", value(1, "x")), r"topic-.*-0 at offset 1: .*key", marks=pytest.mark.slow),
        ((None, value(1, "x")), r"topic-.*-0 at offset 1: null key"),
        pytest.param((None, None), r"topic-.*-0 at offset 1: null key", marks=pytest.mark.slow),
    ],
    ids=["cut", "empty", "overflow", "bad key", "null key", "null key and value"],
)
def test_a_bad_record_stops_the_job_with_its_coordinates(
    make: Make, record: tuple[str | None, str | None], why: str
) -> None:
    world = make(partitions=1, cleanup="delete")
    world.send([upsert(5, "good"), record, upsert(6, "good")])
    with pytest.raises(BadRecordError, match=why) as failure:
        ingest(world.spark, world.definition())
    assert "bad-records: skip" in str(failure.value)
    assert "123456789012" not in str(failure.value) and "not json" not in str(failure.value)
    assert world.rows() == []


def test_bad_records_are_quarantined_once(make: Make, arm: Callable[[str, str], Path]) -> None:
    """A run that dies between quarantine and commit finds them in the quarantine the next time."""
    world = make(partitions=1, cleanup="delete", sections="ingest: {bad-records: quarantine}\n")
    world.send([upsert(1, "good"), (key(1), "{cut"), (None, value(2, "x")), upsert(3, "c"), tombstone(3)])
    arm("ingest.put-aside", "raise")
    with pytest.raises(RuntimeError, match=r"failpoint ingest\.put-aside"):
        ingest(world.spark, world.definition())
    assert world.rows() == []
    world.send([(key(4), "[")])
    done = ingest(world.spark, world.definition())
    assert (done.bad_records, world.rows()) == (3, [(1, "good", Decimal("1.00"))])
    quarantined = (
        world.spark.read.format("delta").load(f"{world.folder}/table_quarantine").orderBy("offset").collect()
    )
    assert [(r["offset"], r["key"] and bytes(r["key"]), bytes(r["value"])) for r in quarantined] == [
        (1, key(1).encode(), b"{cut"),
        (2, None, value(2, "x").encode()),
        (5, key(4).encode(), b"["),
    ]
    assert {(r["pipeline"], r["topic"], r["partition"]) for r in quarantined} == {("orders", world.topic, 0)}
    assert [r["reason"].split(":")[0] for r in quarantined][1] == "null key" and all(
        r["topic_id"] for r in quarantined
    )
    assert not any("cut" in r["reason"] for r in quarantined)
    assert status(world.spark, world.definition()).quarantined == 3


def test_skipped_bad_records_are_counted_and_the_last_good_one_counts(make: Make) -> None:
    world = make(partitions=1, cleanup="delete", sections="ingest: {bad-records: skip}\n")
    world.send([upsert(1, "good"), (key(1), "{cut"), (None, value(2, "x")), upsert(3, "c"), tombstone(3)])
    found = ingest(world.spark, world.definition())
    assert world.rows() == [(1, "good", Decimal("1.00"))]
    assert (found.records_in, found.bad_records) == (5, 2)


@pytest.mark.slow
def test_a_function_of_the_user_that_raises_is_named(make: Make) -> None:
    def half(value: int) -> int:
        raise LookupError(f"secret {value}")

    columns = "id BIGINT, name STRING, h AS ABS(half_of(id)), PRIMARY KEY (id) NOT ENFORCED"
    world = make(partitions=1, columns=columns, sections="ingest: {bad-records: skip}\n")
    world.spark.udf.register("half_of", half, "int")
    world.send([upsert(1, "a")])
    own = r"LookupError, raised by a function of your own: half_of in computed column 'h', ABS\(half_of\(id\)\)\. "
    with pytest.raises(TableError, match=own) as failure:
        ingest(world.spark, world.definition())
    assert "secret" not in str(failure.value)
    assert world.rows() == []


def test_stop_lets_the_running_batch_commit(make: Make, stop: threading.Event) -> None:
    world = make(partitions=1)
    world.send([upsert(n, "x") for n in range(9)])
    first = ingest(
        world.spark,
        world.definition(run={"max-offsets-per-batch": 3}),
        listener=lambda report: stop.set(),
        stop=stop,
    )
    assert first.batches == 1 and len(world.rows()) == 3
    rest = ingest(world.spark, world.definition())
    assert rest.records_in == 6 and len(world.rows()) == 9


def test_an_interval_run_picks_up_what_comes_later(make: Make, stop: threading.Event) -> None:
    world = make(partitions=1)
    world.send([upsert(1, "a")])

    def listen(report: BatchReport) -> None:
        if report.records_in and len(world.rows()) == 2:
            stop.set()
        elif report.records_in:
            world.send([upsert(2, "b")])

    ingest(world.spark, world.definition(run={"trigger": "500 ms"}), listener=listen, stop=stop)
    assert [row[0] for row in world.rows()] == [1, 2]


def test_a_missing_topic_writes_nothing(make: Make, lake: Path) -> None:
    world = make()
    world.topic = "no-such-topic"
    with pytest.raises(TopicMissingError, match="no-such-topic"):
        ingest(world.spark, world.definition())
    assert not (lake / "table").exists()


def test_another_table_at_the_path_is_refused(make: Make, lake: Path) -> None:
    world = make()
    world.spark.range(3).write.format("delta").save(str(lake / "table"))
    with pytest.raises(TableError, match=r"name|amount"):
        ingest(world.spark, world.definition())
    assert world.table().count() == 3
