from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.embedded.broker import Broker
from bridge.errors import GapError, KafkaError
from bridge.kafka.client_settings import for_consumer
from bridge.kafka.range_consumer import close_consumers, read_ranges
from bridge.kafka.range_parts import LatestValues, PartitionRange
from tests.kafka.topics import Fresh, send, topic_of, transaction


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    close_consumers()


def read(
    broker: Broker,
    *ranges: PartitionRange,
    limit_bytes: int = 1 << 20,
    timeout: float = 20.0,
    properties: dict[str, str] | None = None,
) -> list[LatestValues]:
    return read_to(broker, *ranges, limit_bytes=limit_bytes, timeout=timeout, properties=properties)[0]


def read_to(
    broker: Broker,
    *ranges: PartitionRange,
    limit_bytes: int = 1 << 20,
    timeout: float = 20.0,
    properties: dict[str, str] | None = None,
) -> tuple[list[LatestValues], list[int]]:
    """The parts, and where each of them ends."""
    settings: dict[str, Any] = for_consumer(
        topic_of(ranges[0].topic, servers=broker.bootstrap, properties=properties)
    )
    parts = [LatestValues(each) for each in ranges]
    return parts, read_ranges(settings, parts, timeout=timeout, limit_bytes=limit_bytes)


def values(parts: list[LatestValues]) -> list[dict[bytes | None, bytes | None]]:
    return [of(part) for part in parts]


def of(part: LatestValues) -> dict[bytes | None, bytes | None]:
    return {key: message.value() for key, message in part.records.items()}


def test_the_last_value_of_each_key_is_kept(fresh: Fresh, broker: Broker) -> None:
    """Null, empty and binary keys and values are kept as they are; every record counts."""
    name = fresh("latest")
    records = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None), (None, b""), (b"\xff", b"\x00")]
    send(broker.bootstrap, name, records)
    (part,) = read(broker, PartitionRange(name, 0, 0, 6)) or []
    assert of(part) == {b"a": b"2", b"b": None, None: b"", b"\xff": b"\x00"}
    assert part.read.records == 6 and part.range == PartitionRange(name, 0, 0, 6)


def test_a_range_ends_before_its_end_and_the_next_goes_on_there(fresh: Fresh, broker: Broker) -> None:
    name = fresh("next")
    send(broker.bootstrap, name, [(b"k%d" % n, b"%d" % n) for n in range(100)])
    for start, end in ((0, 7), (7, 8), (8, 60), (20, 30), (60, 100)):
        (part,) = read(broker, PartitionRange(name, 0, start, end)) or []
        assert of(part) == {b"k%d" % n: b"%d" % n for n in range(start, end)}
        assert part.read.records == end - start
    send(broker.bootstrap, name, [(b"later", b"x")])
    assert values(read(broker, PartitionRange(name, 0, 100, 101))) == [{b"later": b"x"}]


@pytest.mark.parametrize("partitions", [3, 6])
def test_the_ranges_of_a_task_are_returned_in_their_order(
    fresh: Fresh, broker: Broker, partitions: int
) -> None:
    """Few partitions have a consumer each, more share one: the result is the same."""
    name = fresh("several", partitions=partitions)
    for partition in range(partitions):
        send(broker.bootstrap, name, [(b"k%d" % n, b"%d" % partition) for n in range(9)], partition=partition)
    for start, end in ((0, 4), (4, 9)):
        ranges = [PartitionRange(name, p, start, end) for p in reversed(range(partitions))]
        expected = [{b"k%d" % n: b"%d" % r.partition for n in range(start, end)} for r in ranges]
        assert values(read(broker, *ranges)) == expected


def test_a_range_ends_by_position(fresh: Fresh, broker: Broker) -> None:
    """Transaction markers and aborted records are neither returned nor waited for, wherever the range is cut."""
    name = fresh("txn")
    transaction(broker.bootstrap, name, [b"a1", b"a2"], commit=False)  # offsets 0 to 2
    transaction(broker.bootstrap, name, [b"1", b"2"], commit=True)  # 3 to 5
    transaction(broker.bootstrap, name, [b"a3"], commit=False)  # 6 and 7
    expected = {(0, 3): {}, (3, 6): {b"k": b"2"}, (6, 8): {}, (0, 8): {b"k": b"2"}, (3, 4): {b"k": b"1"}}
    for (start, end), latest in expected.items():
        assert values(read(broker, PartitionRange(name, 0, start, end))) == [latest]
    dirty = read(broker, PartitionRange(name, 0, 6, 8), properties={"isolation.level": "read_uncommitted"})
    assert values(dirty) == [{b"k": b"a3"}]


def test_records_that_are_gone_are_a_gap(fresh: Fresh, broker: Broker) -> None:
    name = fresh("gone", config={"cleanup.policy": "delete"})
    send(broker.bootstrap, name, [(b"k", b"v")] * 9)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(name, 0, 5)]).values():
        future.result()
    with pytest.raises(GapError, match=rf"{name}-0 from offset 2 on is no longer available: "):
        read(broker, PartitionRange(name, 0, 2, 9))
    assert values(read(broker, PartitionRange(name, 0, 5, 9))) == [{b"k": b"v"}]


def test_a_partition_that_does_not_exist_is_a_gap(fresh: Fresh, broker: Broker) -> None:
    name = fresh("none")
    with pytest.raises(GapError, match=rf"{name}-7: the partition no longer exists: "):
        read(broker, PartitionRange(name, 7, 0, 1), timeout=1.0)


def test_a_range_that_never_ends_is_an_error_that_says_what_to_check(fresh: Fresh, broker: Broker) -> None:
    name = fresh("silent")
    with pytest.raises(
        KafkaError, match=rf"{name}-0 cannot be read: no record within 1 s.*Spark's executors reach"
    ):
        read(broker, PartitionRange(name, 0, 0, 1), timeout=1.0)


def test_reading_stops_where_the_values_take_too_much(fresh: Fresh, broker: Broker) -> None:
    """Superseded values do not count. The next range goes on there, and no record is read twice."""
    name = fresh("large")
    send(broker.bootstrap, name, [(b"same", b"x" * 1000)] * 50)
    assert values(read(broker, PartitionRange(name, 0, 0, 50), limit_bytes=5000)) == [{b"same": b"x" * 1000}]
    send(broker.bootstrap, name, [(b"%d" % n, b"x" * 1000) for n in range(50)])
    start, found = 50, dict[bytes | None, bytes | None]()
    while start < 100:
        (part,), (end,) = read_to(broker, PartitionRange(name, 0, start, 100), limit_bytes=5000)
        assert start < end and part.read.records == end - start == len(part.records) <= 10
        start, found = end, found | of(part)
    assert found == {b"%d" % n: b"x" * 1000 for n in range(50)}
    large = read_to(broker, PartitionRange(name, 0, 50, 100), limit_bytes=100_000)
    assert large[1] == [100] and len(large[0][0].records) == 50


@pytest.mark.parametrize("partitions", [3, 6])
def test_where_reading_stops_later_ranges_have_no_record(
    fresh: Fresh, broker: Broker, partitions: int
) -> None:
    """Each partition has a consumer of its own, or all of them share one."""
    name = fresh("several", partitions=partitions)
    for partition in range(partitions):
        send(broker.bootstrap, name, [(b"%d" % n, b"x" * 1000) for n in range(20)], partition=partition)
    starts, found = [0] * partitions, [dict[bytes | None, bytes | None]() for _ in range(partitions)]
    for _ in range(partitions * 20):
        ranges = [PartitionRange(name, n, start, 20) for n, start in enumerate(starts) if start < 20]
        if not ranges:
            break
        parts, ends = read_to(broker, *ranges, limit_bytes=4000)
        assert sum(ends) > sum(each.start for each in ranges)
        for part, end in zip(parts, ends, strict=True):
            at = part.range.partition
            assert part.read.records == end - part.range.start
            starts[at], found[at] = end, found[at] | of(part)
    assert found == [{b"%d" % n: b"x" * 1000 for n in range(20)}] * partitions
