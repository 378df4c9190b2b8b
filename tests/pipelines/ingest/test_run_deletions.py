"""`delta.apply-as-delete`: a condition on the record says that it deletes its row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, DefinitionError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.world import Record, World

COLUMNS = "id BIGINT, name STRING, op STRING, n INT, PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., World]:
    def made(delta: str, **more: Any) -> World:
        more = {"columns": COLUMNS, "cleanup": "delete", "partitions": 1, **more}
        return World.make(spark, broker, lake, unique, delta=f"path: table{delta}", **more)

    return made


def record(id: int, name: str | None, op: str | None, n: int | None = None) -> Record:
    return json.dumps({"id": id}), json.dumps({"id": id, "name": name, "op": op, "n": n})


def applied(world: World, *records: Record) -> BatchReport:
    world.send(records)
    done: list[BatchReport] = []
    ingest(world.spark, world.definition(), listener=done.append)
    assert len(done) == 1
    return done[0]


def test_a_record_for_which_the_condition_is_true_deletes_its_row(make: Callable[..., World]) -> None:
    """The records and rows are those of docs/deletes.md."""
    world = make(", apply-as-delete: \"op = 'd'\"")
    for _, records, rows in Page(DOCS / "deletes.md").rows("Commit"):
        values = [json.loads(text) for text in records.strip("`").split("`, `")]
        done = applied(world, *(record(v["id"], v.get("name"), v.get("op")) for v in values))
        assert done.reader == "spark (only Spark judges a change by delta.apply-as-delete)"
        assert [f"{row[0]} {row[1]}" for row in world.rows()] == rows.strip("`").split("`, `")
    assert verify(world.spark, world.definition()).equal
    with pytest.raises(DefinitionError, match=r"`delta.apply-as-delete` is about the changes of an ingest"):
        publish(world.spark, world.definition())


@pytest.mark.slow
def test_a_deletion_has_the_sequence_of_its_record(make: Callable[..., World]) -> None:
    world = make(", sequence-by: n, apply-as-delete: \"op = 'd'\"")
    applied(
        world,
        record(1, "a", "c", 1),
        record(1, "a", "d", 5),
        record(1, "late", "u", 3),
        record(2, "b", "c", 9),
    )
    assert world.rows() == [(2, "b", "c", 9)]
    applied(world, record(1, "late", "u", 4), record(2, "late", "d", 8))
    assert world.rows() == [(2, "b", "c", 9)]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_record_for_which_the_condition_fails_is_bad(make: Callable[..., World]) -> None:
    world = make(', apply-as-delete: "10 / n = 2"')
    assert (
        applied(world, record(1, "a", None, 1), record(1, "a", None, 5), record(2, "b", None)).inserted == 1
    )
    world.send([record(3, "c", None, 0)])
    with pytest.raises(BadRecordError, match=r"delta.apply-as-delete: .*division by zero"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_another_condition_is_refused_until_a_resync(make: Callable[..., World]) -> None:
    world = make("")
    applied(world, record(1, "a", "d"), record(2, "b", "x"))
    world.delta += ", apply-as-delete: \"op = 'd'\""
    with pytest.raises(TableError, match=r"with neither `sequence-by` nor.*has `apply-as-delete: op = 'd'`"):
        ingest(world.spark, world.definition())
    assert resync(world.spark, world.definition()).deleted == 1
    assert applied(world, record(2, "b", "d")).deleted == 1
