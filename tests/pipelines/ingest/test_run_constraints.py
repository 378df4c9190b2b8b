"""NOT NULL and CHECK of the table: a row that breaks one is a bad record, by each reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import World, tombstone, upsert

Make = Callable[..., World]
ONE = Decimal("1.00")
NOT_NULL = "column 'name' is NOT NULL in the table, and the row has no value for it"
CHECK = r"the row breaks the constraint 'short' of the table: CHECK \(length ?\( ?name ?\) < 3\)"
APPENDS = {
    "columns": "id BIGINT, name STRING, amount DECIMAL(10, 2)",
    "options": {
        "connector": "kafka",
        "key.format": None,
        "value.format": None,
        "format": "json",
        "scan.startup.mode": "earliest-offset",
    },
}


@pytest.fixture
def make(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Make:
    return lambda **more: World.make(spark, broker, lake, unique, partitions=1, **more)


def constrain(world: World, *, not_null: bool = False, check: bool = False) -> None:
    """Create the table, or give the one that is there a constraint."""
    place = f"delta.`{world.folder}/table`"
    name = "name STRING NOT NULL" if not_null else "name STRING"
    world.spark.sql(
        f"CREATE TABLE IF NOT EXISTS {place} (id BIGINT, {name}, amount DECIMAL(10, 2)) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    if check:
        world.spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT short CHECK (length(name) < 3)")


@pytest.mark.parametrize("reader", ["spark", "consumer"])
@pytest.mark.parametrize("appends", [False, True], ids=["keyed", "appended"])
def test_null_in_a_column_that_is_not_null_is_a_bad_record(make: Make, reader: str, appends: bool) -> None:
    """Consumers leave it to Spark's source, which names the record."""
    if appends and reader == "consumer":
        reader = "auto"
    world = make(sections=f"ingest: {{reader: {reader}}}\n", **(APPENDS if appends else {}))
    constrain(world, not_null=True)
    world.send([upsert(1, "a"), upsert(2, None), *([] if appends else [tombstone(3)])])
    row = "" if appends else re.escape(", row (id: 2)")
    with pytest.raises(BadRecordError, match=f"{world.topic}-0 at offset 1{row}: {NOT_NULL}") as stopped:
        ingest(world.spark, world.definition())
    assert "bad-records: quarantine" in str(stopped.value)
    assert world.rows() == []


@pytest.mark.parametrize("bad_records", ["quarantine", "skip"])
def test_bad_records_decides_about_a_row_that_breaks_a_check(make: Make, bad_records: str) -> None:
    """NULL breaks a CHECK, too. The last good record of a key counts, also for verify and resync."""
    world = make(sections=f"ingest: {{bad-records: {bad_records}}}\n")
    constrain(world, check=True)
    world.send([upsert(1, "ok"), upsert(2, "b"), upsert(1, "secret"), upsert(3, None), tombstone(2)])
    reports: list[BatchReport] = []
    ingest(world.spark, world.definition(), listener=reports.append)
    assert world.rows() == [(1, "ok", ONE)]
    assert reports[0].bad_records == 2
    assert reports[0].quarantined == (2 if bad_records == "quarantine" else 0)
    assert verify(world.spark, world.definition()).comparison.equal
    assert resync(world.spark, world.definition()).bad == 2
    quarantined = world.folder / "table_quarantine"
    if bad_records == "quarantine":
        rows = DeltaTable.forPath(world.spark, str(quarantined)).toDF().select("offset", "reason").collect()
        assert {row[0] for row in rows} == {2, 3}
        assert all(re.fullmatch(CHECK, row[1]) for row in rows)
    else:
        assert not quarantined.exists()


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["auto", "spark"])  # auto: consumers, which leave such a table to Spark
def test_rows_too_long_and_other_generated_values_are_bad_records(make: Make, reader: str) -> None:
    """Replayed once they fit; one that the table refuses again stays in the quarantine."""
    world = make(
        sections=f"ingest: {{bad-records: quarantine, reader: {reader}}}\n",
        columns="id BIGINT, name STRING, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED",
    )
    spark, place = world.spark, str(world.folder / "table")
    builder = DeltaTable.create(spark).location(place).addColumn("id", "BIGINT")
    builder = builder.addColumn("name", "VARCHAR(3)").addColumn("twice", "BIGINT", generatedAlwaysAs="id * 2")
    builder.property("delta.enableChangeDataFeed", "true").execute()

    def row(id: int, name: str, twice: int) -> str:
        return f'{{"id":{id},"name":"{name}","twice":{twice}}}'

    rows = [row(1, "äöü", 2), row(2, "long", 4), row(3, "c", 7), row(4, "d", 8)]
    world.send([(f'{{"id":{number}}}', text) for number, text in enumerate(rows, 1)])
    summary = ingest(spark, world.definition())
    assert (world.rows(), summary.bad_records) == ([(1, "äöü", 2), (4, "d", 8)], 2)
    aside = f"delta.`{place}_quarantine`"
    reasons = spark.sql(f"SELECT offset, reason FROM {aside} ORDER BY offset").collect()
    assert list(map(tuple, reasons)) == [
        (1, "column 'name' is VARCHAR(3) in the table, and the value is longer"),
        (
            2,
            "column 'twice' is GENERATED ALWAYS AS (id * 2) in the table, and the row has another value",
        ),
    ]
    for offset, text in ((1, row(2, "still long", 4)), (2, row(3, "c", 6))):
        spark.sql(f"UPDATE {aside} SET value = CAST('{text}' AS BINARY) WHERE offset = {offset}")
    done = replay(spark, world.definition())
    assert (done.replayed, done.still_bad) == (1, 1)
    assert world.rows() == [(1, "äöü", 2), (3, "c", 6), (4, "d", 8)]
    assert spark.sql(f"SELECT offset FROM {aside}").collect()[0][0] == 1


@pytest.mark.slow
@pytest.mark.parametrize("appends", [False, True], ids=["keyed", "appended"])
def test_a_row_that_a_check_refuses_is_not_replayed(make: Make, appends: bool) -> None:
    """It stays in the quarantine until the constraint is gone, or the row is corrected."""
    world = make(sections="ingest: {bad-records: quarantine}\n", **(APPENDS if appends else {}))
    spark, place = world.spark, f"delta.`{world.folder}/table`"
    constrain(world, check=True)
    world.send([upsert(1, "ok"), ('{"id":2}', "{")])
    assert ingest(spark, world.definition()).bad_records == 1
    document = str(upsert(2, "secret")[1])
    spark.sql(f"UPDATE delta.`{world.folder}/table_quarantine` SET value = CAST('{document}' AS BINARY)")
    done = replay(spark, world.definition())
    assert (done.replayed, done.still_bad, world.rows()) == (0, 1, [(1, "ok", ONE)])
    spark.sql(f"ALTER TABLE {place} DROP CONSTRAINT short")
    assert replay(spark, world.definition()).replayed == 1
    assert world.rows() == [(1, "ok", ONE), (2, "secret", ONE)]


def test_a_check_that_is_added_during_a_run_names_the_record(make: Make) -> None:
    """Consumers do not judge rows by a CHECK; the run opens the table anew when Delta has refused the batch."""
    world = make()
    world.send([upsert(1, "a"), upsert(2, "secret")])

    def add(report: BatchReport) -> None:
        constrain(world, check=True)

    place = rf"{world.topic}-0 at offset 1, row \(id: 2\)"
    with pytest.raises(BadRecordError, match=f"{place}: {CHECK}") as stopped:
        ingest(world.spark, world.definition(run={"max-offsets-per-batch": 1}), listener=add)
    assert "secret" not in str(stopped.value)
    assert world.rows() == [(1, "a", ONE)]


def test_a_check_on_columns_of_other_pipelines_is_named_without_the_record(make: Make) -> None:
    """A change has its own columns only, so Delta judges the whole row."""
    world = make(delta="path: table, merge-columns: all")
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    place = f"delta.`{world.folder}/table`"
    world.spark.sql(f"ALTER TABLE {place} ADD COLUMN more STRING")
    world.spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT pair CHECK (more IS NOT NULL OR length(name) < 3)")
    world.send([upsert(2, "secret")])
    with pytest.raises(
        TableError, match="a row of this batch breaks the constraint pair; nothing"
    ) as stopped:
        ingest(world.spark, world.definition())
    assert "secret" not in str(stopped.value)


@pytest.mark.slow
def test_a_value_that_a_char_would_fill_with_spaces_is_a_bad_record(make: Make) -> None:
    """Else it would come back as another one, and a key would not be found again: a row more with each record of it."""
    columns = "id STRING, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    world = make(columns=columns, sections="ingest: {bad-records: quarantine}\n")
    world.spark.sql(
        f"CREATE TABLE delta.`{world.folder}/table` (id CHAR(2), name CHAR(3)) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    rows = (("ab", "abc"), ("a", "abc"), ("ab", "a"), ("ab", "xyz"), ("cd", None))
    world.send(
        [
            (f'{{"id": "{id}"}}', f'{{"name": {"null" if n is None else chr(34) + n + chr(34)}}}')
            for id, n in rows
        ]
    )
    for _ in range(2):
        ingest(world.spark, world.definition())
        assert world.rows() == [("ab", "xyz"), ("cd", None)]
        world.send([('{"id": "cd"}', '{"name": null}')])
    table = world.spark.read.format("delta").load(f"{world.folder}/table_quarantine")
    assert {row["offset"]: row["reason"][:22] for row in table.collect()} == {
        1: "column 'id' is CHAR(2)",
        2: "column 'name' is CHAR(",
    }
    assert verify(world.spark, world.definition()).equal
