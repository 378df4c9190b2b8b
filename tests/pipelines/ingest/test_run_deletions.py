"""`delta.apply-as-delete`: a condition on the record says that it deletes its row."""

from __future__ import annotations

import json

import pytest

from bridge.errors import BadRecordError, DefinitionError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.topic_to_table import resync
from tests.docs.pages import DOCS, Page
from tests.pipelines.world import Make, Record, World, making

COLUMNS = "id BIGINT, name STRING, op STRING, n INT, PRIMARY KEY (id) NOT ENFORCED"


make = making(columns=COLUMNS, cleanup="delete", partitions=1)
DELETING = "path: table, apply-as-delete: \"op = 'd'\""


def record(id: int, name: str | None, op: str | None, n: int | None = None) -> Record:
    return json.dumps({"id": id}), json.dumps({"id": id, "name": name, "op": op, "n": n})


def applied(world: World, *records: Record) -> BatchReport:
    world.send(records)
    (report,) = world.batches()
    return report


def test_a_record_for_which_the_condition_is_true_deletes_its_row(make: Make) -> None:
    """The records and rows are those of docs/deletes.md."""
    world = make(delta=DELETING)
    for _, records, rows in Page(DOCS / "deletes.md").rows("Commit"):
        values = [json.loads(text) for text in records.strip("`").split("`, `")]
        done = applied(world, *(record(v["id"], v.get("name"), v.get("op")) for v in values))
        assert done.reader == "spark (only Spark judges a change by delta.apply-as-delete)"
        assert [f"{row[0]} {row[1]}" for row in world.rows()] == rows.strip("`").split("`, `")
    assert verify(world.spark, world.definition()).equal
    with pytest.raises(DefinitionError, match=r"`delta.apply-as-delete` is about the changes of an ingest"):
        publish(world.spark, world.definition())


def test_a_deletion_needs_no_value_of_columns_that_are_not_null(make: Make) -> None:
    world = make(columns=COLUMNS.replace("STRING, op", "STRING NOT NULL, op"), delta=DELETING)
    applied(world, record(1, "a", "c"), record(2, "b", "c"), record(1, None, "d"))
    assert world.rows() == [(2, "b", "c", None)]
    world.send([record(2, None, "u")])
    with pytest.raises(BadRecordError, match="column 'name' is NOT NULL"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_a_deletion_has_the_sequence_of_its_record(make: Make) -> None:
    world = make(delta=f"{DELETING}, sequence-by: n")
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
def test_a_record_for_which_the_condition_fails_is_bad(make: Make) -> None:
    world = make(delta='path: table, apply-as-delete: "10 / n = 2"')
    assert (
        applied(world, record(1, "a", None, 1), record(1, "a", None, 5), record(2, "b", None)).inserted == 1
    )
    world.send([record(3, "c", None, 0)])
    with pytest.raises(BadRecordError, match=r"delta.apply-as-delete: .*division by zero"):
        ingest(world.spark, world.definition())


@pytest.mark.slow
def test_another_condition_is_refused_until_a_resync(make: Make) -> None:
    world = make()
    applied(world, record(1, "a", "d"), record(2, "b", "x"))
    world.delta = DELETING
    with pytest.raises(TableError, match=r"with neither `sequence-by` nor.*has `apply-as-delete: op = 'd'`"):
        ingest(world.spark, world.definition())
    assert resync(world.spark, world.definition()).deleted == 1
    assert applied(world, record(2, "b", "d")).deleted == 1
