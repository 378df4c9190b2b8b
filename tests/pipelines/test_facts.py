"""What a check finds out about topic and history."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.kafka.broker import Broker
from bridge.pipelines.check import check
from bridge.pipelines.ingest import ingest
from bridge.quality.verdict import Outcome
from tests.pipelines.world import World, tombstone, upsert

ASKED = {
    "expect_table_to_equal_topic": {},
    "expect_change_feed_to_give_table": {"from_version": 1},
    "expect_keys_to_stay_in_their_partition": {},
    "expect_arrival_to_be_fresh": {"max_age_seconds": 600},
    "expect_tombstone_ratio_to_be_between": {"max_ratio": 0.3},
    "expect_key_to_be_unique": {"column_list": ["id"]},
}


@pytest.fixture
def world(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> World:
    suite = {
        "name": "all",
        "expectations": [{"type": type, "kwargs": kwargs} for type, kwargs in ASKED.items()]
        + [
            {"type": "expect_arrival_to_be_fresh", "kwargs": {"max_age_seconds": 600, "of": "commit"}},
            {
                "type": "expect_tombstone_ratio_to_be_between",
                "kwargs": {"max_ratio": 0.3, "of": "changes", "last_versions": 1},
            },
        ],
    }
    (lake / "suite.json").write_text(json.dumps(suite))
    return World.make(spark, broker, lake, unique, partitions=2, sections="quality: {suite: suite.json}\n")


def said(world: World) -> dict[str, Outcome]:
    """The check's outcomes, by type; of two of a type the first by its type and the second by `type/of`."""
    found: dict[str, Outcome] = {}
    for outcome in check(world.spark, world.definition()).verdict.expectations:
        found[f"{outcome.type}/2" if outcome.type in found else outcome.type] = outcome
    return found


def test_a_good_pipeline_passes_and_each_harm_is_found(world: World) -> None:
    definition = world.definition()
    world.send([upsert(n, "a") for n in range(6)], partition=0)
    ingest(world.spark, definition)
    world.send([upsert(1, "b"), tombstone(5)], partition=0)
    ingest(world.spark, definition)
    good = said(world)
    bad = {type: (o.observed, o.reason) for type, o in good.items() if not o.success}
    # One deleted, one updated of the last version's changes.
    assert set(bad) == {"expect_tombstone_ratio_to_be_between/2"}
    assert bad["expect_tombstone_ratio_to_be_between/2"][0] == "50 % (1 of 2 changes)"
    assert good["expect_table_to_equal_topic"].observed.startswith("5 rows on both sides")
    assert good["expect_change_feed_to_give_table"].observed.endswith("(versions 1 to 2)")
    assert good["expect_tombstone_ratio_to_be_between"].observed == "12.5 % (1 of 8 records)"

    # A row changed behind the ingest, a key in another partition, by a record that looks old and is not applied yet.
    table = f"delta.`{world.folder}/table`"
    world.spark.sql(f"UPDATE {table} SET name = 'x' WHERE id = 2")
    world.send([upsert(3, "c"), tombstone(4)], partition=1, timestamp=int((time.time() - 7200) * 1000))
    harmed = said(world)
    assert harmed["expect_table_to_equal_topic"].example_keys == ({"id": 2},)
    assert harmed["expect_change_feed_to_give_table"].success
    assert harmed["expect_keys_to_stay_in_their_partition"].success
    ingest(world.spark, definition)
    moved = said(world)["expect_keys_to_stay_in_their_partition"]
    assert (moved.success, moved.example_keys) == (False, ({"id": 3}, {"id": 4}))


def test_a_feed_that_does_not_tell_what_happened_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's feed is right, so a wrong one is put in its place: it lacks a delete."""
    from bridge.delta import feed

    definition = world.definition()
    world.send([upsert(1, "a"), upsert(2, "b")])
    ingest(world.spark, definition)
    world.send([tombstone(1), upsert(2, "c")])
    ingest(world.spark, definition)
    right = feed.changes
    monkeypatch.setattr(feed, "changes", lambda *a: right(*a).where("__kind != '-D'"))
    found = said(world)["expect_change_feed_to_give_table"]
    assert (found.success, found.example_keys) == (False, ({"id": 1},))
    assert found.observed.startswith("1 key not the same: replayed 2 rows")


def test_without_a_broker_what_the_topic_tells_has_failed(world: World) -> None:
    world.send([upsert(1, "a")])
    ingest(world.spark, world.definition())
    world.options = {"properties.bootstrap.servers": "127.0.0.1:1"}
    found = said(world)
    assert not found["expect_table_to_equal_topic"].success
    assert "127.0.0.1:1" in str(found["expect_table_to_equal_topic"].reason)
    assert not found["expect_arrival_to_be_fresh"].success
    assert found["expect_key_to_be_unique"].success and found["expect_arrival_to_be_fresh/2"].success
