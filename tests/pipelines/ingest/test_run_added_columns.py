"""A user adds a column to the table of an ingest: it keeps its values, and the ingest goes on, also after a restart."""

from __future__ import annotations

import logging

import pytest

from bridge.errors import TableError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from tests.delta.tables import create_fed
from tests.pipelines.world import Make, World, tombstone, upsert


def alter(world: World, what: str) -> None:
    world.spark.sql(f"ALTER TABLE delta.`{world.folder}/table` {what}")


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "between two runs"])
@pytest.mark.parametrize("engine", ["spark", "driver"])
def test_values_of_a_user_stay(
    make: Make, engine: str, running: bool, caplog: pytest.LogCaptureFixture
) -> None:
    world = make(sections=f"merge: {{engine: {engine}}}\n")
    world.send([upsert(1, "a"), upsert(2, "b"), upsert(3, "c")])

    def add_column(report: BatchReport | None = None) -> None:
        if report is None or report.batch == 0:
            alter(world, "ADD COLUMN note STRING")
            world.spark.sql(f"UPDATE delta.`{world.folder}/table` SET note = concat('of ', name)")
            world.send([upsert(1, "a2"), tombstone(2), upsert(4, "d")])

    if running:
        ingest(world.spark, world.definition(), listener=add_column)
    else:
        ingest(world.spark, world.definition())
        add_column()
    with caplog.at_level(logging.WARNING):
        ingest(world.spark, world.definition())
    assert (
        "columns that the definition lacks: `note`; they stay as they are in rows that are updated"
        in caplog.text
    )
    table = world.spark.read.format("delta").load(f"{world.folder}/table").orderBy("id")
    assert [tuple(row) for row in table.select("id", "name", "note").collect()] == [
        *((1, "a2", "of a"), (3, "c", "of c"), (4, "d", None))
    ]


def test_a_column_that_must_have_a_value_is_refused(make: Make) -> None:
    """No row could be inserted any more."""
    world = make()
    world.send([upsert(1, "a")])
    columns = "id BIGINT, name STRING, amount DECIMAL(10, 2), note STRING NOT NULL"
    create_fed(world.spark, f"{world.folder}/table", columns)
    with pytest.raises(
        TableError, match="not in the definition, and NOT NULL: `note` string\nchange the DDL"
    ):
        ingest(world.spark, world.definition())
