"""Topics made by a fixed seed, and what their rows must be: every column is a function of the row's id and of the
number of the record that wrote it last, so one pair of numbers says whether a row is right.
"""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count, repeat

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from bridge.embedded.broker import Broker

PARTITIONS = 4
FLINK_TYPES = {
    "id": "BIGINT",
    "customer": "STRING",
    "status": "STRING",
    "amount": "DECIMAL(10, 2)",
    "updated_at": "TIMESTAMP(3)",
    "note": "STRING",
    "number": "BIGINT",
}


def spark_types(types: Mapping[str, str]) -> dict[str, str]:
    """Columns with types of Flink, with those of Spark."""
    return {n: "TIMESTAMP_NTZ" if type.startswith("TIMESTAMP(") else type for n, type in types.items()}


def columns(types: Mapping[str, str]) -> str:
    """The columns, for a CREATE TABLE."""
    return ", ".join(f"{name} {type}" for name, type in types.items())


SPARK_TYPES = spark_types(FLINK_TYPES)
FLINK, SPARK = columns(FLINK_TYPES), columns(SPARK_TYPES)
"""The columns, for a CREATE TABLE."""
ROW = {
    "customer": "concat('customer-', id % 5000)",
    "status": "elt(CAST(1 + number % 4 AS INT), 'NEW', 'PAID', 'SENT', 'DONE')",
    "amount": "CAST(CAST((id * 7 + number * 13) % 100000 AS DECIMAL(10, 0)) / 100 AS DECIMAL(10, 2))",
    "updated_at": "CAST(timestamp_millis(1700000000000 + number) AS TIMESTAMP_NTZ)",
    "note": "IF(number % 4 = 0, 'please leave it at the door', NULL)",
}
"""Each other column by `id` and `number`, for Spark; `_value` writes the same in Python."""

_LETTERS_USED = 5_000
_LETTERS = "".join(map(chr, np.random.default_rng(0).integers(97, 123, 2 * _LETTERS_USED).tolist()))
_STATUS = ("NEW", "PAID", "SENT", "DONE")
_TOMBSTONES = 0.05
_CHUNK = 10_000
_QUEUE = 200_000
_LEADER_SECONDS = 30
_NO_LEADER = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


class TopicRows(ABC):
    """What rows the records of a topic carry, and how: a row has `id`, `number`, and between them other columns."""

    @property
    @abstractmethod
    def types(self) -> Mapping[str, str]:
        """The type of each column in Flink, `id` first and `number` last."""

    @property
    @abstractmethod
    def sql(self) -> Mapping[str, str]:
        """Each other column by `id` and `number`, for Spark."""

    @abstractmethod
    def options(self) -> dict[str, str]:
        """The connector and its formats, without topic and servers."""

    @abstractmethod
    def documents(self, load: Load, start: int, end: int) -> list[dict[str, bytes | None]]:
        """Keys and values of these records of a load."""


@dataclass(frozen=True)
class _Orders(TopicRows):
    """The columns of ROW as JSON."""

    types = FLINK_TYPES
    sql = ROW

    def options(self) -> dict[str, str]:
        return {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}

    def documents(self, load: Load, start: int, end: int) -> list[dict[str, bytes | None]]:
        keys, deletes = load.keys[start:end].tolist(), load.deletes[start:end].tolist()
        notes = repeat(None) if load.notes is None else load.notes[start:end].tolist()
        return [
            {"key": b'{"id":%d}' % id, "value": None if gone else _value(id, number, note)}
            for id, gone, number, note in zip(keys, deletes, count(start + 1), notes, strict=False)
        ]


ORDERS = _Orders()


@dataclass(frozen=True, eq=False)
class Load:
    """Records 1, 2, ... with the key that each sets or deletes."""

    keys: npt.NDArray[np.int64]
    deletes: npt.NDArray[np.bool_]
    notes: npt.NDArray[np.int64] | None = None
    """The length of each record's note, 5,000 at most; None for that of `ROW`."""
    rows: TopicRows = ORDERS

    @cached_property
    def previous(self) -> npt.NDArray[np.int64]:
        """The number of the record that wrote the row which each record finds; 0 where it finds none."""
        order = np.argsort(self.keys, kind="stable")
        keys, found = self.keys[order], np.zeros(len(order), dtype=np.int64)
        follows = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        earlier = order[follows - 1]
        found[order[follows]] = np.where(self.deletes[earlier], 0, earlier + 1)
        return found

    @staticmethod
    def random(records: int, keys: int, seed: int, *, tombstones: float = _TOMBSTONES) -> Load:
        """Returns records of random keys; one in twenty is a tombstone."""
        draw = np.random.default_rng(seed)
        return Load(draw.integers(0, keys, records), draw.random(records) < tombstones)

    def first(self, records: int) -> Load:
        notes = None if self.notes is None else self.notes[:records]
        return Load(self.keys[:records], self.deletes[:records], notes, self.rows)

    def __len__(self) -> int:
        return len(self.keys)

    def fold(self) -> Fold:
        """Returns the last record of each key."""
        touched, from_behind = np.unique(self.keys[::-1], return_index=True)
        number = len(self.keys) - from_behind
        there = ~self.deletes[number - 1]
        return Fold(touched, touched[there], number[there])


@dataclass(frozen=True, eq=False)
class Fold:
    """The result of records: the ids they touch, and the ids with a row, with the number of their last record."""

    touched: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]


def load_together(records: int, batch: int, rows: int, seed: int) -> Load:
    """Returns batches of adjacent ids: each starts half a batch after the previous one, the first half a batch below
    `rows`. So half of each batch updates rows, and half inserts them."""
    draw = np.random.default_rng(seed)
    starts = rows - batch // 2 + (np.arange(records) // batch) * (batch // 2)
    return Load(starts + np.arange(records) % batch, draw.random(records) < _TOMBSTONES)


def producer(broker: Broker, linger_ms: int = 20) -> Producer:
    """A producer that sends records of a key to one partition, in their order."""
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": linger_ms,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 4 * _QUEUE,
            "partitioner": "murmur2_random",
        }
    )


def produce(
    broker: Broker, topic: str, load: Load, *, partitions: int = PARTITIONS, part: range | None = None
) -> float:
    """Creates the topic, sends the load (or `part` of it, the indexes of its records) and returns the seconds. Raises
    RuntimeError unless all records arrived."""
    part = range(len(load)) if part is None else part
    broker.create_topic(topic, partitions=partitions)
    started = time.perf_counter()
    send(broker, topic, load, part)
    arrived = _records(broker, topic, partitions)
    if arrived != len(part):
        raise RuntimeError(f"topic {topic}: {arrived:,} of {len(part):,} records have arrived")
    return time.perf_counter() - started


def section(
    broker: Broker,
    topic: str,
    rows: TopicRows = ORDERS,
    *,
    more: str = "",
    options: Mapping[str, str] | None = None,
) -> str:
    """The beginning of a pipeline file over a topic of these records: its version, and the section `topic`, with `more`
    columns and further options of the table."""
    given = {
        "topic": topic,
        "properties.bootstrap.servers": broker.bootstrap,
        **rows.options(),
        **(options or {}),
    }
    shown = ", ".join(f"'{k}' = '{v}'" for k, v in given.items())
    ddl = f"CREATE TABLE t ({columns(rows.types)}{more}, PRIMARY KEY (id) NOT ENFORCED) WITH ({shown})"
    return f"version: 1\ntopic:\n  ddl: |\n    {ddl}\n"


def send(broker: Broker, topic: str, load: Load, part: range) -> None:
    """Sends `part` of the load, the indexes of its records. Raises RuntimeError where librdkafka takes only some."""
    sender = producer(broker)
    for chunk in _chunks(load, part):
        while len(sender) > _QUEUE:
            sender.poll(0.01)
        if sender.produce_batch(topic, chunk) != len(chunk):
            raise RuntimeError(f"topic {topic}: librdkafka accepted only some of {len(chunk):,} records")
    sender.flush(120)


def _chunks(load: Load, part: range) -> Iterator[list[dict[str, bytes | None]]]:
    for start in part[::_CHUNK]:
        yield records(load, start, min(start + _CHUNK, part.stop))


def records(load: Load, start: int, end: int) -> list[dict[str, bytes | None]]:
    """The keys and values of these records."""
    return load.rows.documents(load, start, end)


@functools.lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def _value(id: int, number: int, length: int | None) -> bytes:
    cents = (id * 7 + number * 13) % 100_000
    seconds, millis = divmod(1_700_000_000_000 + number, 1000)
    note = "null" if number % 4 else '"please leave it at the door"'
    if length is not None:
        begin = (id * 31 + number) % _LETTERS_USED
        note = f'"{_LETTERS[begin : begin + length]}"'
    return (
        f'{{"id":{id},"customer":"customer-{id % 5000}","status":"{_STATUS[number % 4]}",'
        f'"amount":{cents // 100}.{cents % 100:02d},"updated_at":"{_second(seconds)}.{millis:03d}",'
        f'"note":{note},"number":{number}}}'
    ).encode()


def _records(broker: Broker, topic: str, partitions: int) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "count"})
    try:
        ends = [_bounds(consumer, TopicPartition(topic, p)) for p in range(partitions)]
        return sum(high - low for low, high in ends)
    finally:
        consumer.close()


def _bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """The first and the next offset. A broker that has just created the topic may not lead it yet."""
    deadline = time.monotonic() + _LEADER_SECONDS
    while True:
        try:
            low, high = consumer.get_watermark_offsets(partition, timeout=_LEADER_SECONDS)
            return low, high
        except KafkaException as failed:
            if failed.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
