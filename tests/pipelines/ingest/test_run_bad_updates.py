"""A bad record of a CDC topic has no effect: not by the row before of an update, and not by those of its rows that are
good once it is replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import World

COLUMNS = "id BIGINT, a STRING, b INT, PRIMARY KEY (id) NOT ENFORCED"
SMALL = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "b", "max_value": 100}}
GATE = "quality: {suite: suite.json, gate: quarantine}\n"
ASIDE = "ingest: {bad-records: quarantine}\n"
Row = dict[str, Any]


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., World]:
    def made(format: str = "debezium-json", **more: Any) -> World:
        (lake / "suite.json").write_text(json.dumps({"name": "s", "expectations": [SMALL]}))
        options = {"connector": "kafka", "key.format": None, "value.format": format}
        options["scan.startup.mode"] = "earliest-offset"
        given = {"columns": COLUMNS, "options": options, "sections": GATE, "cleanup": "delete", **more}
        return World.make(spark, broker, lake, unique, partitions=1, **given)

    return made


def row(id: int, a: str, b: int | None) -> Row:
    return {"id": id, "a": a, "b": b}


def document(format: str, before: Row | None, after: Row | None) -> str:
    kind = "insert" if before is None else "delete" if after is None else "update"
    if format in ("debezium-json", "ogg-json"):
        names = ("op", "c", "u", "d") if format == "debezium-json" else ("op_type", "I", "U", "D")
        word = dict(zip(("insert", "update", "delete"), names[1:], strict=True))[kind]
        return json.dumps({"before": before, "after": after, names[0]: word})
    changed = {k: v for k, v in (before or {}).items() if after is not None and v != after[k]}
    old = changed if kind == "update" else None
    data = after or before
    if format == "maxwell-json":
        return json.dumps({"type": kind, "data": data, "old": old})
    return json.dumps({"type": kind.upper(), "data": [data], "old": old and [old]})


def send(world: World, *changes: tuple[Row | None, Row | None]) -> None:
    format = str(world.options["value.format"])
    world.send([(None, document(format, before, after)) for before, after in changes])


def applied(world: World, *changes: tuple[Row | None, Row | None]) -> BatchReport:
    send(world, *changes)
    done: list[BatchReport] = []
    ingest(world.spark, world.definition(), listener=done.append)
    return done[0]


def aside(world: World) -> list[int]:
    records = world.spark.read.format("delta").load(f"{world.folder}/table_quarantine")
    return sorted(record["offset"] for record in records.select("offset").collect())


def correct(world: World, offset: int, text: str) -> None:
    table = f"delta.`{world.folder}/table_quarantine`"
    world.spark.sql(f"UPDATE {table} SET value = CAST('{text}' AS BINARY) WHERE offset = {offset}")


@pytest.mark.parametrize(
    "format",
    [
        "debezium-json",
        *(pytest.param(f, marks=pytest.mark.slow) for f in ("ogg-json", "maxwell-json", "canal-json")),
    ],
)
def test_an_update_whose_row_after_is_bad_deletes_nothing(format: str, make: Callable[..., World]) -> None:
    """Also one that changes the key, and by each verb. Corrected, it is applied as a whole."""
    world = make(format)
    one, two = row(1, "x", 1), row(2, "x", 2)
    applied(world, (None, one), (None, two))
    report = applied(world, (one, row(1, "y", 500)), (two, row(3, "y", 500)), (None, row(4, "z", 4)))
    expected = [(1, "x", 1), (2, "x", 2), (4, "z", 4)]
    assert (world.rows(), aside(world), report.quarantined) == (expected, [2, 3], 2)
    assert verify(world.spark, world.definition()).equal
    assert resync(world.spark, world.definition()).unchanged == 3
    done = replay(world.spark, world.definition())
    assert (done.replayed, done.still_bad, aside(world), world.rows()) == (0, 2, [2, 3], expected)
    correct(world, 3, document(format, two, row(3, "y", 5)))
    done = replay(world.spark, world.definition())
    assert (done.replayed, done.overtaken, done.still_bad) == (1, 0, 1)
    assert (aside(world), world.rows()) == ([2], [(1, "x", 1), (3, "y", 5), (4, "z", 4)])


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["sequence-by: n", "soft-delete: d", "ignore-null-updates: [a]"])
def test_so_it_is_under_other_semantics(delta: str, make: Callable[..., World]) -> None:
    columns = "id BIGINT, a STRING, n BIGINT NOT NULL, b INT NOT NULL, PRIMARY KEY (id) NOT ENFORCED"
    world = make(columns=columns, delta=f"path: table, {delta}", sections="ingest: {bad-records: skip}\n")

    def of(id: int, n: int, b: int | None) -> Row:
        return {**row(id, "x", b), "n": n}

    applied(world, (None, of(1, 1, 1)), (None, of(2, 1, 2)))
    report = applied(world, (of(1, 1, 1), of(1, 2, None)), (of(2, 1, 2), of(3, 2, None)))
    assert report.bad_records == 2
    assert [r[:4] for r in world.rows()] == [(1, "x", 1, 1), (2, "x", 1, 2)]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["sequence-by: n", "first-row: true"])
def test_nor_has_its_row_after_where_the_row_before_is_bad(delta: str, make: Callable[..., World]) -> None:
    """Of a changed key: it has no sequence, as PostgreSQL sends it by default, or deletes the first row."""
    columns = "id BIGINT, a STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED"
    world = make(columns=columns, delta=f"path: table, {delta}", sections=ASIDE)
    applied(world, (None, {"id": 1, "a": "x", "n": 1}))
    report = applied(world, ({"id": 1}, {"id": 2, "a": "x", "n": 2}), (None, {"id": 3, "a": "y", "n": 3}))
    assert report.quarantined == 1
    assert world.rows() == [(1, "x", 1), (3, "y", 3)]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_record_with_one_bad_row_of_several_stays_in_the_quarantine(make: Callable[..., World]) -> None:
    """Canal's documents have many rows. A replay applies it when all of them are good."""
    world = make("canal-json")
    world.send([(None, json.dumps({"type": "INSERT", "data": [row(1, "x", 1), row(2, "y", 500)]}))])
    ingest(world.spark, world.definition())
    done = replay(world.spark, world.definition())
    assert (done.replayed, done.still_bad, aside(world), world.rows()) == (0, 1, [0], [(1, "x", 1)])
    correct(world, 0, json.dumps({"type": "INSERT", "data": [row(1, "x", 1), row(2, "y", 5)]}))
    assert replay(world.spark, world.definition()).replayed == 1
    assert (aside(world), world.rows()) == ([], [(1, "x", 1), (2, "y", 5)])


@pytest.mark.parametrize("gated", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_record_that_leaves_out_what_no_row_has_stays_in_the_quarantine(
    gated: bool, make: Callable[..., World]
) -> None:
    """A replay judges it with the values that it leaves out. One whose row came later is overtaken."""
    world, left_out = make(sections=ASIDE + (GATE if gated else "")), "__debezium_unavailable_value"
    if gated:
        applied(world, (None, row(3, "c", 3)))
    applied(world, (None, row(1, left_out, 1)), (None, row(2, left_out, 2)), (None, row(3, left_out, 500)))
    bad = aside(world)
    applied(world, (None, row(2, "all", 3)))
    before = world.rows()
    done = replay(world.spark, world.definition())
    assert done.replayed == done.overtaken == 1
    assert (done.still_bad, aside(world), world.rows()) == (2, [bad[0], bad[2]], before)
