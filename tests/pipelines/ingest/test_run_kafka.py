"""The connector `kafka` through a real broker: appends, changes merged by key, several topics, start positions."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from bridge.errors import BadRecordError, TopicMissingError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest import batch
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import DEBEZIUM, ROWS, Make, Record, World

ROW = "id BIGINT, name STRING, note STRING"


@pytest.fixture
def make(make: Make) -> Make:
    def made(**more: Any) -> World:
        options = {**ROWS, **more.pop("options", {})}
        return make(**{"columns": ROW, "cleanup": "delete", "options": options, **more})

    return made


def row(id: int, name: str | None = None, note: str | None = None) -> dict[str, Any]:
    return {"id": id, "name": name, "note": note}


def event(before: Any = None, after: Any = None) -> Record:
    op = "c" if before is None else "d" if after is None else "u"
    return None, json.dumps({"op": op, "before": before, "after": after})


def plain(*rows: dict[str, Any]) -> list[Record]:
    return [(None, json.dumps(r)) for r in rows]


def test_events_are_appended_once_each_however_often_it_runs(make: Make) -> None:
    world = make()
    world.send(plain(row(1, "a"), row(1, "a"), row(2)))
    world.send([(None, None)])
    first = ingest(world.spark, world.definition())
    assert (first.records_in, first.inserted, first.bad_records) == (4, 3, 0)
    assert ingest(world.spark, world.definition()).batches == 0
    world.send(plain(row(3, "c")))
    second = ingest(world.spark, world.definition())
    assert (second.records_in, second.inserted) == (1, 1)
    assert world.rows() == [(1, "a", None), (1, "a", None), (2, None, None), (3, "c", None)]
    assert verify(world.spark, world.definition()).equal
    world.spark.sql(f"DELETE FROM delta.`{world.folder}/table` WHERE id = 2")
    world.spark.sql(f"INSERT INTO delta.`{world.folder}/table` VALUES (3, 'c', NULL)")
    world.send(plain(row(4)))
    ingest(world.spark, world.definition())
    found = verify(world.spark, world.definition()).comparison
    assert (found.missing_in_table, found.missing_in_topic) == (1, 1)


@pytest.mark.slow
def test_a_bad_event_stops_the_batch_and_names_its_place(make: Make) -> None:
    world = make(partitions=1)
    world.send([*plain(row(1)), (None, '{"id":"secret"}')])
    with pytest.raises(BadRecordError, match=rf"^{world.topic}-0 at offset 1: value: field 'id' ") as caught:
        ingest(world.spark, world.definition())
    assert "secret" not in str(caught.value)
    assert world.rows() == []
    skipping = replace(world, sections="ingest: {bad-records: skip}\n")
    assert ingest(world.spark, skipping.definition()).bad_records == 1
    assert world.rows() == [(1, None, None)]


def test_changes_are_merged_by_primary_key_in_their_order(make: Make) -> None:
    world = make(options=DEBEZIUM, columns=f"{ROW}, PRIMARY KEY (id) NOT ENFORCED", partitions=1)
    world.send(
        [
            event(after=row(1, "a")),
            event(after=row(2, "b")),
            event(row(1, "a"), row(1, "a2")),
            event(row(2, "b"), row(3, "moved")),
            event(after=row(4, "x")),
            event(row(4, "x")),
            event(row(99, "never seen")),
            (None, None),
        ]
    )
    done = ingest(world.spark, world.definition())
    assert world.rows() == [(1, "a2", None), (3, "moved", None)]
    assert (done.records_in, done.inserted, done.deleted, done.bad_records) == (8, 2, 0, 0)
    world.send([event(row(3, "moved"), row(1, "both")), event(row(1, "a2"), row(5))])
    ingest(world.spark, world.definition())
    assert world.rows() == [(5, None, None)]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_value_that_an_update_leaves_out_is_kept(make: Make) -> None:
    """From the change before in the batch, else from the table; where there is neither, the batch stops."""
    out = "__debezium_unavailable_value"
    world = make(options=DEBEZIUM, columns=f"{ROW}, PRIMARY KEY (id) NOT ENFORCED", partitions=1)
    world.send([event(after=row(1, "a", "large")), event(row(1), row(1, "b", out))])
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "b", "large")]
    world.send([event(row(1), row(1, "c", out)), event(after=row(2, "x", "other"))])
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "c", "large"), (2, "x", "other")]
    assert verify(world.spark, world.definition()).equal
    world.send([event(row(7), row(7, "?", out))])
    with pytest.raises(BadRecordError, match="it leaves out note, and there is no row of this key"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_a_value_that_is_left_out_does_not_undo_an_update_of_another_writer(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(options=DEBEZIUM, columns=f"{ROW}, PRIMARY KEY (id) NOT ENFORCED", partitions=1)
    world.send([event(after=row(1, "a", "large"))])
    ingest(world.spark, world.definition())
    real = batch.judge_records

    def judge_records(*given: Any) -> None:
        """The table has been read, and nothing is merged yet."""
        world.spark.sql(f"UPDATE delta.`{world.folder}/table` SET note = 'user' WHERE id = 1")
        real(*given)

    monkeypatch.setattr(batch, "judge_records", judge_records)
    world.send([event(row(1), row(1, "b", "__debezium_unavailable_value"))])
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "b", "user")]


def test_topics_of_a_list_and_of_a_pattern_go_into_one_table(make: Make) -> None:
    columns = f"{ROW}, t STRING METADATA FROM 'topic' VIRTUAL"
    world = make(columns=columns)
    others = [f"{world.topic}-b", f"{world.topic}-c"]
    for name in others:
        world.broker.create_topic(name)
    for n, name in enumerate([world.topic, *others]):
        replace(world, topic=name).send(plain(row(n)))
    both = replace(world, options={**world.options, "topic": f"{world.topic};{others[0]}"})
    ingest(world.spark, both.definition())
    assert world.rows() == [(0, None, None, world.topic), (1, None, None, others[0])]
    pattern = {**world.options, "topic": None, "topic-pattern": f"{world.topic}.*"}
    ingest(world.spark, replace(world, options=pattern).definition())
    assert [r[0] for r in world.rows()] == [0, 1, 2]
    nothing = {**pattern, "topic-pattern": "no-such-.*"}
    with pytest.raises(TopicMissingError, match=r"matches 'topic-pattern' = 'no-such-\.\*'"):
        ingest(world.spark, replace(world, options=nothing).definition())


def test_a_topic_that_comes_later_is_found_while_it_runs(make: Make, stop: threading.Event) -> None:
    options = {"topic": None, "scan.topic-partition-discovery.interval": "200 ms"}
    world = make()
    world = replace(world, options={**world.options, **options, "topic-pattern": f"{world.topic}.*"})
    world.send(plain(row(1)))
    later = f"{world.topic}-later"

    def heard(report: BatchReport) -> None:
        if report.batch == 0:
            world.broker.create_topic(later)
            replace(world, topic=later).send(plain(row(2)))
        else:
            stop.set()

    ingest(world.spark, world.definition(run={"trigger": "1 s"}), listener=heard, stop=stop)
    assert [r[0] for r in world.rows()] == [1, 2]


@pytest.mark.parametrize("mode", ["latest-offset", None])
def test_a_start_at_the_latest_is_remembered_by_a_run_that_found_nothing(
    make: Make, mode: str | None
) -> None:
    """By default it is where a group starts that has committed nothing, and a run says what it leaves out."""
    world = make(options={"scan.startup.mode": mode})
    world.send(plain(row(1)))
    first = ingest(world.spark, world.definition())
    assert first.batches == 0
    left_out = "1 earlier offsets of the topic are not read: 'scan.startup.mode' is 'group-offsets'"
    assert (left_out in (first.warning or "")) == (mode is None)
    world.send(plain(row(2)))
    ingest(world.spark, world.definition())
    assert world.rows() == [(2, None, None)]


def test_monitoring_sees_the_offsets_of_the_group(make: Make) -> None:
    world = make(partitions=1)
    world.send(plain(row(1), row(2)))
    group = f"group-of-{world.topic}"
    for options, name in (({"properties.group.id": group}, group), ({}, "KafkaSource-t")):
        with_group = replace(world, options={**world.options, **options})
        world.send(plain(row(3)))
        ingest(world.spark, with_group.definition())
        reader = Consumer({"bootstrap.servers": world.broker.bootstrap, "group.id": name})
        [found] = reader.committed([TopicPartition(world.topic, 0)], timeout=20)
        reader.close()
        assert found.offset == len(world.rows())


def test_event_time_per_partition(make: Make) -> None:
    columns = "id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
    world = make(columns=columns, partitions=2)
    world.send([(None, '{"id":1,"ts":"2026-01-01 00:00:20"}')], partition=0)
    reports = world.batches()
    world.send([(None, '{"id":1,"ts":"2026-01-01 00:00:10"}')], partition=1)
    world.send([(None, '{"id":2,"ts":"2026-01-01 00:00:30"}')], partition=0)
    reports += world.batches()
    assert [r.watermark_ms for r in reports] == [None, 1767225605000]
    lag = reports[1].event_time_lag_seconds
    assert lag is not None and lag > 0
