"""Batches that consumers read where bad records and failing rows are not to stop the ingest, and with metadata columns:
the same table, quarantine and reports as by Spark's source."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import QualityError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import DEBEZIUM, ONE, ROWS, Make, World, key, readers, tombstone, upsert

SUITE = {
    "name": "s",
    "expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}}],
}

BY_THREE = {"max-offsets-per-batch": 3}


def by_spark(world: World) -> World:
    """The same pipeline into another table, read by Spark's source."""
    other = replace(
        world, folder=world.folder / "spark", sections=f"{world.sections}merge: {{engine: spark}}\n"
    )
    other.folder.mkdir()
    if (suite := world.folder / "suite.json").exists():
        (other.folder / "suite.json").write_text(suite.read_text())
    return other


def quarantined(world: World) -> list[tuple[Any, ...]]:
    frame = world.spark.read.format("delta").load(f"{world.folder}/table_quarantine")
    return sorted(tuple(row) for row in frame.select("partition", "offset").collect())


@pytest.mark.parametrize("action", ["skip", "quarantine"])
def test_only_batches_with_a_bad_record_are_read_by_spark(make: Make, action: str) -> None:
    """A superseded record, too, is bad if it cannot be decoded."""
    world = make(partitions=1, sections=f"ingest: {{bad-records: {action}}}\n")
    good = [upsert(n % 2, f"v{n}") for n in range(3)]
    world.send([*good, upsert(5, "good"), (key(5), "no json"), upsert(5, "last"), tombstone(0)])
    reports, other = world.batches(BY_THREE), by_spark(world)
    assert readers(reports) == ["consumer", "spark", "consumer"]
    assert reports[1].reader == "spark (a document is not one object)"
    expected = other.batches(BY_THREE)
    assert readers(expected) == ["spark"] * 3
    for mine, theirs in zip(reports, expected, strict=True):
        assert (mine.bad_records, mine.quarantined) == (theirs.bad_records, theirs.quarantined)
    assert world.rows() == other.rows() == [(1, "v1", ONE), (5, "last", ONE)]
    if action == "quarantine":
        assert quarantined(world) == quarantined(other) == [(0, 4)]


def test_a_gate_warns_of_rows_that_consumers_have_read(make: Make) -> None:
    world = make(partitions=1, sections="quality: {suite: suite.json, gate: warn}\n")
    (world.folder / "suite.json").write_text(json.dumps(SUITE))
    world.send([upsert(1, "a"), (key(2), '{"id": 2}'), (key(3), '{"id": 3}'), tombstone(1)])
    reports, other = world.batches(BY_THREE), by_spark(world)
    expected = other.batches(BY_THREE)
    assert (readers(reports), readers(expected)) == (["consumer"] * 2, ["spark"] * 2)
    assert [r.unexpected_rows for r in reports] == [r.unexpected_rows for r in expected] == [2, 0]
    assert reports[0].warning == expected[0].warning
    assert world.rows() == other.rows()


def test_a_gate_stops_at_rows_that_consumers_have_read(make: Make) -> None:
    world = make(partitions=1, sections="quality: {suite: suite.json, gate: fail}\n")
    (world.folder / "suite.json").write_text(json.dumps(SUITE))
    world.send([upsert(1, "a"), upsert(2, "b"), upsert(3, "c"), (key(2), '{"id": 2}')])
    errors = []
    for each in (world, by_spark(world)):
        with pytest.raises(QualityError, match=r'for example \{"id":2\}') as caught:
            each.batches(BY_THREE)
        errors.append(str(caught.value).replace(str(each.folder), ""))
        assert each.rows() == [(1, "a", ONE), (2, "b", ONE), (3, "c", ONE)]
    assert errors[0] == errors[1]


@pytest.mark.parametrize("format", ["json", "debezium-json"])
def test_a_gate_that_quarantines_judges_superseded_rows_too(make: Make, format: str) -> None:
    """Only a batch with such a row is read by Spark, which quarantines it; verify compares the topic with the same
    rows."""
    columns = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    options = {} if format == "json" else DEBEZIUM
    sections = "quality: {suite: suite.json, gate: quarantine}\n"
    world = make(partitions=1, columns=columns, options=options, cleanup="delete", sections=sections)
    (world.folder / "suite.json").write_text(json.dumps(SUITE))

    def record(id: int, name: str | None) -> tuple[Any, Any]:
        row = {"id": id, "name": name}
        if format == "json":
            return key(id), json.dumps(row)
        return None, json.dumps({"before": None, "after": row, "op": "c"})

    first = [record(1, "a"), record(1, "b"), record(2, "a")]
    world.send(
        [*first, record(1, None), record(1, "c"), record(3, "a"), *first, record(2, None), record(3, "b")]
    )
    reports, other = world.batches(BY_THREE), by_spark(world)
    assert readers(reports) == ["consumer", "spark", "consumer", "spark"]
    assert reports[1].reader == "spark (the gate quarantines a row)"
    expected = other.batches(BY_THREE)
    assert readers(expected) == ["spark"] * 4
    for mine, theirs in zip(reports, expected, strict=True):
        assert (mine.bad_records, mine.quarantined) == (theirs.bad_records, theirs.quarantined)
    assert world.rows() == other.rows() == [(1, "b"), (2, "a"), (3, "b")]
    assert quarantined(world) == quarantined(other) == [(0, 3), (0, 9)]


def test_metadata_columns_are_those_of_the_last_record(make: Make) -> None:
    columns = (
        "id BIGINT, name STRING, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, "
        "o BIGINT METADATA FROM 'offset' VIRTUAL, p INT METADATA FROM 'partition' VIRTUAL, "
        "topic STRING METADATA VIRTUAL, PRIMARY KEY (id) NOT ENFORCED"
    )
    world = make(partitions=9, columns=columns)  # several for each task, which decodes them together
    for number in range(4):
        world.send([upsert(7, f"v{number}"), upsert(8 + number, "x"), tombstone(9)], timestamp=1_000 * number)
    reports, other = world.batches({"max-offsets-per-batch": 6}), by_spark(world)
    expected = other.batches({"max-offsets-per-batch": 6})
    assert (readers(reports), readers(expected)) == (["consumer"] * 2, ["spark"] * 2)
    assert world.rows() == other.rows()
    (last,) = (row for row in world.rows() if row[0] == 7)
    assert last[1] == "v3" and last[2].timestamp() == 3.0 and last[5] == world.topic


@pytest.mark.parametrize("action", ["fail", "skip"])
def test_the_newest_event_time(make: Make, action: str) -> None:
    """Under `skip` a superseded record may count, so its event time does, too: as by Spark's source."""
    columns = "id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at, PRIMARY KEY (id) NOT ENFORCED"
    world = make(partitions=1, columns=columns, sections=f"ingest: {{bad-records: {action}}}\n")
    for at in ("1970-01-01 00:00:09", "1970-01-01 00:00:01"):
        world.send([(key(1), json.dumps({"id": 1, "at": at}))])
    ((mine,), (theirs,)) = (each.batches(BY_THREE) for each in (world, by_spark(world)))
    assert readers([mine, theirs]) == ["consumer", "spark"]
    assert mine.watermark_ms == theirs.watermark_ms


def test_the_newest_event_time_of_each_of_many_partitions(make: Make) -> None:
    """The watermark is that of the partition which is behind; one has a deletion only."""
    columns = "id BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at, PRIMARY KEY (id) NOT ENFORCED"
    world = make(partitions=9, columns=columns)
    rows = [(id, f"1970-01-01 00:00:{59 - id:02}.5") for id in range(40)]
    world.send([*((key(id), json.dumps({"id": id, "at": at})) for id, at in rows), tombstone(41)])
    other = by_spark(world)
    mine, theirs = world.batches() + other.batches()
    assert readers([mine, theirs]) == ["consumer", "spark"]
    assert mine.watermark_ms is not None and mine.watermark_ms == theirs.watermark_ms
    assert world.rows() == other.rows()


@pytest.mark.parametrize("action", ["warn", "quarantine", "fail"])
def test_a_gate_judges_rows_without_a_key_in_the_files_of_tasks(make: Make, action: str) -> None:
    """Where it must name or quarantine a record, Spark reads the batch; the files of the tasks are not left."""
    world = make(
        partitions=1,
        options=ROWS,
        columns="id BIGINT, name STRING",
        cleanup="delete",
        sections=f"quality: {{suite: suite.json, gate: {action}}}\n",
    )
    (world.folder / "suite.json").write_text(json.dumps(SUITE))
    lines = [f'{{"id": {n}, "name": "v"}}' for n in range(3)] + ['{"id": 3}', '{"id": 4, "name": "v"}']
    world.send([(None, line) for line in lines])
    other, tables = by_spark(world), []
    told: list[Any] = []
    for each, reader in ((world, "consumer"), (other, "spark")):
        each.sections += f"ingest: {{reader: {reader}}}\n"
        reports: list[BatchReport] = []
        definition = each.definition(run={"max-offsets-per-batch": 3})
        read = [reader, reader]
        if action == "quarantine":
            read[1] = "spark"
        if action != "fail":
            ingest(each.spark, definition, listener=reports.append)
            told.append([(report.unexpected_rows, report.warning) for report in reports])
        else:
            with pytest.raises(QualityError, match=r"for example .*/0/3") as caught:
                ingest(each.spark, definition, listener=reports.append)
            told.append([(str(caught.value).replace(str(each.folder), ""), None)])
        assert readers(reports) == (read[:1] if action == "fail" else read)
        tables.append(sorted(row[0] for row in each.table().select("id").collect()))
        files = {Path(file).name for file in each.table().inputFiles()}
        assert {file.name for file in (each.folder / "table").glob("*.parquet")} == files
    written = {"warn": [0, 1, 2, 3, 4], "quarantine": [0, 1, 2, 4], "fail": [0, 1, 2]}
    assert told[0] == told[1] and tables[0] == tables[1] == written[action]
    if action == "quarantine":
        assert quarantined(world) == quarantined(other) == [(0, 3)]
