"""`bridge ingest FILE --once SOURCE`: rows from elsewhere, by their sequence beside those of the topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, ConcurrentRunError, DefinitionError, QualityError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.once import ingest_once
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.runtime.lease import acquire_lease
from bridge.rows import Change, RowKind, intervals
from tests.metrics.openlineage import edges, events_in
from tests.pipelines.world import Record, World

COLUMNS = "id BIGINT, name STRING, at BIGINT, PRIMARY KEY (id) NOT ENFORCED"
ORDERED = "path: table, sequence-by: at"
TIMED = "id BIGINT, name STRING, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., World]:
    def made(**more: Any) -> World:
        given = {"columns": COLUMNS, "delta": ORDERED, "cleanup": "delete", "partitions": 1, **more}
        return World.make(spark, broker, lake, unique, **given)

    return made


def put(id: int, name: str | None, at: int) -> Record:
    return json.dumps({"id": id}), json.dumps({"id": id, "name": name, "at": at})


def applied(world: World, *records: Record) -> None:
    world.send(records)
    ingest(world.spark, world.definition())


def lines(world: World, *rows: Any, name: str = "rows.json") -> str:
    """A file of rows, or of texts, as a source."""
    file = world.folder / name
    file.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return f"json:{file}"


def once(world: World, source: str) -> BatchReport:
    done: list[BatchReport] = []
    definition = world.definition(run={"lineage": "events.jsonl"})
    ingest_once(world.spark, definition, source, listener=done.append)
    [report] = done
    return report


def test_the_greatest_sequence_counts_whatever_comes_first(make: Callable[..., World]) -> None:
    """Before the first ingest, beside it, and twice; the ingest goes on where it was."""
    world = make()
    world.send([put(1, "topic", 5), put(2, "topic", 5)])
    rows = [{"id": 1, "name": "older", "at": 3}, {"id": 2, "name": "newer", "at": 7}, {"id": 3, "at": 1}]
    first = once(world, lines(world, *rows))
    assert (first.batch, first.records_in, first.inserted, first.topic) == (0, 3, 3, lines(world, *rows))
    assert (first.reader or "").startswith("spark (--once json:")
    applied(world)
    expected = [(1, "topic", 5), (2, "newer", 7), (3, None, 1)]
    assert world.rows() == expected
    again = once(world, lines(world, *rows))
    assert (again.batch, again.inserted, again.updated, again.deleted) == (2, 0, 0, 0)
    assert world.rows() == expected
    applied(world, put(3, "late", 0), put(1, "last", 9))
    assert world.rows() == [(1, "last", 9), (2, "newer", 7), (3, None, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv", "table", "topic"])
def test_sources(kind: str, make: Callable[..., World], unique: Callable[[str], str]) -> None:
    world = make()
    applied(world, put(1, "x", 5), put(2, "x", 5))
    frame = world.spark.createDataFrame(
        [(1, "old, one", 3), (2, None, 8), (4, 'a "name"', 1)], "id INT, name STRING, at INT"
    )
    place = f"{world.folder}/source"
    if kind == "topic":
        place = unique("source")
        world.broker.create_topic(place, partitions=2)
        world.topic, own = place, world.topic
        world.send(put(*row) for row in frame.collect())
        world.topic = own
    elif kind == "table":
        frame.write.format("delta").save(place)
    else:
        frame.repartition(2).write.option("header", "true").option("escape", '"').format(kind).save(place)
        place += "/*" if kind == "csv" else ""
    for expected in ((1, 1), (0, 0)):
        report = once(world, f"{kind}:{place}")
        assert (report.inserted, report.updated) == expected
        assert world.rows() == [(1, "x", 5), (2, None, 8), (4, 'a "name"', 1)]
    graph = edges(events_in(world.folder / "events.jsonl"))
    assert graph == {(place, "orders.ingest"), ("orders.ingest", f"{world.folder}/table")}


@pytest.mark.slow
def test_histories_and_deletions(make: Callable[..., World]) -> None:
    """In any order with the topic's records they are the rows of the oracle."""
    delta = f"{ORDERED}, history: scd2, apply-as-delete: \"name = 'gone'\""
    world = make(delta=delta)
    of_topic = [(1, "a", 1), (1, "gone", 6), (2, "x", 4)]
    of_file = [(1, "b", 3), (2, "gone", 2), (3, "y", 5), (2, "gone", 9), (1, "c", 8)]
    applied(world, *(put(*row) for row in of_topic))
    once(world, lines(world, *(dict(zip(("id", "name", "at"), row, strict=True)) for row in of_file)))
    changes = [
        Change(RowKind.DELETE if name == "gone" else RowKind.UPDATE_AFTER, id, {"name": name}, (), (at,))
        for id, name, at in (*of_topic, *of_file)
    ]
    expected = [
        (id, row.row["name"], row.start, row.end) for id, rows in intervals(changes).items() for row in rows
    ]
    found = world.table().select("id", "name", "__valid_from", "__valid_to").collect()
    assert sorted(map(tuple, found)) == sorted(expected)


@pytest.mark.slow
def test_a_deletion_of_the_topic_wins_over_older_rows(make: Callable[..., World]) -> None:
    world = make(columns=TIMED)
    world.send([('{"id":1}', '{"id":1,"name":"x"}'), ('{"id":1}', None)], timestamp=5_000)
    ingest(world.spark, world.definition())
    rows = [
        {"id": 1, "name": "old", "at": "1970-01-01T00:00:02Z"},
        {"id": 2, "name": "y", "at": "1970-01-01T00:00:02Z"},
    ]
    assert once(world, lines(world, *rows)).inserted == 1
    assert [row["id"] for row in world.table().collect()] == [2]


def stop_at(point: str, name: str) -> None:
    if name == point:
        raise RuntimeError(point)


@pytest.mark.slow
def test_one_that_is_killed_runs_again(make: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> None:
    world = make()
    applied(world, put(1, "x", 5))
    source = lines(world, {"id": 1, "name": "newer", "at": 7}, {"id": 2, "name": "y", "at": 1})
    for point, rows in (("ingest.before-merge", 1), ("ingest.after-merge", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "hit", partial(stop_at, point))
            with pytest.raises(RuntimeError, match=point):
                once(world, source)
        assert len(world.rows()) == rows
    once(world, source)
    applied(world, put(2, "z", 2))
    assert world.rows() == [(1, "newer", 7), (2, "z", 2)]


@pytest.mark.slow
def test_one_run_at_a_time(make: Callable[..., World]) -> None:
    world = make()
    source = lines(world, {"id": 1, "name": "x", "at": 1})
    with (
        acquire_lease(world.spark, world.definition(), "ingest"),
        pytest.raises(ConcurrentRunError, match="ingest"),
    ):
        once(world, source)


@pytest.mark.slow
def test_a_resync_would_delete_the_rows(make: Callable[..., World]) -> None:
    world = make()
    applied(world, put(1, "x", 5))
    once(world, f"topic:{world.topic}")
    assert resync(world.spark, world.definition(), dry_run=True).unchanged == 1
    once(world, lines(world, {"id": 2, "name": "y", "at": 1}))
    for dry_run in (True, False):
        with pytest.raises(
            DefinitionError, match=r"--once` has added rows of json:.* UNSET the table property"
        ):
            resync(world.spark, world.definition(), dry_run=dry_run)
    assert verify(world.spark, world.definition()).comparison.missing_in_topic == 1


@pytest.mark.slow
def test_bad_rows(make: Callable[..., World]) -> None:
    world = make(columns=COLUMNS.replace("at BIGINT", "at BIGINT NOT NULL"))
    good = {"id": 1, "name": "x", "at": 1}
    bad = {
        '{"id": 2, "at": "x"}': r"rows.json.*: it cannot be read. Nothing of --once json:",
        '{"id": 2, "name"': r"rows.json.*: it cannot be read",
        '{"name": "y", "at": 1}': r"rows.json: it has no value of the PRIMARY KEY",
        '{"id": 2, "name": "y"}': r"rows.json, row \(id: 2\): column 'at' is NOT NULL, and the record has no value",
    }
    for line, message in bad.items():
        world.sections = "ingest: {bad-records: quarantine}\n"
        with pytest.raises(BadRecordError, match=message):
            once(world, lines(world, good, line))
        assert world.rows() == []
    file = world.folder / "rows.csv"
    file.write_text("id,name,at\n1,x,1\n2,y,soon\n")
    with pytest.raises(BadRecordError, match=r"column 'at' has a text that is no BIGINT"):
        once(world, f"csv:{file}")
    world.sections = "ingest: {bad-records: skip}\n"
    report = once(world, lines(world, good, *bad))
    assert (report.bad_records, report.inserted) == (len(bad), 1)


@pytest.mark.slow
def test_a_gate_judges_the_rows(make: Callable[..., World]) -> None:
    world = make(sections="quality: {suite: suite.json, gate: quarantine}\n")
    short = {
        "type": "expect_column_value_lengths_to_be_between",
        "kwargs": {"column": "name", "max_value": 3},
    }
    (world.folder / "suite.json").write_text(json.dumps({"name": "s", "expectations": [short]}))
    with pytest.raises(QualityError, match="gate"):
        once(world, lines(world, {"id": 1, "name": "long name", "at": 1}))
    assert world.rows() == []
    once(world, lines(world, {"id": 1, "name": "x", "at": 1}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("rows.parquet", "--once rows.parquet: legal values are topic:NAME, table:PATH or table:NAME"),
        ("orc:rows", "legal values are topic:NAME"),
        ("parquet:{0}/none", "PATH_NOT_FOUND"),
        ("table:{0}/table", "it is the table of the pipeline itself"),
        ("parquet:{0}/named", r"it has no column 'at'; its columns are id, name"),
        (
            "parquet:{0}/typed",
            r"column 'at' is string, and that of the DDL is bigint; write it with this type",
        ),
    ],
)
def test_sources_that_are_refused(source: str, message: str, make: Callable[..., World]) -> None:
    world = make()
    applied(world, put(1, "x", 1))
    world.spark.sql("SELECT 1L AS id, 'x' AS name").write.parquet(f"{world.folder}/named")
    world.spark.sql("SELECT 1L AS id, 'x' AS name, '1' AS at").write.parquet(f"{world.folder}/typed")
    with pytest.raises(DefinitionError, match=message):
        once(world, source.format(world.folder))
    assert world.rows() == [(1, "x", 1)]


def test_it_needs_a_sequence(make: Callable[..., World]) -> None:
    world = make(delta="path: table")
    with pytest.raises(
        DefinitionError, match=r"'orders' orders changes by their position .* set `delta.sequence-by`"
    ):
        once(world, "topic:other")
