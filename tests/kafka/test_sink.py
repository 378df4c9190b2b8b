"""

A stopped process is detected at once; a busy or waiting one is not.

What the driver sends by itself: records like those of tasks, with the same waits and errors.

`sink.partitioner` on a real broker: an independent consumer reads the partitions of records.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.arrow_formats.base import RowColumns
from bridge.arrow_formats.record_encoder import RETRACTS, RecordEncoder
from bridge.definition import DeliveryGuarantee, Sink
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka.arrow_records import ArrowRecords
from bridge.kafka.client_settings import producer_settings
from bridge.kafka.producer import RecordProducer, partitions_of
from bridge.kafka.records import Records, SendCounts
from bridge.kafka.sink import SendTask, produce, produce_in_driver
from bridge.partitioners import opened
from bridge.secret import Secret
from tests.kafka.topics import Fresh, Unique, topic_of
from tests.reader import messages

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


def test_keys_go_where_java_puts_them(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    """Murmur2 as in Java's default partitioner: for every length (it hashes four bytes at a time, and the rest), bytes
    with and without a sign bit, non-ASCII text and documents; asked of the Java client's own class."""
    name = fresh("keys", partitions=7)
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


def test_every_change_of_a_key_arrives_in_order(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    """Unbuffered: nothing lost, nothing twice, each key's versions ascending; deletes are null values."""
    name = fresh("order", partitions=3)
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
    assert result == SendCounts(records=1000, tombstones=values.count(None), bytes=size)


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
    spark: SparkSession, fresh: Fresh, broker: Broker
) -> None:
    name = fresh("buffered", partitions=3)
    sink = Sink(buffer_rows=10_000, buffer_interval_ms=600_000)
    result = produce(
        _history(spark, 50, 20),
        topic_of(name, servers=broker.bootstrap, sink=sink),
        order_by=["version"],
    )
    got = [(m.key(), m.value()) for m in messages(broker.bootstrap, name)]
    assert dict(got) == {b"key-%d" % k: None if (k + 19) % 7 == 0 else b"19" for k in range(50)}
    assert len(got) == result.records == 50


def test_metadata_is_written(spark: SparkSession, fresh: Fresh, broker: Broker, unique: Unique) -> None:
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
    other = fresh("other")
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


def test_records_without_a_key_format_are_sent_too(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    name = fresh("append")
    frame = spark.range(10).selectExpr(
        "CAST(NULL AS BINARY) AS key", "CAST(CAST(id AS STRING) AS BINARY) AS value"
    )
    topic = topic_of(name, servers=broker.bootstrap, keyed=False, sink=Sink(parallelism=1))
    assert produce(frame, topic) == SendCounts(records=10, tombstones=0, bytes=10)
    records = list(messages(broker.bootstrap, name))
    assert sorted((m.key(), m.value()) for m in records) == [(None, b"%d" % i) for i in range(10)]


def test_nothing_to_send_is_nothing_sent(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    name = fresh("empty")
    empty = spark.createDataFrame([], _ROWS)
    assert produce(empty, topic_of(name, servers=broker.bootstrap)) == SendCounts()


def test_what_the_broker_refuses_fails_the_batch(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    """Topic, partition and reason reach the caller, the payload does not; `none` counts instead."""
    name = fresh("limited", config={"max.message.bytes": "1000"})
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


_PROGRAM = """
import sys, time
from bridge.errors import ConcurrentRunError
from bridge.kafka.sink import StallDetector
with StallDetector(patience=2.0) as detector:
    for _ in range(5):
        {work}
        detector.check()
    print("begun", flush=True)
    sys.stdin.readline()
    try:
        detector.check()
    except ConcurrentRunError as error:
        print(error)
"""


@pytest.mark.parametrize("work", ["time.sleep(0.1)", "sum(range(10**6))"])
@pytest.mark.parametrize("stopped", [True, False])
def test_only_a_stopped_process_is_detected(stopped: bool, work: str) -> None:
    command = [sys.executable, "-c", _PROGRAM.format(work=work)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        if stopped:
            process.send_signal(signal.SIGSTOP)
            time.sleep(2.1)
            process.send_signal(signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.close()
        output = process.stdout.read()
    assert bool(re.match(r"a task that sends records stood still for \d+ s", output)) == stopped, output


_MANY_THREADS = """
import sys, threading, time
from bridge.kafka.sink import StallDetector
until = time.monotonic() + float(sys.argv[1])
def work():
    while time.monotonic() < until:
        sum(range(10**4))
with StallDetector() as detector:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    checks = 0
    while time.monotonic() < until:
        detector.check()
        checks += 1
print("checked" if checks else "never checked")
"""


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_that_compute_are_no_stall(seconds: float) -> None:
    command = [sys.executable, "-c", _MANY_THREADS, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    assert (done.stdout, done.stderr) == ("checked\n", "")


@dataclass(frozen=True)
class Plain:
    """Documents that are the values of a column."""

    columns: tuple[str, ...]
    as_texts: frozenset[str] = frozenset()

    def encode(self, rows: RowColumns) -> pa.Array:
        return rows.columns[self.columns[0]]


ENCODER = RecordEncoder(Plain(("k",)), Plain(("v",)))


def rows(records: list[tuple[bytes, bytes, bool]]) -> pa.Table:
    keys, values, retracts = zip(*records, strict=True) if records else ((), (), ())
    types = {ENCODER.sources["k"]: pa.binary(), ENCODER.sources["v"]: pa.binary(), RETRACTS: pa.bool_()}
    return pa.table(
        [
            pa.array(column, type)
            for column, type in zip((keys, values, retracts), types.values(), strict=True)
        ],
        names=list(types),
    )


def test_records_and_tombstones(fresh: Fresh, broker: Broker) -> None:
    name = fresh("driver", partitions=5)
    topic = topic_of(name, servers=broker.bootstrap)
    keys = [b"k%d" % n for n in range(40)]
    given = rows([(key, b"v", key.endswith(b"7")) for key in keys])
    parts = pa.concat_tables([given.slice(0, 13), given.slice(13)])
    assert parts[RETRACTS].num_chunks == 2
    assert produce_in_driver(parts, topic, ENCODER) == SendCounts(40, 4, sum(map(len, keys)) + 36, 0)
    found = {m.key(): (m.value(), m.partition()) for m in messages(broker.bootstrap, name)}
    at = dict(zip(keys, partitions_of(keys, 5), strict=True))
    assert found == {key: (None if key.endswith(b"7") else b"v", at[key]) for key in keys}


def test_no_records(fresh: Fresh, broker: Broker) -> None:
    name = fresh("driver")
    topic = topic_of(name, servers=broker.bootstrap)
    assert produce_in_driver(rows([]), topic, ENCODER) == SendCounts()


def test_a_buffer_has_the_last_record_of_a_key(fresh: Fresh, broker: Broker) -> None:
    name = fresh("driver")
    sink = Sink(buffer_rows=100, buffer_interval_ms=600_000)
    topic = topic_of(name, servers=broker.bootstrap, sink=sink)
    assert produce_in_driver(rows([(b"k", b"1", False), (b"k", b"2", False)]), topic, ENCODER).records == 1
    assert [m.value() for m in messages(broker.bootstrap, name)] == [b"2"]


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.NONE])
def test_a_record_that_the_broker_refuses(fresh: Fresh, broker: Broker, guarantee: DeliveryGuarantee) -> None:
    name = fresh("driver", config={"max.message.bytes": "1000"})
    sink = Sink(delivery_guarantee=guarantee)
    topic = topic_of(name, servers=broker.bootstrap, sink=sink)
    large = rows([(b"k", random.Random(1).randbytes(5000), False), (b"j", b"y", False)])
    if guarantee is DeliveryGuarantee.NONE:
        assert produce_in_driver(large, topic, ENCODER).lost >= 1
    else:
        with pytest.raises(KafkaError, match=rf"{name}-0 did not take a record: .*too large") as refused:
            produce_in_driver(large, topic, ENCODER)
        assert len(str(refused.value)) < 500
    again = replace(topic, properties={**topic.properties, "linger.ms": "0"})
    assert produce_in_driver(rows([(b"j", b"y", False)]), again, ENCODER).records == 1


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


def test_fixed_fills_one_partition_per_task(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    name = fresh("fixed", partitions=3)
    frame = spark.range(0, 300, numPartitions=2).selectExpr(
        "CAST(NULL AS BINARY) AS key", "CAST(CAST(id AS STRING) AS BINARY) AS value"
    )
    sink = Sink(parallelism=2, partitioner="fixed")
    topic = topic_of(name, servers=broker.bootstrap, keyed=False, sink=sink)
    assert produce(frame, topic).records == 300
    records = list(messages(broker.bootstrap, name))
    counts = [sum(m.partition() == p for m in records) for p in range(3)]
    assert counts == [150, 150, 0]


def test_round_robin_changes_partitions_over_time(fresh: Fresh, broker: Broker) -> None:
    """Sticky as Kafka's default for records without keys: librdkafka chooses another partition every 10 ms, once it
    has the metadata of all; until then it delays records, or knows only some partitions."""
    name = fresh("spread", partitions=3)
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
    fresh: Fresh, broker: Broker
) -> None:
    name = fresh("writer", partitions=4)
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
