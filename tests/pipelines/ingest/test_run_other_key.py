"""The PRIMARY KEY of a DDL is changed: rows that were merged by another key would not be found again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.world import World

COLUMNS = "id BIGINT, name STRING"
CDC = {"connector": "kafka", "scan.startup.mode": "earliest-offset", "key.format": None}
DEBEZIUM = {**CDC, "value.format": "debezium-json"}
ROWS = {**CDC, "value.format": None, "format": "json"}


@pytest.fixture
def make(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> Callable[..., World]:
    def made(**more: Any) -> World:
        given = {"options": DEBEZIUM, "columns": f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED", **more}
        return World.make(spark, broker, lake, unique, cleanup="delete", partitions=1, **given)

    return made


def put(id: int, name: str) -> tuple[None, str]:
    return None, json.dumps({"before": None, "after": {"id": id, "name": name}, "op": "c"})


def test_another_key_is_refused_until_a_resync(make: Callable[..., World]) -> None:
    world = make()
    world.send([put(1, "a"), put(1, "b"), put(2, "c")])
    ingest(world.spark, world.definition())
    world.columns = f"{COLUMNS}, PRIMARY KEY (name, id) NOT ENFORCED"
    words = "its rows are identified by (id), and those of the DDL are identified by (name, id)"
    with pytest.raises(TableError, match=re.escape(words)):
        ingest(world.spark, world.definition())
    assert world.rows() == [(1, "b"), (2, "c")]
    assert resync(world.spark, world.definition()).inserted == 1
    world.columns = f"{COLUMNS}, PRIMARY KEY (id, name) NOT ENFORCED"
    world.send([put(1, "d")])
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "a"), (1, "b"), (1, "d"), (2, "c")]
    assert verify(world.spark, world.definition()).equal


@pytest.mark.slow
def test_a_resync_without_a_difference_takes_the_key_over(make: Callable[..., World]) -> None:
    world = make()
    world.send([put(1, "a"), put(2, "c")])
    ingest(world.spark, world.definition())
    world.columns = f"{COLUMNS}, PRIMARY KEY (id, name) NOT ENFORCED"
    assert resync(world.spark, world.definition()).unchanged == 2
    world.send([put(1, "b")])
    ingest(world.spark, world.definition())
    assert world.rows() == [(1, "a"), (1, "b"), (2, "c")]


@pytest.mark.slow
def test_a_table_with_rows_of_a_key_gets_none_without_one(make: Callable[..., World]) -> None:
    """Nor the other way round, where a resync helps."""
    world = make(options=ROWS, columns=COLUMNS)
    world.send([(None, '{"id": 1, "name": "a"}'), (None, '{"id": 1, "name": "b"}')])
    ingest(world.spark, world.definition())
    keyed = {"connector": "upsert-kafka", "key.format": "json", "scan.startup.mode": None}
    world.options = {**ROWS, "format": None, "value.format": "json", **keyed}
    world.columns = f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED"
    with pytest.raises(TableError, match=r"its rows are without a PRIMARY KEY, .* run `bridge resync FILE`"):
        ingest(world.spark, world.definition())
    other = make(columns=f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED")
    other.folder = world.folder / "other"
    other.folder.mkdir()
    other.send([put(1, "a")])
    ingest(other.spark, other.definition())
    row_kind = ", kind STRING METADATA FROM 'row-kind' VIRTUAL"
    other.spark.sql(f"ALTER TABLE delta.`{other.folder}/table` ADD COLUMN kind STRING")
    other.columns = COLUMNS + row_kind
    with pytest.raises(TableError, match=r"those of the DDL are without a PRIMARY KEY, .* was, give the"):
        ingest(other.spark, other.definition())
