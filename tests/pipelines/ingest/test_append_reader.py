"""What consumers append is what Spark's path appends; what they leave to it, they name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from bridge.delta.append_files import FileAppends
from bridge.errors import BadRecordError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin
from bridge.offsets import Offsets
from bridge.pipelines.ingest.append_reader import AppendedBatch, AppendReader, apply_appended
from bridge.pipelines.ingest.consumer_support import refuse_unsupported
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.ways import NotThisWay
from tests.pipelines.world import ROWS, Make, Record, World, readers
from tests.refusals import refusal

COLUMNS = (
    "id BIGINT, name STRING, amount DECIMAL(10, 2), at TIMESTAMP(3), seen TIMESTAMP_LTZ(6), day DATE, rate DOUBLE, "
    "ok BOOLEAN, tags ARRAY<STRING>, t STRING METADATA FROM 'topic' VIRTUAL, p INT METADATA FROM 'partition' VIRTUAL, "
    "o BIGINT METADATA FROM 'offset' VIRTUAL, w TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL"
)


@pytest.fixture
def make(make: Make) -> Make:
    def made(**more: Any) -> World:
        options = {**ROWS, **more.pop("options", {})}
        return make(**{"columns": COLUMNS, "cleanup": "delete", **more, "options": options})

    return made


def drawn(seed: int, count: int) -> list[Record]:
    """Records with missing and null fields, fields that the table does not have, null values and null keys."""
    draw = random.Random(seed)
    records: list[Record] = []
    for n in range(count):
        fields: dict[str, Any] = {"id": n, "extra": [n]}
        fields["name"] = draw.choice(["a", "ä\u2028", "", 'quote " and \\', "x" * 300, None])
        fields["amount"] = draw.choice([1, 0.5, 12345678.25, -3, None])
        fields["at"] = draw.choice(["2026-11-23 10:00:00.123", "1969-12-31 23:59:59", "0001-01-01 00:00:00"])
        fields["seen"] = draw.choice(["2026-11-23 10:00:00.123456Z", "1899-12-31 23:59:59Z", None])
        fields["day"] = draw.choice(["2026-11-25", "1582-10-04", None])
        fields["rate"] = draw.choice([0.1, -0.0, 1e300, 5, None])
        fields["ok"] = draw.choice([True, False, None])
        fields["tags"] = draw.choice([None, [], ["a", None], ["é"]])
        for name in draw.sample(["name", "amount", "at", "ok"], draw.randrange(3)):
            del fields[name]
        key = draw.choice([None, json.dumps({"id": draw.randrange(5)})])
        records.append((key, None if draw.random() < 0.1 else json.dumps(fields)))
    return records


def by_spark(world: World) -> World:
    """The same topic into another table, read by Spark's source."""
    sections = world.sections + "ingest: {reader: spark}\n"
    return replace(world, folder=world.folder / "by-spark", sections=sections)


def rows_by_spark(world: World) -> list[tuple[Any, ...]]:
    other = by_spark(world)
    other.folder.mkdir()
    assert set(readers(other.batches())) == {"spark"}
    return other.rows()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"key.format": "json", "key.fields": "id"},
        {"key.format": "json", "key.fields": "id", "value.fields-include": "EXCEPT_KEY"},
    ],
    ids=["values", "keys-and-values", "keys"],
)
def test_consumers_append_what_spark_appends(make: Make, options: dict[str, Any]) -> None:
    """Drawn records in batches of drawn sizes, with metadata columns; a second run goes on."""
    world = make(options=options)
    world.send(drawn(1, 300), timestamp=1_790_000_000_123)
    reports = world.batches({"max-offsets-per-batch": 70})
    world.send(drawn(2, 100))
    reports += world.batches()
    assert {r.reader for r in reports} == {"consumer"} and sum(r.records_in for r in reports) == 400
    assert sum(r.inserted for r in reports) == world.table().count()
    assert world.rows() == rows_by_spark(world)
    assert world.table().schema == by_spark(world).table().schema


@pytest.mark.parametrize(
    ("format", "columns", "documents"),
    [
        ("raw", "line STRING", ["a", "", "ä"]),
        ("csv", "id BIGINT, name STRING", ["1,a", "2,", '3,"x,y"']),
    ],
)
def test_other_formats(make: Make, format: str, columns: str, documents: list[str]) -> None:
    world = make(columns=columns, options={"value.format": format})
    world.send([(None, document) for document in documents] + [(None, None)])
    assert [r.reader for r in world.batches()] == ["consumer"]
    assert world.rows() == rows_by_spark(world)
    assert len(world.rows()) == (4 if format == "raw" else 3)  # raw reads null as a row


def test_a_record_that_consumers_leave_open_is_read_by_spark(make: Make) -> None:
    """And no file of the batch is left."""
    world = make(columns="id BIGINT, name STRING", partitions=1)
    world.send([(None, '{"id": 1, "name": "a"}'), (None, '{"id": 2, "name": 5}'), (None, '{"id": 3}')])
    assert readers(world.batches({"max-offsets-per-batch": 2})) == ["spark", "consumer"]
    assert world.rows() == [(1, "a"), (2, "5"), (3, None)]
    assert files(world) == listed(world)


def files(world: World) -> set[str]:
    return {file.name for file in (world.folder / "table").glob("*.parquet")}


def listed(world: World) -> set[str]:
    return {Path(name).name for name in world.table().inputFiles()}


def test_the_watermark_is_of_a_metadata_column_too(make: Make) -> None:
    columns = "id BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR at AS at"
    world = make(columns=columns, partitions=1)
    world.send([(None, '{"id": 1}')], timestamp=5_000)
    world.send([(None, '{"id": 2}')], timestamp=4_000)
    (report,) = world.batches()
    other = by_spark(world)
    other.folder.mkdir()
    assert (report.reader, report.watermark_ms) == ("consumer", 5_000)
    assert [r.watermark_ms for r in other.batches()] == [5_000]


def test_not_null_columns_are_judged_by_spark(make: Make) -> None:
    world = make(columns="id BIGINT NOT NULL, name STRING", partitions=1)
    world.send([(None, '{"id": 1}'), (None, '{"name": "x"}')])
    with pytest.raises(BadRecordError, match="column 'id' is NOT NULL, and the record has no value for it"):
        world.batches()
    assert files(world) == set()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {"columns": "id BIGINT, h MAP<STRING, BYTES> METADATA FROM 'headers'"},
            "column 'h' is a metadata or computed column",
        ),
        (
            {"columns": "id BIGINT, at TIMESTAMP_LTZ(2) METADATA FROM 'timestamp' VIRTUAL"},
            "column 'at' is a metadata or computed column",
        ),
        (
            {"columns": "id BIGINT, p BIGINT METADATA FROM 'partition' VIRTUAL"},
            "column 'p' is a metadata or computed column",
        ),
        ({"columns": "id BIGINT, twice AS id * 2"}, "column 'twice' is a metadata or computed column"),
        ({"options": {"value.format": "debezium-json"}}, "the format is debezium-json"),
    ],
)
def test_pipelines_that_consumers_do_not_read(make: Make, more: dict[str, Any], reason: str) -> None:
    definition = make(**{"columns": "id BIGINT", **more}).definition()
    assert refusal(lambda: refuse_unsupported(definition, definition.topic)) == reason


def test_a_table_that_takes_no_files_of_tasks_is_written_by_spark(make: Make) -> None:
    world = make(columns="id BIGINT, tags ROW<a STRING>", partitions=1)
    world.send([(None, '{"id": 1, "tags": {"a": "b"}}')])
    (report,) = world.batches()
    assert report.reader == "spark (column 'tags' is STRUCT<A:STRING>)"
    assert world.rows() == [(1, Row(a="b"))]


def read(world: World) -> tuple[FileAppends, AppendReader, Offsets, Offsets]:
    definition = world.definition()
    state = admin.describe(definition.topic)
    appends = FileAppends(ingest_table(world.spark, definition))
    reader = AppendReader(world.spark, definition, definition.topic, appends)
    return appends, reader, state.earliest, state.end


def test_files_of_a_table_that_has_changed_meanwhile_are_not_committed(make: Make) -> None:
    world = make(columns="id BIGINT", partitions=1)
    world.send([(None, '{"id": 1}')])
    appends, reader, start, end = read(world)
    batch = reader.read(start, end)
    assert isinstance(batch, AppendedBatch) and (batch.rows, batch.read.records, len(batch.adds)) == (1, 1, 1)
    world.spark.sql(f"ALTER TABLE delta.`{world.folder / 'table'}` ADD COLUMN more STRING")
    progress = IngestProgress("orders", "run-1", 0, end)
    with pytest.raises(NotThisWay, match=r"^the columns or properties of the table have changed meanwhile$"):
        apply_appended(appends, batch, progress)
    assert files(world) == set() and world.rows() == []
    (report,) = replace(world, columns="id BIGINT, more STRING").batches()
    assert report.reader == "consumer" and world.rows() == [(1, None)]


def test_a_table_that_changes_during_a_run_is_read_on_by_spark(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of the batch were written for other columns."""
    world = make(columns="id BIGINT", partitions=1)
    world.send([(None, f'{{"id": {n}}}') for n in range(2)])
    commit, changed = FileAppends.commit, list[int]()

    def meanwhile(self: FileAppends, *args: Any, **more: Any) -> Any:
        if not changed:
            changed.append(1)
            world.spark.sql(f"ALTER TABLE delta.`{world.folder / 'table'}` ADD COLUMN more STRING")
        return commit(self, *args, **more)

    monkeypatch.setattr(FileAppends, "commit", meanwhile)
    reports = world.batches({"max-offsets-per-batch": 1})
    reason = "the columns or properties of the table have changed meanwhile"
    assert [r.reader for r in reports] == [f"spark ({reason})", "consumer"]
    assert world.rows() == [(0, None), (1, None)]


@pytest.mark.parametrize("point", ["ingest.before-merge", "ingest.after-merge"])
def test_a_run_that_dies_around_the_commit_loses_and_doubles_nothing(
    make: Make, arm: Callable[[str, str], Path], point: str
) -> None:
    world = make(columns="id BIGINT", partitions=2)
    world.send([(None, f'{{"id": {n}}}') for n in range(20)])
    arm(point, "raise")
    with pytest.raises(RuntimeError, match=point):
        world.batches()
    world.batches()
    assert sorted(row[0] for row in world.rows()) == list(range(20))
