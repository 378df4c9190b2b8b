"""

Keys go where Java's default partitioner puts them: by its published examples, and by librdkafka's own count.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.kafka.client_settings import producer_settings
from bridge.kafka.producer import RecordProducer, partitions_of
from bridge.kafka.records import Records, SendCounts
from tests.kafka.topics import Fresh
from tests.reader import messages


@pytest.mark.parametrize(
    ("user", "checked", "idempotent"),
    [
        ({}, True, "true"),
        ({"acks": "-1"}, True, "true"),
        ({"acks": "1"}, True, "false"),
        ({"enable.idempotence": "false"}, True, "false"),
        ({}, False, "false"),
    ],
)
def test_order_holds_with_and_without_idempotence(
    user: dict[str, str], checked: bool, idempotent: str
) -> None:
    """Without idempotence one request at a time prevents that retries reorder records."""
    made = producer_settings(user, checked=checked)
    assert made["enable.idempotence"] == idempotent
    assert (made.get("max.in.flight.requests.per.connection") == "1") == (idempotent == "false")
    assert made["partitioner"] == "murmur2_random"


def test_a_small_buffer_only_slows_down(fresh: Fresh, broker: Broker) -> None:
    """With room for two records at a time every record still arrives, in order."""
    name = fresh("narrow")
    user = {"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": "2", "linger.ms": "0"}
    with RecordProducer(producer_settings(user, checked=True)) as writer:
        writer.send(Records([name] * 50, [b"k"] * 50, [b"%d" % i for i in range(50)]))
    assert [m.value() for m in messages(broker.bootstrap, name)] == [b"%d" % i for i in range(50)]
    assert writer.counts == SendCounts(records=50, tombstones=0, bytes=140, lost=0)


@pytest.mark.parametrize("checked", [True, False])
def test_a_failed_delivery_is_an_error_or_a_count(fresh: Fresh, broker: Broker, checked: bool) -> None:
    """The broker refuses records over the topic's limit: an error without payload, or a lost record."""
    name = fresh("limited", config={"max.message.bytes": "1000"})
    user = {"bootstrap.servers": broker.bootstrap, "compression.type": "none"}
    settings = producer_settings(user, checked=checked)
    records = Records([name], [b"k"], [bytes(range(256)) * 40])
    if checked:
        refused = pytest.raises(KafkaError, match=f"{name}-0 did not take a record: MSG_SIZE_TOO_LARGE")
        with refused, RecordProducer(settings) as writer:
            writer.send(records)
    else:
        with RecordProducer(settings, checked=False) as writer:
            writer.send(records)
        assert (writer.counts.records, writer.counts.lost) == (1, 1)


def test_a_record_too_large_for_the_client_is_named_by_hash(fresh: Fresh, broker: Broker) -> None:
    name = fresh("huge")
    settings = producer_settings({"bootstrap.servers": broker.bootstrap}, checked=True)
    refused = pytest.raises(KafkaError, match=r"2000006 bytes .*SHA-256 begins 2bb80d53.*max\.request\.size")
    with refused, RecordProducer(settings) as writer:
        writer.send(Records([name], [b"secret"], [b"x" * 2_000_000]))


def test_no_record_of_a_failed_attempt_is_sent_later(fresh: Fresh, broker: Broker) -> None:
    """Leaving by an exception throws away what is queued."""
    name = fresh("dropped")
    user = {"bootstrap.servers": broker.bootstrap, "linger.ms": "60000"}
    writer = RecordProducer(producer_settings(user, checked=True))

    def fail_half_way() -> None:
        with writer:
            writer.send(Records([name], [b"k"], [b"v"]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert list(messages(broker.bootstrap, name)) == []


@pytest.mark.parametrize("timestamp", [0, -1])
def test_times_that_kafka_cannot_store_are_refused(timestamp: int) -> None:
    """librdkafka would write the present time instead."""
    settings = producer_settings({"bootstrap.servers": "127.0.0.1:9"}, checked=True)
    with pytest.raises(KafkaError, match="timestamp not after 1970"), RecordProducer(settings) as writer:
        writer.send(Records(["t"], [b"k"], [b"v"], timestamps=[timestamp]))


def test_a_missing_broker_is_an_error_with_the_reason() -> None:
    user = {"bootstrap.servers": "127.0.0.1:9", "delivery.timeout.ms": "1500"}
    refused = pytest.raises(KafkaError, match=r"_MSG_TIMED_OUT.*Connection refused")
    with refused, RecordProducer(producer_settings(user, checked=True)) as writer:
        writer.send(Records(["t"], [b"k"], [b"v"]))


def _slow(key: bytes) -> int:
    """As the Java documentation of the algorithm describes it, byte by byte."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(key)) & mask
    for i in range(0, len(key) - 3, 4):
        k = int.from_bytes(key[i : i + 4], "little") * m & mask
        k ^= k >> 24
        h = (h * m & mask) ^ (k * m & mask)
    tail = key[len(key) & ~3 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h ^= h >> 13
    h = h * m & mask
    return h ^ h >> 15


def test_the_values_of_kafka_s_own_tests() -> None:
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, hashed in hashes.items():
        for count in (1, 7, 2**20 + 7):
            assert partitions_of([key], count) == [(hashed & 0x7FFFFFFF) % count]


def test_any_keys_of_any_lengths() -> None:
    dice = random.Random(7)
    keys = [dice.randbytes(dice.choice([0, 1, 2, 3, 4, 5, 7, 8, 31, 300])) for _ in range(2000)]
    assert partitions_of(keys, 101) == [(_slow(k) & 0x7FFFFFFF) % 101 for k in keys]
    assert partitions_of(keys[:1], 101) == partitions_of(keys, 101)[:1]


def test_null_keys_and_unknown_topics_go_anywhere() -> None:
    assert partitions_of([None, b"k", None], 5)[::2] == [-1, -1]
    assert partitions_of([None, None], 5) == [-1, -1]
    assert partitions_of([], 5) == []
    assert partitions_of([b"k", b"k", b"k", None], [0, 1, 7, 7]) == [-1, 0, partitions_of([b"k"], 7)[0], -1]


@pytest.mark.parametrize("partitions", [1, 6])
def test_librdkafka_puts_them_there(fresh: Fresh, broker: Broker, partitions: int) -> None:
    topic = fresh("murmur2", partitions=partitions)
    keys: list[bytes | None] = [b"", b"\0", *(b"%d" % n**3 for n in range(50))]
    with RecordProducer(producer_settings({"bootstrap.servers": broker.bootstrap}, checked=True)) as writer:
        writer.send(Records([topic] * len(keys), keys, [b"v"] * len(keys)))
    actual = {m.key() or b"": m.partition() for m in messages(broker.bootstrap, topic)}
    assert [actual[k or b""] for k in keys] == partitions_of(keys, partitions)


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary()])
def test_keys_in_arrow(type: pa.DataType) -> None:
    """A part of a column, too, whose bytes begin somewhere."""
    keys = [b"first", None, b"", b"21", b"foobar", b"a-little-bit-long-string", None, b"last"]
    column = pa.array(keys, type)
    for begin, end in ((0, 8), (2, 6), (7, 8), (3, 3)):
        assert partitions_of(column[begin:end], 5) == partitions_of(keys[begin:end], 5)
