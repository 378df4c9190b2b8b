"""What a check finds out about topic and history."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge import config
from bridge.delta import change_feed
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.quality.check import check
from bridge.pipelines.quality.facts import facts_of
from bridge.pipelines.runtime.preflight import open_whole_table
from bridge.quality.facts import Facts, Moment, Ratio, RowDifferences, Unknown
from bridge.quality.verdict import Outcome
from tests.config.files import pipeline_text
from tests.pipelines.world import Make, World, tombstone, upsert


def expect(type: str, **kwargs: Any) -> dict[str, Any]:
    """One expectation as a suite file has it."""
    return {"type": type, "kwargs": kwargs}


ASKED = [
    expect("expect_table_to_equal_topic"),
    expect("expect_change_feed_to_give_table", from_version=1),
    expect("expect_keys_to_stay_in_their_partition"),
    expect("expect_arrival_to_be_fresh", max_age_seconds=600),
    expect("expect_tombstone_ratio_to_be_between", max_ratio=0.3),
    expect("expect_key_to_be_unique", column_list=["id"]),
    expect("expect_arrival_to_be_fresh", max_age_seconds=600, of="commit"),
    expect("expect_tombstone_ratio_to_be_between", max_ratio=0.3, of="changes", last_versions=1),
]


@pytest.fixture
def world(make: Make, lake: Path) -> World:
    (lake / "suite.json").write_text(json.dumps({"name": "all", "expectations": ASKED}))
    return make(partitions=2, sections="quality: {suite: suite.json}\n")


def outcomes(world: World) -> dict[str, Outcome]:
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
    good = outcomes(world)
    bad = {type: (o.observed, o.reason) for type, o in good.items() if not o.success}
    # One deleted, one updated of the last version's changes.
    assert set(bad) == {"expect_tombstone_ratio_to_be_between/2"}
    assert bad["expect_tombstone_ratio_to_be_between/2"][0] == "50 % (1 of 2 changes)"
    assert good["expect_table_to_equal_topic"].observed.startswith("5 rows on both sides")
    assert good["expect_change_feed_to_give_table"].observed.endswith("(versions 1 to 2)")
    assert good["expect_tombstone_ratio_to_be_between"].observed == "12.5 % (1 of 8 records)"

    # A row changed behind the ingest, and keys in another partition.
    world.spark.sql(f"UPDATE delta.`{world.folder}/table` SET name = 'x' WHERE id = 2")
    world.send([upsert(3, "c"), tombstone(4)], partition=1)
    ingest(world.spark, definition)
    harmed = outcomes(world)
    assert harmed["expect_table_to_equal_topic"].example_keys == ({"id": 2},)
    assert harmed["expect_change_feed_to_give_table"].success
    moved = harmed["expect_keys_to_stay_in_their_partition"]
    assert (moved.success, moved.example_keys) == (False, ({"id": 3}, {"id": 4}))


@pytest.fixture
def alone(spark: SparkSession, tmp_path: Path) -> Facts:
    """Facts of a table whose broker is not there; versions: two rows, one changed, one deleted."""
    folder = tmp_path / "table"
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id bigint, name string").coalesce(1)
    frame.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(folder))
    spark.sql(f"UPDATE delta.`{folder}` SET name = 'c' WHERE id = 2")
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE id = 1")
    (tmp_path / "t.yaml").write_text(pipeline_text(name="t"))
    definition = config.load(tmp_path / "t.yaml")
    return facts_of(spark, definition, open_whole_table(spark, definition), 2, None)


def test_a_feed_that_does_not_tell_what_happened_is_found(
    alone: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta's feed is right, so a wrong one is put in its place: it lacks a delete."""
    replayed = alone.get("feed", {"last_versions": 10})
    assert isinstance(replayed, RowDifferences)
    assert (replayed.positions, replayed.rows, replayed.other_rows, replayed.differing) == (
        "versions 0 to 2",
        1,
        1,
        0,
    )
    assert replayed.checksum == replayed.other_checksum
    right = change_feed.changes
    monkeypatch.setattr(change_feed, "changes", lambda *a, **k: right(*a, **k).where("__kind != '-D'"))
    wrong = alone.get("feed", {"last_versions": 2})
    assert isinstance(wrong, RowDifferences)
    assert (wrong.rows, wrong.other_rows, wrong.differing, wrong.examples) == (2, 1, 1, ({"id": 1},))
    assert wrong.checksum != wrong.other_checksum
    nothing = alone.get("feed", {"last_versions": 1, "from_version": 2})
    assert nothing == Unknown(
        "there is nothing to replay from version 2 to 2; the version that is checked is 2"
    )


@pytest.mark.slow
def test_what_the_topic_would_tell_is_unknown_without_a_broker(alone: Facts) -> None:
    known = alone.get("tombstones", {"of": "changes", "last_versions": 2})
    assert known == Ratio(1, 2)
    committed = alone.get("arrival", {"of": "commit"})
    assert isinstance(committed, Moment) and abs(time.time() * 1000 - (committed.ms or 0)) < 600_000
    unknown = alone.get("partitions", {})
    assert isinstance(unknown, Unknown) and "127.0.0.1:1" in unknown.reason
