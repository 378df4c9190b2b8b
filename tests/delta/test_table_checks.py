"""What newer versions of Delta bring to a table: used, or refused by name, in all verbs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from delta.tables import DeltaTable, IdentityGenerator
from pyspark.sql import SparkSession

from bridge.delta.delta_errors import table_error
from bridge.delta.table import exists
from bridge.errors import TableError
from bridge.log_layout import LOG_FOLDER
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.pipelines.world import ROWS, Make, World, key, value

WAY_OUT = "Leave it out of the DDL, with `delta: {merge-columns: all}`"


def create(world: World, identity: str, by_default: bool = False) -> None:
    """Create the table of a world, in which one column is an identity column."""
    builder = DeltaTable.create(world.spark).location(str(world.folder / "table"))
    builder = builder.property("delta.enableChangeDataFeed", "true")
    for name, type in (("id", "BIGINT"), ("name", "STRING"), ("amount", "DECIMAL(10, 2)"), ("n", "BIGINT")):
        if name != identity:
            builder = builder.addColumn(name, type)
        elif by_default:
            builder = builder.addColumn(name, type, generatedByDefaultAs=IdentityGenerator())
        else:
            builder = builder.addColumn(name, type, nullable=False, generatedAlwaysAs=IdentityGenerator())
    builder.execute()


NUMBERED = "id BIGINT, name STRING, amount DECIMAL(10, 2), n BIGINT, PRIMARY KEY (id) NOT ENFORCED"


@pytest.mark.parametrize("delta", ["path: table", "path: table, merge-columns: all"], ids=["alone", "shared"])
@pytest.mark.parametrize(
    ("by_default", "words"),
    [
        (False, "ALWAYS AS IDENTITY, and Delta takes no"),
        (True, "BY DEFAULT AS IDENTITY, and Delta updates none"),
    ],
    ids=["always", "by default"],
)
def test_an_identity_column_is_not_written(make: Make, delta: str, by_default: bool, words: str) -> None:
    """It is refused before the first batch: with BY DEFAULT, only the first update would fail."""
    world = make(columns=NUMBERED, delta=delta)
    create(world, "n", by_default)
    with pytest.raises(TableError, match=f"column 'n' is GENERATED {words}") as refused:
        ingest(world.spark, world.definition())
    assert WAY_OUT in str(refused.value)


def test_rows_are_appended_with_their_numbers(make: Make) -> None:
    columns = "id BIGINT, name STRING, amount DECIMAL(10, 2), n BIGINT"
    world = make(columns=columns, cleanup="delete", options=ROWS)
    create(world, "n", by_default=True)
    world.send([(None, json.dumps({"id": 1, "name": "a", "amount": 1, "n": 7}))])
    assert ingest(world.spark, world.definition()).inserted == 1
    assert [(row[0], row[3]) for row in world.rows()] == [(1, 7)]


def test_rows_that_are_inserted_are_numbered(make: Make) -> None:
    world = make(delta="path: table, merge-columns: all")
    create(world, "n")
    for name in "ab":
        world.send([(key(number), value(number, name)) for number in range(3)])
        ingest(world.spark, world.definition())
    assert [row[:2] for row in world.rows()] == [(0, "b"), (1, "b"), (2, "b")]
    assert len({row[3] for row in world.rows()} - {None}) == 3
    out = make(folder="out", delta="path: ../table")
    assert publish(world.spark, out.definition("out")).records_out == 3


def test_an_identity_column_that_only_a_server_knows_is_named_by_its_first_batch() -> None:
    found = table_error("t", frozenset({"DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"}))
    assert WAY_OUT in str(found) and "identity column" in str(found)


def make_catalog_managed(table: Path) -> None:
    """Write the commit by which a catalog takes a table over, as Delta's protocol has it."""
    log = table / LOG_FOLDER
    first, newest = min(log.glob("*.json")), max(log.glob("*.json"))
    of_both = ["deletionVectors", "catalogManaged", "vacuumProtocolCheck"]
    writers = [*of_both, "changeDataFeed", "invariants", "appendOnly", "inCommitTimestamp"]
    (about,) = (json.loads(line) for line in first.read_text().splitlines() if "metaData" in line)
    about["metaData"]["configuration"]["delta.enableInCommitTimestamps"] = "true"
    info = {"inCommitTimestamp": 1_790_000_000_000, "timestamp": 1_790_000_000_000, "operation": "UPGRADE"}
    features = {"readerFeatures": of_both, "writerFeatures": writers}
    actions = [
        {"commitInfo": {**info, "operationParameters": {}, "txnId": "1"}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        about,
    ]
    (log / f"{int(newest.stem) + 1:020}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))


CALLS: list[Callable[[World, World], object]] = [
    lambda world, _: exists(world.spark, world.definition().delta),
    lambda world, _: ingest(world.spark, world.definition()),
    lambda world, out: publish(world.spark, out.definition("out")),
]


def test_a_catalog_managed_table_is_not_taken_by_its_path(make: Make) -> None:
    """The files of its log may lack its newest commits."""
    world = make()
    world.send([(key(1), value(1, "a"))])
    ingest(world.spark, world.definition())
    make_catalog_managed(world.folder / "table")
    world.send([(key(1), value(1, "b"))])
    out = make(folder="out", delta="path: ../table")
    for call in CALLS:
        with pytest.raises(
            TableError, match=r"is catalog-managed: .* Name it by `delta: \{table: catalog\.schema\.table\}`"
        ):
            call(world, out)


def test_changes_that_are_computed_at_read_time_are_not_used(make: Make, spark: SparkSession) -> None:
    world = make()
    world.sql("CREATE TABLE t (id BIGINT, name STRING, amount DECIMAL(10, 2)) USING delta")
    with pytest.raises(TableError, match="the change data feed is off") as refused:
        publish(spark, world.definition())
    assert "enableRowTracking" not in str(refused.value)
    world.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    with pytest.raises(TableError, match=r"delta\.enableRowTracking.* the bridge does not use that"):
        publish(spark, world.definition())
