"""A publish continues only with the topic and the key that its progress belongs to."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import GapError
from bridge.kafka import admin
from bridge.pipelines.publish.destination import Destination, topic_key
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.table_to_topic import resync
from bridge.publish_progress import PublishProgress
from tests.config.files import loaded, upsert_file
from tests.pipelines.publish.test_run import folded, table
from tests.pipelines.world import Make, World

START = PublishProgress("orders", "table", 3, 7)
FIRST = ["at-least-once", pytest.param("exactly-once", marks=pytest.mark.slow)]


@pytest.fixture
def make(make: Make, spark: SparkSession, unique: Callable[[str], str]) -> Make:
    """A publish whose first run is done: rows 1 and 2 are in the topic."""

    def made(guarantee: str = "at-least-once", **more: object) -> World:
        world = make(**more)
        world.options = {**world.options, **delivery(guarantee, unique("tx"))}
        world.create_table()
        world.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
        first = publish(spark, world.definition())
        assert (first.records_out, first.warning) == (2, None)
        return world

    return made


def delivery(guarantee: str, prefix: str) -> Mapping[str, str]:
    if guarantee == "at-least-once":
        return {}
    options = {"sink.transactional-id-prefix": prefix, "sink.parallelism": "2"}
    return {"sink.delivery-guarantee": guarantee, **options}


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < until, "it did not happen within a minute"
        time.sleep(0.02)


@pytest.mark.parametrize("guarantee", FIRST)
def test_a_topic_created_anew(make: Make, guarantee: str) -> None:
    """Its rows are gone, so sending what changes is not enough; a resync sends all."""
    world = make(guarantee)
    world.recreate_topic()
    world.sql("UPDATE t SET name = 'b2' WHERE id = 2")
    for _ in range(2):
        with pytest.raises(GapError, match=rf"topic '{world.topic}' was deleted and created anew") as gap:
            publish(world.spark, world.definition())
    assert "run `bridge resync FILE`" in str(gap.value) and "start: snapshot" in str(gap.value)
    assert world.received() == []
    assert resync(world.spark, world.definition()).inserted == 2
    world.sql("DELETE FROM t WHERE id = 1")
    assert publish(world.spark, world.definition()).records_out == 1
    assert folded(world) == table(world) and set(table(world)) == {2}


@pytest.mark.parametrize("guarantee", FIRST)
def test_another_topic(make: Make, unique: Callable[[str], str], guarantee: str) -> None:
    """A resync deletes the keys that only it has."""
    world = make(guarantee)
    former, world.topic = world.topic, unique("topic")
    world.broker.create_topic(world.topic, partitions=1)
    world.send([(json.dumps({"id": 7}), json.dumps({"id": 7, "name": "x", "amount": 1}))])
    with pytest.raises(GapError, match=rf"belongs to topic '{former}', the DDL names {world.topic}"):
        publish(world.spark, world.definition())
    done = resync(world.spark, world.definition())
    assert (done.inserted, done.deleted) == (2, 1)
    assert publish(world.spark, world.definition()).records_out == 0
    assert folded(world) == table(world) and set(table(world)) == {1, 2}


def test_a_first_run_says_that_the_topic_has_records(make: Make) -> None:
    """With the checkpoint an at-least-once publish has lost which keys it sent, so a deletion has no tombstone."""
    world = make()
    shutil.rmtree(world.folder / "checkpoint")
    world.sql("DELETE FROM t WHERE id = 1")
    again = publish(world.spark, world.definition())
    assert again.warning is not None
    assert f"{world.topic} has records, and this publish has no progress of an earlier run" in again.warning
    assert "bridge resync FILE --direction publish" in again.warning
    assert set(folded(world)) == {1, 2}
    assert resync(world.spark, world.definition()).deleted == 1
    done = publish(world.spark, world.definition())
    assert (set(folded(world)), done.warning) == ({2}, None)


def test_another_topic_with_a_checkpoint_of_its_own(make: Make, unique: Callable[[str], str]) -> None:
    world = make()
    world.topic = unique("topic")
    world.broker.create_topic(world.topic, partitions=1)
    assert publish(world.spark, world.definition(run={"checkpoint": "second"})).records_out == 2


@pytest.mark.parametrize("guarantee", FIRST)
def test_a_topic_created_anew_while_a_run_sends_to_it(
    make: Make, arm: Callable[[str, str], Path], guarantee: str
) -> None:
    """Detected before its version is recorded."""
    world = make(guarantee)
    world.sql("INSERT INTO t VALUES (3, 'c', 3)")
    definition, fired = world.definition(), arm("publish.sent", "pause")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(publish, world.spark, definition)
        try:
            wait_for(lambda: fired.exists() or running.done())
            assert len(world.received()) == 3
            world.recreate_topic()
        finally:
            fired.unlink(missing_ok=True)
        with pytest.raises(
            GapError, match=rf"{world.topic}.* (was deleted and created anew while|was created anew)"
        ):
            running.result(60)
    with pytest.raises(GapError, match="was deleted and created anew"):
        publish(world.spark, world.definition())


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        pytest.param(
            "id BIGINT, name STRING, amount DECIMAL(10, 2), PRIMARY KEY (id, name) NOT ENFORCED", "id, name"
        ),
        pytest.param(
            "id BIGINT, name STRING, amount DECIMAL(10, 2), PRIMARY KEY (name) NOT ENFORCED",
            "name",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_another_key(make: Make, unique: Callable[[str], str], columns: str, key: str) -> None:
    """A resync cannot heal it, but for a new topic."""
    world = make()
    world.columns = columns
    for verb in (publish, resync):
        with pytest.raises(
            GapError, match=r"was sent with PRIMARY KEY \(id\), record keys in json \(id\)"
        ) as gap:
            verb(world.spark, world.definition())
        assert f"PRIMARY KEY ({key})" in str(gap.value)
    assert len(world.received()) == 2
    world.topic = unique("topic")
    world.broker.create_topic(world.topic, partitions=1)
    assert resync(world.spark, world.definition()).inserted == 2


@pytest.mark.parametrize(
    ("format", "column", "fields"),
    [
        ("avro", "a INT", "a NOT NULL"),
        ("avro", "a INT NOT NULL", "a NOT NULL"),
        ("json", "a INT NOT NULL", "a"),
    ],
)
def test_a_key_that_older_bridges_wrote_with_other_bytes(
    tmp_path: Path, format: str, column: str, fields: str
) -> None:
    """Their Avro had a union for a column that only the PRIMARY KEY makes NOT NULL, and their progress did not tell."""
    text = upsert_file(f"{column}, b INT, PRIMARY KEY (a) NOT ENFORCED", format)
    key = topic_key(loaded(tmp_path, text).topic)
    assert key == f"PRIMARY KEY (a), record keys in {format} ({fields})"


def test_progress_of_an_older_bridge_takes_what_is_there(make: Make) -> None:
    """It names neither key nor topics; from then on it does."""
    world = make()
    last = max((world.folder / "checkpoint/publish").iterdir())
    written = json.loads(last.read_text())
    for name, value in (("key", "PRIMARY KEY (id), record keys in json (id)"), ("topics", None)):
        assert written["bridge"].pop(name) == value or value is None
    last.write_text(json.dumps(written))
    world.sql("INSERT INTO t VALUES (3, 'c', 3)")
    assert publish(world.spark, world.definition()).records_out == 1
    world.recreate_topic()
    with pytest.raises(GapError, match="was deleted and created anew"):
        publish(world.spark, world.definition())


def test_topics_that_rows_name(make: Make, broker: Broker, unique: Callable[[str], str]) -> None:
    """A topic that is added to several is no gap; one of them that was created anew is."""
    world = make()
    first, second, third = (unique("many") for _ in range(3))
    for name in (first, second):
        broker.create_topic(name, partitions=1)

    def bound(known: PublishProgress = START, **option: str) -> PublishProgress:
        """Progress of a run with these topics that continues from `known`."""
        world.options = {"topic": None, **option}
        definition = world.definition()
        destination = Destination(definition, admin.resolve(definition.topic))
        destination.check(known)
        return destination.with_destination(known)

    known = bound(topic=f"{first};{second}")
    assert set(known.topics) == {first, second} and all(known.topics.values())
    broker.create_topic(third, partitions=1)
    by_pattern = {"topic-pattern": f"({first}|{second}|{third})"}
    assert set(bound(known, **by_pattern).topics) == {first, second, third}
    assert set(bound(known, topic=f"{first};{second};{third}").topics) == {first, second, third}
    with pytest.raises(GapError, match=f"belongs to topic '{second}', the DDL names {first}"):
        bound(known, topic=first)
    alone = bound(topic=first)
    with pytest.raises(GapError, match=f"belongs to topic '{first}' alone, not to {second}"):
        bound(alone, topic=f"{first};{second}")
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.delete_topics([second])[second].result(30)
    without = bound(known, **by_pattern)
    assert set(without.topics) == {first, second, third}
    broker.create_topic(second, partitions=1)
    with pytest.raises(GapError, match=f"topic '{second}' was deleted and created anew"):
        bound(without, **by_pattern)


def test_a_broker_that_reports_no_ids(make: Make) -> None:
    """A warning, and not taken for another topic."""
    world = make()
    definition = world.definition()
    assert list(Destination(definition, definition.topic).warnings()) == []
    destination = Destination(
        definition, definition.topic, lambda _: {world.topic: ""}
    )  # as before Kafka 2.8
    (warning,) = destination.warnings()
    assert f"does not see when {world.topic} is deleted and created anew" in warning
    destination.check(replace(START, topics={world.topic: "some id"}))
