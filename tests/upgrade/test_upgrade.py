"""A table, topics and checkpoints that an older bridge wrote go on under this one: nothing is read or sent again."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge import config
from bridge.embedded.broker import Broker
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.reader import messages
from tests.upgrade.make_fixture import PARTITIONS, TOPICS, document, pipelines, send

_ID = re.compile(r'\\?"(upgrade-\w+)\\?": \\?"([\w+/]{22})\\?"')
WRITTEN = sorted(Path(__file__).parent.glob("written_by_*"))


def restore(written: Path, broker: Broker, lake: Path) -> dict[str, Path]:
    """Put topics, groups, table and checkpoints where they were."""
    shutil.copytree(written / "lake", lake, dirs_exist_ok=True)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for topic in TOPICS:
        broker.create_topic(topic, partitions=PARTITIONS)
    for line in (written / "topics.jsonl").read_text().splitlines():
        record = json.loads(line)
        key, value = (record[name] and base64.b64decode(record[name]) for name in ("key", "value"))
        producer.produce(
            record["topic"], value, key, partition=record["partition"], timestamp=record["timestamp"]
        )
    assert producer.flush(30) == 0
    ids = _new_ids(written, broker)
    for file in lake.rglob("*.json"):
        file.write_text(_replaced(file.read_text(), ids))
    for group, places in json.loads(_replaced((written / "groups.json").read_text(), ids)).items():
        offsets = [TopicPartition(t, p, offset, metadata) for t, p, offset, metadata in places]
        wanted = [ConsumerGroupTopicPartitions(group, offsets)]
        for done in admin.alter_consumer_group_offsets(wanted).values():
            done.result(30)
    return pipelines(lake)


def _new_ids(written: Path, broker: Broker) -> dict[str, str]:
    """The id that each topic has now, by the one that was recorded: Kafka gives no topic the id of another one."""
    texts = "".join(file.read_text() for file in (written / "lake").rglob("*.json"))
    recorded = {(topic, id) for topic, id in _ID.findall(texts)}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_topics(TopicCollection(list(TOPICS)))
    now = {topic: str(found.result(30).topic_id) for topic, found in described.items()}
    assert {topic for topic, _ in recorded} == set(TOPICS)
    return {id: now[topic] for topic, id in recorded}


def _replaced(text: str, ids: dict[str, str]) -> str:
    for old, new in ids.items():
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("written", WRITTEN, ids=lambda folder: folder.name)
def test_what_an_older_bridge_wrote_goes_on(
    spark: SparkSession, broker: Broker, lake: Path, written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA", broker.bootstrap)
    loaded = {name: config.load(file) for name, file in restore(written, broker, lake).items()}
    places = {topic: dict[int, int]() for topic in TOPICS[1:]}
    for topic, place in places.items():
        assert sum(1 for _ in messages(broker.bootstrap, topic, place))

    assert ingest(spark, loaded["in"]).batches == 0
    for name, topic in zip(("once", "least"), TOPICS[1:], strict=True):
        publish(spark, loaded[name])
        assert not list(messages(broker.bootstrap, topic, places[topic])), "sent again"

    gone = json.dumps({"id": 30}).encode()
    send(broker.bootstrap, [document(1, "new"), (gone, None), document(1_000, "another")])
    assert ingest(spark, loaded["in"]).batches == 1
    for name, topic in zip(("once", "least"), TOPICS[1:], strict=True):
        publish(spark, loaded[name])
        sent = {m.key() or b"": m.value() for m in messages(broker.bootstrap, topic, places[topic])}
        assert {
            json.loads(key)["id"]: value and json.loads(value)["name"] for key, value in sent.items()
        } == {
            1: "new",
            30: None,
            1_000: "another",
        }
    for definition in loaded.values():
        assert verify(spark, definition).equal
