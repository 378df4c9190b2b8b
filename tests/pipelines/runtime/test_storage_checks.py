"""A run refuses storage locations that overlap, and deletes no files of others in any case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.definition import Definition, DeltaTarget, Quality
from bridge.errors import DefinitionError
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations.maintain import maintain
from bridge.pipelines.quality.check import check
from bridge.pipelines.resync.topic_to_table import resync
from bridge.pipelines.runtime.storage_checks import check_storage_locations
from tests.config.files import WHOLE, loaded
from tests.delta.tables import create_fed
from tests.pipelines.world import Make, World, upsert


@pytest.fixture
def world(make: Make) -> World:
    return make(partitions=1)


def overlapping(world: World) -> Definition:
    """As in the issue, and as `load` would refuse it: the table lies where Spark's working state goes."""
    made, lake = world.definition(), world.folder / "lake"
    return replace(
        made,
        delta=replace(made.delta, path=str(lake / "ingest")),
        run=replace(made.run, checkpoint=str(lake)),
    )


def test_a_table_inside_of_the_checkpoint_stays_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: the start of a run refuses, and a run that is past it removes only what it has made."""
    definition = overlapping(world)
    table = world.folder / "lake" / "ingest"
    create_fed(world.spark, table, "id BIGINT, name STRING, amount DECIMAL(10, 2)")
    world.spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a', 1), (2, 'b', 2)")
    world.send([upsert(3, "c")])
    before = sorted((world.folder / "lake").rglob("*"))
    for verb in (ingest, resync, maintain, check, replay):
        given = definition
        if verb is check:
            given = replace(definition, quality=quality_of(world))
        if verb is replay:
            given = replace(definition, quarantine=DeltaTarget(str(world.folder / "aside")))
        with pytest.raises(DefinitionError, match=r"delta, .* is inside run.checkpoint, .*lake"):
            verb(world.spark, given)
    assert sorted((world.folder / "lake").rglob("*")) == before

    monkeypatch.setattr("bridge.pipelines.runtime.lease.check_storage_locations", lambda *_: None)
    assert ingest(world.spark, definition).records_in == 1
    rows = world.spark.read.format("delta").load(str(table)).collect()
    assert sorted(row["id"] for row in rows) == [1, 2, 3]


def quality_of(world: World) -> Quality | None:
    suite = world.folder / "suite.json"
    suite.write_text('{"name": "s", "expectations": []}')
    section = f"quality: {{suite: {suite}}}\n"
    return replace(world, sections=section).definition("judged").quality


@pytest.mark.versions
def test_a_table_known_by_its_name_has_a_place_too(spark: SparkSession, tmp_path: Path) -> None:
    """Where it is, or where Spark would create it."""
    plain, inside = loaded(tmp_path, WHOLE), tmp_path / "work" / "orders" / "t"
    spark.sql("CREATE DATABASE IF NOT EXISTS places")
    try:
        spark.sql(f"CREATE TABLE places.t (id INT) USING delta LOCATION '{inside}'")
        named = replace(plain, delta=DeltaTarget(table="places.t"))
        with pytest.raises(
            DefinitionError,
            match=r"delta, places.t at file:.*work/orders/t is inside run.checkpoint, file:.*/work/or",
        ):
            check_storage_locations(spark, named)
        warehouse = spark.sql("DESCRIBE DATABASE places").where("info_name = 'Location'").collect()[0][1]
        absent = replace(
            plain, delta=DeltaTarget(table="places.none"), run=replace(plain.run, checkpoint=warehouse)
        )
        with pytest.raises(DefinitionError, match=r"delta, places.none at .* is inside run.checkpoint"):
            check_storage_locations(spark, absent)
        check_storage_locations(spark, replace(absent, run=plain.run))
        check_storage_locations(spark, replace(plain, delta=DeltaTarget(table="nowhere.at.all")))
    finally:
        spark.sql("DROP DATABASE places CASCADE")
