from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.definition import DeliveryGuarantee, Sink
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.sink import ProduceResult, SendTask, produce
from bridge.secret import Secret
from tests.kafka.topics import topic_of
from tests.reader import messages

Unique = Callable[[str], str]
_ROWS = "key binary, value binary, version long"


def _java_partition(key: bytes, partitions: int) -> int:
    jvm = SparkContext._jvm
    assert jvm is not None
    partitioner = jvm.org.apache.kafka.clients.producer.internals.BuiltInPartitioner
    return int(partitioner.partitionForKey(bytearray(key), partitions))


def _history(spark: SparkSession, keys: int, versions: int) -> DataFrame:
    """Each of `keys` keys once per version, shuffled; every seventh change is a delete."""
    rows = [
        (b"key-%d" % k, None if (k + v) % 7 == 0 else b"%d" % v, v)
        for k, v in itertools.product(range(keys), range(versions))
    ]
    random.Random(7).shuffle(rows)
    return spark.createDataFrame(rows, _ROWS)


def test_keys_go_where_java_puts_them(spark: SparkSession, broker: Broker, unique: Unique) -> None:
    """Murmur2 as in Java's default partitioner: for every length (it hashes four bytes at a time, and the rest), bytes
    with and without a sign bit, non-ASCII text and documents; asked of the Java client's own class."""
    name = unique("keys")
    broker.create_topic(name, partitions=7)
    dice = random.Random(42)
    keys = {b"", "ключ-鍵".encode(), b"x" * 10_000, b"\xff" * 10_003}
    keys |= {bytes([byte]) for byte in range(256)}
    keys |= {byte * n for byte in (b"\x00", b"\x7f", b"\x80", b"\xff") for n in range(1, 66)}
    keys |= {dice.randbytes(n) for n in range(1, 66) for _ in range(20)}
    keys |= {b'{"id":%d}' % i for i in range(300)}
    frame = spark.createDataFrame([(k, b"v") for k in keys], "key binary, value binary")
    assert produce(frame, topic_of(name, servers=broker.bootstrap)).records == len(keys)
    partitions = {m.key() or b"": m.partition() for m in messages(broker.bootstrap, name)}
    assert partitions == {k: _java_partition(k, 7) for k in keys}
    assert len(set(partitions.values())) == 7


def test_every_change_of_a_key_arrives_in_order(spark: SparkSession, broker: Broker, unique: Unique) -> None:
    """Unbuffered: nothing lost, nothing twice, each key's versions ascending; deletes are null values."""
    name = unique("order")
    broker.create_topic(name, partitions=3)
    topic = topic_of(name, servers=broker.bootstrap, sink=Sink(parallelism=3))
    result = produce(_history(spark, 50, 20).repartition(5), topic, order_by=["version"])
    got: dict[bytes | None, list[bytes | None]] = {}
    for message in messages(broker.bootstrap, name):
        got.setdefault(message.key(), []).append(message.value())
    expected = {
        b"key-%d" % k: [None if (k + v) % 7 == 0 else b"%d" % v for v in range(20)] for k in range(50)
    }
    assert got == expected
    values = [v for history in expected.values() for v in history]
    size = sum(len(k) * 20 for k in expected) + sum(len(v) for v in values if v is not None)
    assert result == ProduceResult(records=1000, tombstones=values.count(None), bytes=size)


@pytest.mark.parametrize(
    ("sink", "moves"),
    [(Sink(), False), (Sink(parallelism=2), True), (Sink(partitioner="fixed"), True)],
    ids=["default", "parallelism", "fixed"],
)
def test_unique_keys_are_sent_without_a_shuffle(
    spark: SparkSession, broker: Broker, unique: Unique, sink: Sink, moves: bool
) -> None:
    """To the same partitions, and without a shuffle: unless tasks are counted, or decide where a key goes."""
    name, again = unique("once"), unique("again")
    for made in (name, again):
        broker.create_topic(made, partitions=3)
    frame = _history(spark, 300, 1).repartition(5).localCheckpoint()
    done = set(spark.sparkContext.statusTracker().getJobIdsForGroup())
    spark.sparkContext.setJobGroup(name, "once")
    topic = topic_of(name, servers=broker.bootstrap, sink=sink)
    assert produce(frame, topic, order_by=["version"], unique_keys=True).records == 300
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for n in tracker.getJobIdsForGroup(name) if n not in done and (job := tracker.getJobInfo(n))]
    spark.sparkContext._jsc.clearJobGroup()
    assert (sum(len(job.stageIds) for job in jobs) > 1) is moves
    produce(frame, replace(topic, names=(again,)), order_by=["version"])
    assert _places(broker, name) == _places(broker, again)


def _places(broker: Broker, topic: str) -> dict[bytes | None, int | None]:
    return {message.key(): message.partition() for message in messages(broker.bootstrap, topic)}


def test_a_buffer_sends_the_last_change_of_each_key(
    spark: SparkSession, broker: Broker, unique: Unique
) -> None:
    name = unique("buffered")
    broker.create_topic(name, partitions=3)
    sink = Sink(buffer_rows=10_000, buffer_interval_ms=600_000)
    result = produce(
        _history(spark, 50, 20),
        topic_of(name, servers=broker.bootstrap, sink=sink),
        order_by=["version"],
    )
    got = [(m.key(), m.value()) for m in messages(broker.bootstrap, name)]
    assert dict(got) == {b"key-%d" % k: None if (k + 19) % 7 == 0 else b"19" for k in range(50)}
    assert len(got) == result.records == 50


def test_metadata_is_written(spark: SparkSession, broker: Broker, unique: Unique) -> None:
    """Timestamps to the millisecond, headers (those without a name are left out), and the topic, each null or not."""
    one, two = unique("one"), unique("two")
    broker.create_topic(one)
    broker.create_topic(two)
    at = dt.datetime(2024, 2, 29, 12, 0, 0, 123_999, tzinfo=dt.timezone.utc)
    frame = spark.createDataFrame(
        [
            (b"a", b"1", at, [("h", b"x"), None, (None, b"y"), ("n", None)], one),
            (b"b", b"2", None, None, two),
        ],
        "key binary, value binary, timestamp timestamp, headers array<struct<key: string, value: binary>>, "
        "topic string",
    )
    topic = topic_of(one, two, servers=broker.bootstrap)
    assert produce(frame, topic).records == 2
    (first,), (second,) = messages(broker.bootstrap, one), messages(broker.bootstrap, two)
    assert first.timestamp() == (1, int(at.timestamp()) * 1000 + 123)
    assert first.headers() == [("h", b"x"), ("n", None)]
    assert abs(second.timestamp()[1] / 1000 - dt.datetime.now().timestamp()) < 600
    assert second.headers() is None
    other = unique("other")
    broker.create_topic(other)
    allowed = rf"Expected topic to be in: \[{one}, {other}\] but was: {two}"
    with pytest.raises(KafkaError, match=f"The topic of the sink record is not valid. {allowed}"):
        produce(frame, topic_of(one, other, servers=broker.bootstrap))
    pattern = topic_of(servers=broker.bootstrap, pattern=f"{one}.*")
    with pytest.raises(KafkaError, match=rf"Expected topic to match: {one}\.\* but was: {two}"):
        produce(frame, pattern)
    assert produce(frame.where("key = X'61'"), pattern).records == 1
    nobody = frame.withColumn("topic", F.lit(None).cast("string"))
    with pytest.raises(KafkaError, match="but was: null"):
        produce(nobody, pattern)
    assert produce(nobody, topic_of(one, servers=broker.bootstrap)).records == 2


def test_records_without_a_key_format_are_sent_too(
    spark: SparkSession, broker: Broker, unique: Unique
) -> None:
    name = unique("append")
    broker.create_topic(name)
    frame = spark.range(10).selectExpr(
        "CAST(NULL AS BINARY) AS key", "CAST(CAST(id AS STRING) AS BINARY) AS value"
    )
    topic = topic_of(name, servers=broker.bootstrap, keyed=False, sink=Sink(parallelism=1))
    assert produce(frame, topic) == ProduceResult(records=10, tombstones=0, bytes=10)
    records = list(messages(broker.bootstrap, name))
    assert sorted((m.key(), m.value()) for m in records) == [(None, b"%d" % i) for i in range(10)]


def test_nothing_to_send_is_nothing_sent(spark: SparkSession, broker: Broker, unique: Unique) -> None:
    name = unique("empty")
    broker.create_topic(name)
    empty = spark.createDataFrame([], _ROWS)
    assert produce(empty, topic_of(name, servers=broker.bootstrap)) == ProduceResult()


def test_what_the_broker_refuses_fails_the_batch(spark: SparkSession, broker: Broker, unique: Unique) -> None:
    """Topic, partition and reason reach the caller, the payload does not; `none` counts instead."""
    name = unique("limited")
    broker.create_topic(name, config={"max.message.bytes": "1000"})
    frame = spark.createDataFrame(
        [(b"k", random.Random(1).randbytes(5000)), (b"l", b"v")], "key binary, value binary"
    )
    with pytest.raises(KafkaError, match=f"^{name}-0 did not take a record: MSG_SIZE_TOO_LARGE"):
        produce(frame, topic_of(name, servers=broker.bootstrap))
    loose = Sink(delivery_guarantee=DeliveryGuarantee.NONE)
    result = produce(frame, topic_of(name, servers=broker.bootstrap, sink=loose))
    assert (result.records, result.lost >= 1) == (2, True)


def test_a_task_shows_no_secret() -> None:
    task = SendTask({"sasl.password": Secret("hunter2").reveal()}, ArrowRecords(("t",)), True, 0, 0)
    assert "hunter2" not in repr(task)
