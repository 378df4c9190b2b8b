from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from bridge.definition import Topic
from bridge.embedded.broker import Broker
from bridge.kafka import admin, source
from bridge.offsets import Offsets
from tests.kafka.topics import Fresh, Unique, send, topic_of, transaction


def _values(frame: DataFrame) -> list[bytes]:
    rows = frame.select("partition", "offset", "value").collect()
    return [bytes(r.value) for r in sorted(rows)]


def _everything(spark: SparkSession, topic: Topic) -> DataFrame:
    state = admin.describe(topic)
    return source.read(spark, topic, state.earliest, state.end)


def test_a_record_is_read_complete(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    """The columns are those documented; null, empty and binary payloads, headers and the timestamp are preserved."""
    name = fresh("whole")
    send(broker.bootstrap, name, [(b"\xff\x00", b"")], timestamp=1_700_000_000_123, headers=[("h", b"\x01")])
    send(broker.bootstrap, name, [(b"k", None)])
    frame = _everything(spark, topic_of(name, servers=broker.bootstrap))
    assert frame.schema == spark.createDataFrame([], source.RECORDS).schema
    first, second = frame.sort("offset").collect()
    assert (bytes(first.key), bytes(first.value), first.topic, first.partition) == (b"\xff\x00", b"", name, 0)
    assert [(h.key, bytes(h.value)) for h in first.headers] == [("h", b"\x01")]
    assert (first.offset, second.offset, second.value, second.headers) == (0, 1, None, None)
    millis = frame.selectExpr("unix_millis(timestamp) AS at", "timestampType").first()
    assert millis is not None
    assert tuple(millis) == (1_700_000_000_123, 0)


@pytest.mark.parametrize("parallelism", [None, 3])
def test_batches_end_by_position(
    spark: SparkSession, fresh: Fresh, broker: Broker, parallelism: int | None
) -> None:
    """Committed records are read, aborted ones are not; markers and aborts at the end do not block the read."""
    name = fresh("txn")
    topic = topic_of(name, servers=broker.bootstrap, parallelism=parallelism)
    assert _values(_everything(spark, topic)) == []
    transaction(broker.bootstrap, name, [b"a1", b"a2"], commit=False)
    assert admin.describe(topic).end == Offsets({(name, 0): 3})
    assert _values(_everything(spark, topic)) == []
    transaction(broker.bootstrap, name, [b"1", b"2", b"3"], commit=True)
    assert _values(_everything(spark, topic)) == [b"1", b"2", b"3"]
    transaction(broker.bootstrap, name, [b"a3"], commit=False)
    state = admin.describe(topic)
    assert _values(source.read(spark, topic, state.earliest, state.end)) == [b"1", b"2", b"3"]
    assert _values(source.read(spark, topic, Offsets({(name, 0): 4}), state.end)) == [b"2", b"3"]
    assert _values(source.read(spark, topic, Offsets({(name, 0): 7}), state.end)) == []


def test_aborted_records_are_read_when_asked_for(spark: SparkSession, fresh: Fresh, broker: Broker) -> None:
    name = fresh("dirty")
    transaction(broker.bootstrap, name, [b"a"], commit=False)
    loose = topic_of(name, servers=broker.bootstrap, properties={"isolation.level": "read_uncommitted"})
    assert _values(_everything(spark, loose)) == [b"a"]


def test_only_the_partitions_of_the_end_are_read(spark: SparkSession, broker: Broker, unique: Unique) -> None:
    """Empty ranges give nothing, absent starts mean the earliest, and several topics are one frame."""
    one, two = unique("one"), unique("two")
    broker.create_topic(one, partitions=2)
    broker.create_topic(two)
    for partition in (0, 1):
        send(broker.bootstrap, one, [(b"k", b"%d" % partition)], partition=partition)
    send(broker.bootstrap, two, [(b"k", b"2")])
    topic = topic_of(one, two, servers=broker.bootstrap)
    assert _values(source.read(spark, topic, Offsets(), Offsets({(one, 1): 1, (two, 0): 1}))) in (
        [b"2", b"1"],
        [b"1", b"2"],
    )
    nothing = source.read(spark, topic, Offsets({(one, 0): 1}), Offsets({(one, 0): 1}))
    assert nothing.schema == _everything(spark, topic).schema
    assert nothing.count() == 0


def test_deleted_offsets_fail_the_job_and_are_never_skipped(
    spark: SparkSession, fresh: Fresh, broker: Broker
) -> None:
    name = fresh("expired")
    send(broker.bootstrap, name, [(b"k", b"%d" % i) for i in range(4)])
    topic = topic_of(name, servers=broker.bootstrap)
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in client.delete_records([TopicPartition(name, 0, 2)]).values():
        future.result()
    state = admin.describe(topic)
    assert state.earliest == Offsets({(name, 0): 2})
    assert _values(source.read(spark, topic, state.earliest, state.end)) == [b"2", b"3"]
    with pytest.raises(Py4JJavaError, match=r"(?i)data may have been lost|missing offsets|out of range"):
        source.read(spark, topic, Offsets({(name, 0): 0}), state.end).collect()


@pytest.mark.parametrize("discovery", [300_000, 0])
def test_streams_read_new_partitions_unless_discovery_is_off(
    spark: SparkSession, fresh: Fresh, broker: Broker, tmp_path: object, discovery: int
) -> None:
    """A stream starts at its offsets, respects its limit, and reads added partitions from their earliest offset."""
    name = fresh("stream")
    send(broker.bootstrap, name, [(b"k", b"%d" % i) for i in range(4)])
    topic = topic_of(name, servers=broker.bootstrap, discovery_interval_ms=discovery)
    sizes: list[int] = []
    seen: list[bytes] = []

    def take(frame: DataFrame, batch: int) -> None:
        rows = _values(frame)
        sizes.append(len(rows))
        seen.extend(rows)

    frame = source.stream(spark, topic, Offsets({(name, 0): 1}), max_offsets=2)
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        assert (seen, max(sizes)) == ([b"1", b"2", b"3"], 2)
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in client.create_partitions([NewPartitions(name, 2)]).values():
            future.result()
        send(broker.bootstrap, name, [(b"k", b"new")], partition=1)
        send(broker.bootstrap, name, [(b"k", b"old")], partition=0)
        query.processAllAvailable()
        assert sorted(seen[3:]) == ([b"new", b"old"] if discovery else [b"old"])
    finally:
        query.stop()
