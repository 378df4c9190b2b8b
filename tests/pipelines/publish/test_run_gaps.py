"""A table or a topic that changed since the last run: a publish continues where it can, else names the repair."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.errors import REPUBLISH, BridgeError, GapError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.topic_to_table import resync
from tests.pipelines.ingest.test_run_gaps import add_partitions
from tests.pipelines.publish.test_run import folded, table
from tests.pipelines.world import Make, World, upsert

slow = pytest.mark.slow


@pytest.fixture
def make(make: Make, spark: SparkSession) -> Make:
    """A publish whose first run is done: rows 1 and 2 are in the topic."""

    def made(properties: str = "", **more: object) -> World:
        world = make(**more)
        world.create_table(properties)
        world.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
        assert publish(spark, world.definition()).records_out == 2
        return world

    return made


@pytest.mark.slow
def test_an_overwrite_and_a_restore_are_published(make: Make) -> None:
    """An overwrite and a restore reach the topic key by key, from the change feed."""
    world = make()
    world.sql("INSERT OVERWRITE t VALUES (2, 'b2', 2), (3, 'c', 3)")
    over = publish(world.spark, world.definition())
    assert folded(world) == table(world) and set(table(world)) == {2, 3}
    assert (over.records_out, over.tombstones) == (3, 1)
    world.sql("RESTORE TABLE t TO VERSION AS OF 1")
    publish(world.spark, world.definition())
    assert folded(world) == table(world) and set(table(world)) == {1, 2}


@pytest.mark.slow
def test_a_resync_that_removes_duplicate_keys_is_published(make: Make) -> None:
    """Such a key has rows deleted and one inserted, in one version of the bridge."""
    out = make()
    into = World.make(out.spark, out.broker, out.folder, lambda stem: f"{out.topic}-{stem}")
    into.send([upsert(n, "n") for n in range(200)])
    ingest(into.spark, into.definition("into", run={"checkpoint": "into"}))
    out.sql("INSERT INTO t SELECT * FROM t WHERE id >= 0")
    publish(out.spark, out.definition())
    done = resync(into.spark, into.definition("into", run={"checkpoint": "into"}))
    assert done.updated == 200
    publish(out.spark, out.definition())
    assert folded(out) == table(out) and set(table(out)) == set(range(200))


def test_a_feed_that_was_off_for_a_while(make: Make) -> None:
    world = make()
    world.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed'='false')")
    world.sql("INSERT INTO t VALUES (3, 'unseen', 3)")
    with pytest.raises(TableError, match="the change data feed is off; switch it on with"):
        publish(world.spark, world.definition())
    world.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableChangeDataFeed'='true')")
    with pytest.raises(
        GapError, match=r"versions 2 to 4 are needed, but the change data feed was off for part"
    ) as off:
        publish(world.spark, world.definition())
    assert REPUBLISH in str(off.value) and len(world.received()) == 2


def test_a_log_that_was_cleaned(make: Make) -> None:
    world = make(", 'delta.checkpointInterval'='4'")
    for n in range(3, 7):
        world.sql(f"INSERT INTO t VALUES ({n}, 'x', 1)")
    for version in range(4):
        (world.folder / "table" / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(
        GapError, match=r"versions 2 to 5 are needed, but the table's log no longer reaches back"
    ) as gap:
        publish(world.spark, world.definition())
    assert REPUBLISH in str(gap.value) and len(world.received()) == 2


@pytest.mark.slow
def test_files_that_were_vacuumed(make: Make) -> None:
    world = make()
    world.sql("UPDATE t SET name = 'a2' WHERE id = 1")
    world.sql("OPTIMIZE t ")
    careless = world.spark.newSession()
    careless.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    careless.sql(f"VACUUM delta.`{world.folder}/table` RETAIN 0 HOURS")
    with pytest.raises(GapError, match=r"are needed, but files of those versions have been vacuumed") as gap:
        publish(world.spark, world.definition())
    assert REPUBLISH in str(gap.value) and len(world.received()) == 2


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        (
            ["RENAME COLUMN id TO key", "ADD COLUMN id BIGINT"],
            GapError,
            "columns were renamed, dropped or retyped",
        ),
        pytest.param(["RENAME COLUMN id TO key"], TableError, "missing: `id` bigint", marks=slow),
        pytest.param(["DROP COLUMN amount"], TableError, r"missing: `amount` decimal\(10,2\)", marks=slow),
        pytest.param(["ALTER COLUMN amount TYPE DECIMAL(12, 2)"], TableError, r"decimal\(12,2\)", marks=slow),
    ],
    ids=["another key column", "key renamed", "dropped", "widened"],
)
def test_columns_that_are_not_what_they_were(
    make: Make, changes: list[str], kind: type[BridgeError], words: str
) -> None:
    """Renamed, dropped, widened, the key column changed: it stops, and nothing is sent."""
    world = make(", 'delta.columnMapping.mode'='name', 'delta.enableTypeWidening'='true'")
    for change in changes:
        world.sql(f"ALTER TABLE t {change}")
    world.sql("DELETE FROM t WHERE name = 'a'")
    with pytest.raises(kind, match=words):
        publish(world.spark, world.definition())
    assert len(world.received()) == 2


@pytest.mark.slow
def test_added_partitions_give_a_warning(make: Make, stop: threading.Event) -> None:
    """Between two runs and under one: a warning each time, once, for records with a key."""
    world = make(partitions=1)
    add_partitions(world, 2)
    reports: list[BatchReport] = []

    def on_report(report: BatchReport) -> None:
        reports.append(report)
        if len(reports) == 1:
            add_partitions(world, 3)
            world.sql("INSERT INTO t VALUES (4, 'd', 4)")
        elif len(reports) == 2:
            world.sql("INSERT INTO t VALUES (5, 'e', 5)")
        else:
            stop.set()

    world.sql("INSERT INTO t VALUES (3, 'c', 3)")
    done = publish(world.spark, world.definition(run={"trigger": "200 ms"}), listener=on_report, stop=stop)
    warnings = [report.warning for report in reports]
    assert warnings[0] and "has 2 partitions by now, it had 1: most keys have moved" in warnings[0], warnings
    assert warnings[1] and "has 3 partitions by now, it had 2" in warnings[1] and warnings[2] is None, (
        warnings
    )
    assert done.warning and "had 1" in done.warning and "had 2" in done.warning
    assert folded(world) == table(world)
    assert publish(world.spark, world.definition()).warning is None


@pytest.mark.parametrize("guarantee", ["at-least-once", pytest.param("exactly-once", marks=slow)])
def test_a_topic_that_is_deleted_under_a_publish(
    make: Make, stop: threading.Event, unique: Callable[[str], str], guarantee: str
) -> None:
    options = {"sink.delivery-guarantee": guarantee, "sink.transactional-id-prefix": unique("tx")}
    world = make(options=options if guarantee == "exactly-once" else {})
    client = AdminClient({"bootstrap.servers": world.broker.bootstrap})

    def on_report(report: BatchReport) -> None:
        client.delete_topics([world.topic])[world.topic].result(30)
        world.sql("INSERT INTO t VALUES (4, 'd', 4)")

    world.sql("INSERT INTO t VALUES (3, 'c', 3)")
    began = time.monotonic()
    with pytest.raises(BridgeError, match=rf"topic '{world.topic}' does not exist|{world.topic}.*UNKNOWN"):
        publish(world.spark, world.definition(run={"trigger": "200 ms"}), listener=on_report, stop=stop)
    assert time.monotonic() - began < 90
