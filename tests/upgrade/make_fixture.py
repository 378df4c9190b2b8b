"""Writes a table, topics and checkpoints with the code of an older commit, for `test_upgrade`.

    git worktree add ../older COMMIT
    PYTHONPATH=../older .venv/bin/python tests/upgrade/make_fixture.py tests/upgrade/written_by_COMMIT

Of the bridge it uses names that all versions have. The folder gets:

lake/          the table, and the checkpoints of an ingest, an exactly-once and an at-least-once publish
topics.jsonl   each record of each topic, in the order of its partition
groups.json    the committed offsets of each consumer group with their metadata, which hold a publish's progress
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

TOPICS = ("upgrade-in", "upgrade-once", "upgrade-least")
PARTITIONS = 2
_PIPELINE = """\
version: 1
name: upgrade-{name}
topic:
  ddl: |
    CREATE TABLE orders (id BIGINT, ref DECIMAL(20, 0), name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '${{env:KAFKA}}',
      'key.format' = 'json', 'value.format' = 'json'{options})
delta: {{path: orders}}
run: {{checkpoint: checkpoints/{name}, trigger: available-now}}
"""
_ONCE = (
    ", 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'upgrade', "
    "'sink.parallelism' = '2'"
)


def pipelines(lake: Path) -> dict[str, Path]:
    """Write the pipeline files of the ingest and both publishes into the lake, and return them by name."""
    files = {}
    for name, topic, options in zip(("in", "once", "least"), TOPICS, ("", _ONCE, ""), strict=True):
        files[name] = lake / f"{name}.yaml"
        files[name].write_text(_PIPELINE.format(name=name, topic=topic, options=options))
    return files


def document(id: int, name: str) -> tuple[bytes, bytes]:
    """Key and value of an order's record."""
    row = {"id": id, "ref": 10**19 + id, "name": name}
    return json.dumps({"id": id}).encode(), json.dumps(row).encode()


def send(bootstrap: str, records: list[tuple[bytes, bytes | None]]) -> None:
    """Send records to the ingest's topic, all of a key to one partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in records:
        producer.produce(TOPICS[0], value, key, partition=json.loads(key)["id"] % PARTITIONS)
    assert producer.flush(30) == 0


def _story(number: int) -> list[tuple[bytes, bytes | None]]:
    """Changes of forty orders: updates of all, and deletes of some."""
    written: list[tuple[bytes, bytes | None]] = [document(id, f"{number}-{id}") for id in range(40)]
    return [*written, *((json.dumps({"id": id}).encode(), None) for id in range(number, 40, 9))]


def _bytes(value: Any) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _topics(bootstrap: str, out: Path) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "dump", "enable.partition.eof": True}
    consumer = Consumer(settings)
    with out.open("w") as lines:
        for topic in TOPICS:
            for partition in range(PARTITIONS):
                consumer.assign([TopicPartition(topic, partition, 0)])
                while (message := consumer.poll(30)) is not None and not message.error():
                    place = {"topic": topic, "partition": partition, "timestamp": message.timestamp()[1]}
                    record = {"key": _bytes(message.key()), "value": _bytes(message.value())}
                    lines.write(json.dumps({**place, **record}) + "\n")
    consumer.close()


def _groups(bootstrap: str, out: Path) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = {}
    for group in admin.list_consumer_groups().result(30).valid:
        wanted = [ConsumerGroupTopicPartitions(group.group_id)]
        for request in admin.list_consumer_group_offsets(wanted).values():
            places = request.result(30).topic_partitions
            found[group.group_id] = [
                [p.topic, p.partition, p.offset, p.metadata] for p in places if p.metadata
            ]
    out.write_text(json.dumps({group: places for group, places in found.items() if places}, indent=1))


def _home(name: str, *modules: str) -> Any:
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"{name} is in none of {modules}")


def main(target: Path) -> None:
    import bridge

    broker_type = _home("Broker", "bridge.embedded.broker", "bridge.kafka.broker")
    build_session = _home("build_session", "bridge.session")
    with tempfile.TemporaryDirectory() as scratch, broker_type(Path(scratch) / "broker") as broker:
        os.environ["KAFKA"] = broker.bootstrap
        lake = Path(scratch) / "lake"
        lake.mkdir()
        files = pipelines(lake)
        for topic in TOPICS:
            broker.create_topic(topic, partitions=PARTITIONS)
        spark = build_session("fixture", master="local[2]")
        for number in range(3):
            send(broker.bootstrap, _story(number))
            bridge.ingest(spark, bridge.load(files["in"]))
            for name in ("once", "least"):
                bridge.publish(spark, bridge.load(files[name]))
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        shutil.copytree(lake, target / "lake", ignore=shutil.ignore_patterns("*.crc", "*.yaml"))
        for file in target.rglob("*.json"):  # paths of this machine are not for the repository
            file.write_text(file.read_text().replace(scratch, "/older"))
        _topics(broker.bootstrap, target / "topics.jsonl")
        _groups(broker.bootstrap, target / "groups.json")
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
