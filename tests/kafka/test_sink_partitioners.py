"""`sink.partitioner` on a real broker: an independent consumer reads the partitions of records."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from bridge.definition import Sink
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka.client_settings import producer_settings
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import Records
from bridge.kafka.sink import produce
from bridge.partitioners import opened
from tests.kafka.topics import topic_of
from tests.reader import messages

Unique = Callable[[str], str]
ROUTES = """
from bridge.partitioners import Partitioner

class Routes(Partitioner):
    def open(self, parallel_instance_id, parallel_instances):
        self.tasks = parallel_instances

    def partition(self, key, value, topic, partitions):
        assert self.tasks == 3
        if value == b"astray":
            return 99
        return partitions[-1] if value is None else partitions[int(key) % 2]
"""


def test_fixed_fills_one_partition_per_task(spark: SparkSession, broker: Broker, unique: Unique) -> None:
    name = unique("fixed")
    broker.create_topic(name, partitions=3)
    frame = spark.range(0, 300, numPartitions=2).selectExpr(
        "CAST(NULL AS BINARY) AS key", "CAST(CAST(id AS STRING) AS BINARY) AS value"
    )
    sink = Sink(parallelism=2, partitioner="fixed")
    topic = topic_of(name, servers=broker.bootstrap, keyed=False, sink=sink)
    assert produce(frame, topic).records == 300
    records = list(messages(broker.bootstrap, name))
    counts = [sum(m.partition() == p for m in records) for p in range(3)]
    assert counts == [150, 150, 0]


def test_round_robin_changes_partitions_over_time(broker: Broker, unique: Unique) -> None:
    """Sticky as Kafka's default for records without keys: librdkafka chooses another partition every 10 ms, once it
    has the metadata of all; until then it delays records, or knows only some partitions."""
    name = unique("spread")
    broker.create_topic(name, partitions=3)
    settings = producer_settings({"bootstrap.servers": broker.bootstrap}, checked=True)
    with RecordProducer(settings, partitioner=opened("round-robin", 0, 1)) as writer:
        deadline, partitions = time.monotonic() + 30, set[int | None]()
        while partitions != {0, 1, 2} and time.monotonic() < deadline:
            for _ in range(40):
                writer.send(Records([name], [None], [b"v"]))
                time.sleep(0.012)
            writer.flush()
            partitions = {m.partition() for m in messages(broker.bootstrap, name)}
    assert partitions == {0, 1, 2}


def test_a_user_defined_class(spark: SparkSession, broker: Broker, unique: Unique, tmp_path: Path) -> None:
    """It is added as --py-files does, and is called with key, value and topic of every record."""
    name, module = unique("own"), f"routes_{tmp_path.name}".replace("-", "_")
    broker.create_topic(name, partitions=3)
    (tmp_path / f"{module}.py").write_text(ROUTES)
    context = SparkContext._active_spark_context
    assert context is not None
    context.addPyFile(str(tmp_path / f"{module}.py"))
    sink = Sink(parallelism=3, partitioner=f"{module}:Routes")
    rows = [(b"%d" % i, None if i % 5 == 0 else b"v") for i in range(20)]
    frame = spark.createDataFrame(rows, "key binary, value binary")
    topic = topic_of(name, servers=broker.bootstrap, sink=sink)
    assert produce(frame, topic).records == 20
    partitions = {m.key(): m.partition() for m in messages(broker.bootstrap, name)}
    assert partitions == {b"%d" % i: 2 if i % 5 == 0 else i % 2 for i in range(20)}
    astray = spark.createDataFrame([(b"1", b"astray")], "key binary, value binary")
    message = rf"^partitioner class '{module}:Routes' returned 99 for topic '{name}'; legal are 0 to 2$"
    with pytest.raises(KafkaError, match=message):
        produce(astray, topic)


def test_a_producer_without_spark_partitions_records_with_headers_and_full_buffers(
    broker: Broker, unique: Unique
) -> None:
    name = unique("writer")
    broker.create_topic(name, partitions=4)
    user = {"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": "2", "linger.ms": "0"}
    settings = producer_settings(user, checked=True)
    records = Records([name] * 20, [b"k"] * 20, [b"v"] * 20, headers=[[("h", b"x")]] * 20)
    with RecordProducer(settings, partitioner=opened("fixed", 6, 7)) as writer:
        writer.send(records)
    received = list(messages(broker.bootstrap, name))
    assert [(m.partition(), m.headers()) for m in received] == [(2, [("h", b"x")])] * 20


def test_a_missing_topic_is_an_error(broker: Broker) -> None:
    settings = producer_settings({"bootstrap.servers": broker.bootstrap}, checked=True)
    refused = pytest.raises(
        KafkaError, match="the partitions of 'nowhere' are not known: UNKNOWN_TOPIC_OR_PART"
    )
    with refused, RecordProducer(settings, partitioner=opened("fixed", 0, 1)) as writer:
        writer.send(Records(["nowhere"], [b"k"], [b"v"]))
