"""What consumers read is what Spark's path reads; what they leave to it, they name."""

from __future__ import annotations

import json
import random
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from bridge.arrow_formats.base import ArrowDecoder
from bridge.columns import KIND
from bridge.definition import FormatSpec
from bridge.delta.append_files import FileAppends
from bridge.kafka import admin, source
from bridge.metrics import BatchReport
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.ingest import append_reader, consumer_reader
from bridge.pipelines.ingest.append_reader import AppendReader
from bridge.pipelines.ingest.consumer_reader import ConsumerReader, LatestBatch
from bridge.pipelines.ingest.consumer_support import refuse_unsupported
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.ways import NotThisWay
from tests.pipelines.world import Make, Record, World, key, tombstone, upsert
from tests.refusals import refusal

COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10, 2), at TIMESTAMP(3), ok BOOLEAN, PRIMARY KEY (id) NOT ENFORCED"


def consumers(world: World) -> ConsumerReader:
    definition = world.definition()
    refuse_unsupported(definition, definition.topic)
    return ConsumerReader(world.spark, definition, definition.topic, ingest_table(world.spark, definition))


def read(world: World, start: Offsets | None = None, end: Offsets | None = None) -> LatestBatch:
    state = admin.describe(world.definition().topic)
    return consumers(world).read(start or state.earliest, end or state.end)


def rows_of(batch: LatestBatch) -> list[str]:
    return sorted(str(tuple(row.values())) for row in batch.changes.to_pylist())


def rows_of_spark(world: World, start: Offsets, end: Offsets) -> list[str]:
    """The same by Spark's source and Spark's decoder."""
    definition = world.definition()
    with ExitStack() as stack:
        persist = changelog_decode.persist_within(stack)
        records = source.read(world.spark, definition.topic, start, end)
        changes = changelog_decode.fold(
            changelog_decode.decode_with_fallback(records, definition, persist), definition
        )
        rows = changes.select(*definition.topic.schema.names, KIND).toArrow()
    return sorted(str(tuple(row.values())) for row in rows.to_pylist())


def drawn(seed: int, count: int) -> list[Record]:
    """Records of few keys: updates, deletes, missing and null fields, fields that the table does not have."""
    draw = random.Random(seed)
    records: list[Record] = []
    for _ in range(count):
        id = draw.randrange(count // 4)
        fields: dict[str, Any] = {"id": id, "extra": [id]}
        fields["name"] = draw.choice(["a", "ä\u2028", "", 'quote " and \\', "x" * 300, None])
        fields["amount"] = draw.choice([1, 0.5, 12345678.25, -3, None])
        fields["at"] = draw.choice(["2026-11-23 10:00:00.123", "1969-12-31 23:59:59", None])
        fields["ok"] = draw.choice([True, False, None])
        for name in draw.sample(["name", "amount", "at", "ok"], draw.randrange(3)):
            del fields[name]
        gone = draw.random() < 0.2
        records.append((key(id), None if gone else json.dumps(fields, ensure_ascii=draw.random() < 0.5)))
    return records


@pytest.mark.parametrize("cuts", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_consumers_read_what_spark_reads(make: Make, cuts: int) -> None:
    """Of a drawn changelog, cut into drawn ranges; where it is cut often, as a whole, too."""
    world = make(columns=COLUMNS)
    world.send(drawn(1, 400))
    state = admin.describe(world.definition().topic)
    draw = random.Random(2)
    ranges = [(state.earliest, state.end)] if cuts > 1 else []
    for _ in range(cuts):
        cut = Offsets({name: draw.randrange(offset + 1) for name, offset in state.end.by_partition.items()})
        ranges += [(state.earliest, cut), (cut, state.end)]
    for start, end in ranges:
        batch = read(world, start, end)
        assert rows_of(batch) == rows_of_spark(world, start, end)
        assert isinstance(batch, LatestBatch)
        assert batch.read.records == start.lag(end)
        assert batch.upserts == sum(row["__kind"] == "+U" for row in batch.changes.to_pylist())


def test_ranges_of_tombstones_or_of_nothing_have_all_columns(make: Make) -> None:
    world = make(columns=COLUMNS, partitions=1)
    world.send([tombstone(1), tombstone(2), tombstone(1)])
    batch = read(world)
    assert rows_of(batch) == [f"({id}, None, None, None, None, '-D')" for id in (1, 2)]
    assert isinstance(batch, LatestBatch) and (batch.read.records, batch.upserts) == (3, 0)


def test_a_key_in_two_partitions_is_left_to_spark(make: Make) -> None:
    world = make()
    world.send([upsert(1, "old")], partition=0)
    world.send([upsert(1, "new")], partition=1)
    assert refusal(lambda: read(world)) == "a key is in two partitions, or written in two ways"


def test_a_key_written_in_two_ways_is_left_to_spark(make: Make) -> None:
    world = make(partitions=1)
    world.send([('{"id":1}', '{"id":1,"name":"a"}'), ('{"id": 1}', '{"id":1,"name":"b"}')])
    assert refusal(lambda: read(world)) == "a key is in two partitions, or written in two ways"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ((key(1), '{"id": 1, "name": 5}'), ""),
        ((key(1), "no json"), ""),
        (('{"id": "1"}', '{"id": 1}'), ""),
        ((None, '{"id": 1}'), "a key is null"),
        (('{"schema": {}, "payload": {"id": 1}}', '{"id": 1}'), "a document has none of the row's fields"),
        (('{"ID": 1}', None), "a key has no value in any of its columns"),
    ],
)
def test_what_arrow_may_read_otherwise_is_left_to_spark(make: Make, record: Record, reason: str) -> None:
    world = make(partitions=1, cleanup="delete")
    world.send([upsert(7, "good"), record])
    refused = refusal(lambda: read(world))
    assert refused is not None and refused.startswith(reason) and "no json" not in refused


def test_a_superseded_value_is_not_decoded(make: Make) -> None:
    """As on Spark's path, under `bad-records: fail`."""
    world = make(partitions=1)
    world.send([(key(1), "no json"), upsert(1, "a")])
    assert rows_of(read(world)) == ["(1, 'a', Decimal('1.00'), '+U')"]


def test_a_missing_value_of_a_not_null_column_is_left_to_spark(make: Make) -> None:
    world = make(columns="id BIGINT, name STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED", partitions=1)
    world.send([(key(1), '{"id": 1}')])
    assert refusal(lambda: read(world)) == "column 'name' is NOT NULL, and a record has no value for it"
    world.send([tombstone(1)])
    assert rows_of(read(world)) == ["(1, None, '-D')"]


def test_the_newest_event_time_is_that_of_the_rows(make: Make) -> None:
    columns = "id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at, PRIMARY KEY (id) NOT ENFORCED"
    world = make(columns=columns, partitions=2)
    world.send([(key(1), '{"id": 1, "at": "2030-01-01 00:00:00"}'), (key(1), '{"id": 1}')], partition=0)
    world.send([(key(2), '{"id": 2, "at": "1970-01-01 00:00:01.5"}'), tombstone(3)], partition=1)
    batch = read(world)
    assert isinstance(batch, LatestBatch)
    assert batch.newest_event_ms == {(world.topic, 1): 1500}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {
                "columns": "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
                "options": {
                    "connector": "kafka",
                    "key.fields": "name",
                    "value.format": "debezium-json",
                    "value.fields-include": "EXCEPT_KEY",
                },
            },
            "column 'name' is in the record's key only",
        ),
        ({"sections": "merge: {engine: spark}"}, "merge.engine is spark"),
        (
            {"columns": "id BIGINT, o INT METADATA FROM 'offset' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED"},
            "column 'o' is a metadata or computed column",
        ),
        (
            {"columns": "id BIGINT, twice AS id * 2, PRIMARY KEY (id) NOT ENFORCED"},
            "column 'twice' is a metadata or computed column",
        ),
        (
            {"options": {"properties.fetch.min.bytes": "5"}},
            "'properties.fetch.min.bytes' is for Spark's reader",
        ),
        ({"options": {"scan.parallelism": "5"}}, "scan.parallelism is for Spark's reader"),
    ],
)
def test_pipelines_that_consumers_do_not_read(make: Make, more: dict[str, Any], reason: str) -> None:
    definition = make(**more).definition()
    assert refusal(lambda: refuse_unsupported(definition, definition.topic)) == reason


@pytest.mark.parametrize(
    "columns", ["id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", "id BIGINT, name STRING"]
)
def test_what_no_decoder_reads_is_left_to_spark(
    make: Make, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """Should `refuse_unsupported` ever allow it."""
    options: dict[str, str | None] = {}
    if "KEY" not in columns:
        options = {"connector": "kafka", "key.format": None, "value.format": None, "format": "json"}
    world = make(columns=columns, options=options)
    definition = world.definition()
    table = ingest_table(world.spark, definition)

    def none(_: FormatSpec) -> ArrowDecoder:
        raise NotThisWay("the format is new")

    if definition.topic.is_upsert:
        monkeypatch.setattr(consumer_reader, "arrow_decoder", none)
        assert (
            refusal(lambda: ConsumerReader(world.spark, definition, definition.topic, table))
            == "the format is new"
        )
    else:
        monkeypatch.setattr(append_reader, "arrow_decoder", none)
        reader = AppendReader(world.spark, definition, definition.topic, FileAppends(table))
        assert refusal(lambda: reader.read(Offsets({}), Offsets({}))) == "the format is new"


def test_a_batch_that_is_too_large_for_the_tasks_becomes_several(make: Make, stop: threading.Event) -> None:
    """Each record is read once, by consumers; progress and table are those of one batch. No batch waits for the next
    trigger."""
    world = make(partitions=3, sections="merge: {max-batch: 12 kb}\ningest: {reader: consumer}\n")
    draw, fold = random.Random(seed := random.randrange(10**6)), dict[int, str]()
    print(f"seed {seed}")
    for partition in range(3):
        records = []
        for n in range(60):
            id = draw.randrange(40) * 3 + partition
            fold.pop(id, None)
            if draw.random() < 0.8:
                fold[id] = f"{n}{'x' * draw.choice([600, 900])}"
            records.append(upsert(id, fold[id]) if id in fold else tombstone(id))
        world.send(records, partition=partition)
    reports: list[BatchReport] = []

    def listener(report: BatchReport) -> None:
        reports.append(report)
        if sum(report.records_in for report in reports) == 180:
            stop.set()

    done = ingest(world.spark, world.definition(run={"trigger": "1 h"}), listener=listener, stop=stop)
    assert {report.reader for report in reports} == {"consumer"} and done.batches == len(reports) > 2
    assert done.records_in == sum(report.records_in for report in reports) == 180
    assert {(row[0], row[1]) for row in world.rows()} == set(fold.items())
    assert ingest(world.spark, world.definition()).batches == 0
