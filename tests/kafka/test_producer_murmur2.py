"""Keys go where Java's default partitioner puts them: by its published examples, and by librdkafka's own count."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from bridge.embedded.broker import Broker
from bridge.kafka.client_settings import producer_settings
from bridge.kafka.producer import RecordProducer, partitions_of
from bridge.kafka.records import Records
from tests.reader import messages


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
def test_librdkafka_puts_them_there(broker: Broker, unique: Callable[[str], str], partitions: int) -> None:
    topic = unique("murmur2")
    broker.create_topic(topic, partitions=partitions)
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
