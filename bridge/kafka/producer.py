"""Sends records in order by one librdkafka producer, which accounts for every one of them.

It needs no Spark: it runs in executors' Python workers, and may run anywhere. `partitions_of` is Java's default
partitioner for many keys at a time. librdkafka's uses the number of partitions of its latest metadata, which may change
within a batch and differ between tasks; here the number is an argument (ADR 022).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException, Message, Producer

from bridge.errors import KafkaError
from bridge.kafka.client import LOGIN_ERRORS, error_text
from bridge.kafka.records import Records, SendCounts
from bridge.partitioners import Partitioner

_SEED, _M = np.uint32(0x9747B28C), np.uint32(0x5BD1E995)
_REST = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)
ANYWHERE = -1


def partitions_of(keys: Sequence[bytes | None] | pa.Array, partitions: Sequence[int] | int) -> list[int]:
    """Return the partition of each key; `partitions` is the number of them, for all keys or for each, 0 if unknown.

    A null key and an unknown number give -1, with which librdkafka chooses one. An empty key is a key. Keys in Arrow
    are hashed in less time than a list.
    """
    binary = pa.large_binary()
    column = keys.cast(binary) if isinstance(keys, pa.Array) else pa.array(keys, binary)
    count = np.maximum(np.asarray(partitions, dtype=np.int64), 0)
    hashed = (_hashes(column) & np.uint32(0x7FFFFFFF)).astype(np.int64) % np.maximum(count, 1)
    anywhere = count == 0
    if column.null_count:
        anywhere = anywhere | column.is_null().to_numpy(zero_copy_only=False)
    placed: list[int] = np.where(anywhere, ANYWHERE, hashed).tolist()
    return placed


def _hashes(column: Any) -> Any:
    """Return murmur2 of each value, and any number for nulls."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    lengths = np.diff(offsets)
    end = int(offsets[-1])
    # Four more bytes, so that a word can be read wherever a value begins.
    data = np.zeros(end + 4, dtype=np.uint8)
    if end:
        data[:end] = np.frombuffer(column.buffers()[2], dtype=np.uint8)[:end]
    words = np.ndarray(end + 1, dtype="<u4", buffer=data.data, strides=(1,))
    hashed = _SEED ^ lengths.astype(np.uint32)
    whole, at = lengths >> 2, offsets[:-1]
    rows: Any = slice(None)
    for number in range(int(whole.max(initial=0))):
        if number >= whole.min():
            rows = np.flatnonzero(whole > number)
        k = words[at[rows] + 4 * number] * _M
        k ^= k >> np.uint32(24)
        hashed[rows] = (hashed[rows] * _M) ^ (k * _M)
    rest = lengths & 3
    rows = np.flatnonzero(rest)
    if len(rows):
        last = words[at[rows] + 4 * whole[rows]] & _REST[rest[rows]]
        hashed[rows] = (hashed[rows] ^ last) * _M
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    hashed ^= hashed >> np.uint32(15)
    return hashed


METADATA_SECONDS = 20.0
_RESET_SECONDS = 2.0


class _Deliveries:
    """Results that librdkafka's callbacks report. It holds no reference to the producer, which would keep it alive."""

    def __init__(self, checked: bool) -> None:
        self.checked = checked
        self.failure: str | None = None
        self.error: confluent_kafka.KafkaError | None = None
        self.lost = 0
        self.client_error: confluent_kafka.KafkaError | None = None

    def on_delivery(self, error: confluent_kafka.KafkaError, message: Message) -> None:
        self.lost += 1
        if self.checked and self.failure is None:
            self.error = error
            where = f"{message.topic()}-{message.partition()}"
            before = (
                f" (before that: {error_text(self.client_error)})" if self.client_error is not None else ""
            )
            self.failure = f"{where} did not take a record: {error_text(error)}{before}"

    def on_error(self, error: confluent_kafka.KafkaError) -> None:
        self.client_error = error
        if self.checked and error.code() in LOGIN_ERRORS:
            self.error = error
            self.failure = f"the broker refuses the producer's login: {error_text(error)}"


class RecordProducer:
    """Sends records in the given order; a context manager that ends when every record is delivered or failed.

    With `checked`, the first failed delivery raises KafkaError with topic, partition and reason, never a payload, and
    queued records are discarded. Without, failures are counted in `counts.lost`. `partitioner` (see
    `partitioners.opened`) chooses each record's partition; None is Java's default partitioner. Both use
    `partition_counts`, each topic's number of partitions, even if a topic gains partitions meanwhile; for other topics
    they use librdkafka's own number. `client` creates librdkafka's producer, which must know as many partitions within
    `metadata_seconds`.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        checked: bool = True,
        partitioner: Partitioner | None = None,
        partition_counts: Mapping[str, int] | None = None,
        client: Callable[[dict[str, Any]], Producer] = Producer,
        metadata_seconds: float = METADATA_SECONDS,
    ) -> None:
        self.counts = SendCounts()
        self._partitioner = partitioner
        self._partition_counts = dict(partition_counts or {})
        self._partitions: dict[str, tuple[int, ...]] = {}
        self._topics: set[str] = set()
        """All topics that it has sent records to."""
        self._metadata_seconds = metadata_seconds
        self._deliveries = _Deliveries(checked)
        try:
            callbacks = {"on_delivery": self._deliveries.on_delivery, "error_cb": self._deliveries.on_error}
            self._producer = client({**settings, **callbacks, "log_level": 2})
        except KafkaException as refused:
            raise KafkaError(f"librdkafka refuses the 'properties.*': {refused.args[0].str()}") from None

    @property
    def producer(self) -> Producer:
        """librdkafka's producer, for transactions around the records."""
        return self._producer

    @property
    def last_error(self) -> confluent_kafka.KafkaError | None:
        """The broker's or librdkafka's error that caused the last KafkaError, if any."""
        return self._deliveries.error

    def __enter__(self) -> RecordProducer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._purge()
            return
        self.flush()

    def reset(
        self, partitioner: Partitioner | None, partition_counts: Mapping[str, int] | None = None
    ) -> bool:
        """Prepare for other records as a new producer would, once all earlier ones are accounted for.

        It refreshes the partitions of the topics it has sent to, which may be new topics of the same name. Returns
        False when it must not be reused: librdkafka has reported an error, or the broker does not answer soon.
        """
        self._producer.poll(0)
        if self._deliveries.lost or self._deliveries.client_error is not None:
            return False
        try:
            self._partitions = {topic: self._list_partitions(topic, _RESET_SECONDS) for topic in self._topics}
        except KafkaError:
            return False
        # `_topics` is not cleared: a later block may send to a topic of an earlier one, which librdkafka still caches.
        self.counts, self._partitioner, self._partition_counts = (
            SendCounts(),
            partitioner,
            dict(partition_counts or {}),
        )
        return True

    def send(self, records: Records) -> None:
        """Queue records for sending; waits while the queue is full. Raises KafkaError as described at the class."""
        topics = set(records.topics)
        partitions = self._choose_partitions(records, topics)
        if records.timestamps is None and records.headers is None and self._partitioner is None:
            # One call per record: produce_batch() needs a dict for each, which costs more than the calls.
            produce = self._producer.produce
            for topic, key, value, partition in zip(
                records.topics, records.keys, records.values, partitions, strict=True
            ):
                try:
                    produce(topic, value, key, partition)
                except (BufferError, KafkaException) as error:
                    self._retry_produce(error, topic, key, value, {"partition": partition})
        else:
            for (topic, key, value, timestamp, headers), partition in zip(
                records.rows(), partitions, strict=True
            ):
                more: dict[str, Any] = {"headers": headers} if headers else {}
                more["partition"] = partition
                if timestamp is not None:
                    more["timestamp"] = _checked_timestamp(timestamp, topic)
                if self._partitioner is not None:
                    more["partition"] = self._partitioner.partition(
                        key, value, topic, self._partitions_of(topic)
                    )
                try:
                    self._producer.produce(topic, value, key, **more)
                except (BufferError, KafkaException) as error:
                    self._retry_produce(error, topic, key, value, more)
        self._producer.poll(0)
        self._raise_failure()
        self._topics |= topics
        self.counts.records += len(records.keys)
        self.counts.tombstones += records.values.count(None)
        self.counts.bytes += records.size

    def _retry_produce(
        self, error: Exception, topic: str, key: bytes | None, value: bytes | None, more: dict[str, Any]
    ) -> None:
        """Produce a record again until the full queue accepts it; every other error is final."""
        while isinstance(error, BufferError):
            self._producer.poll(0.05)  # returns as soon as a delivery makes room
            self._raise_failure()
            try:
                self._producer.produce(topic, value, key, **more)
                return
            except (BufferError, KafkaException) as next_error:
                error = next_error
        self._deliveries.error = error.args[0]
        raise _refused(topic, key, value, error.args[0]) from None

    def _choose_partitions(self, records: Records, topics: set[str]) -> list[int]:
        """Return the partition of each record by `partition_counts`; -1 leaves the choice to librdkafka."""
        for topic in topics & self._partition_counts.keys():
            self._await_partitions(topic, self._partition_counts[topic])
        if self._partitioner is not None:
            return [ANYWHERE] * len(records.keys)
        counts = {self._partition_counts.get(topic, 0) for topic in topics}
        if counts == {0}:
            return [ANYWHERE] * len(records.keys)
        keys = records.keys if records.key_column is None else records.key_column
        if len(counts) == 1:
            return partitions_of(keys, counts.pop())
        return partitions_of(keys, [self._partition_counts.get(topic, 0) for topic in records.topics])

    def _await_partitions(self, topic: str, count: int) -> None:
        """Wait until librdkafka knows `count` partitions: it refuses records for partitions it does not know."""
        deadline = time.monotonic() + self._metadata_seconds
        while len(self._partitions.get(topic, ())) < count:
            if time.monotonic() > deadline:
                raise KafkaError(
                    f"'{topic}' had {count} partitions when the batch began, and the broker now reports "
                    f"{len(self._partitions[topic])}: the topic was recreated, or the broker's metadata are stale. "
                    "Run again"
                )
            if topic in self._partitions:
                time.sleep(0.02)
            self._partitions[topic] = self._list_partitions(topic, self._metadata_seconds)

    def _partitions_of(self, topic: str) -> tuple[int, ...]:
        if topic not in self._partitions:
            self._partitions[topic] = self._list_partitions(topic, self._metadata_seconds)
        return self._partitions[topic][: self._partition_counts.get(topic)]

    def _list_partitions(self, topic: str, seconds: float) -> tuple[int, ...]:
        try:
            metadata = self._producer.list_topics(topic, timeout=seconds).topics[topic]
        except KafkaException as failed:
            self._raise_failure()
            raise KafkaError(
                f"the partitions of '{topic}' are not known: {error_text(failed.args[0])}"
            ) from None
        if metadata.error is not None or not metadata.partitions:
            reason = error_text(metadata.error) if metadata.error is not None else "there are none"
            raise KafkaError(f"the partitions of '{topic}' are not known: {reason}")
        return tuple(sorted(metadata.partitions))

    def flush(self) -> None:
        """Wait until every record is delivered or failed; `delivery.timeout.ms` bounds the wait for each record."""
        while self._producer.flush(1.0):
            self._raise_failure()
        self._raise_failure()
        self.counts.lost = self._deliveries.lost

    def _purge(self) -> None:
        """Discard queued records, so that none is sent while the next attempt is already sending."""
        self._deliveries.checked = False
        self._producer.purge()
        self._producer.flush(1.0)

    def abandon(self, seconds: float = 5.0) -> None:
        """Discard queued records and abort the open transaction, if the broker answers in time."""
        self._deliveries.checked = False
        # Aborting fails without an open transaction, for a fenced producer, and when the broker is away: then the
        # transaction's timeout ends it. The client raises SystemError for a fatal error amid other callbacks.
        with suppress(KafkaException, SystemError):
            self._producer.purge()
            self._producer.abort_transaction(seconds)

    def _raise_failure(self) -> None:
        if self._deliveries.failure is not None:
            raise KafkaError(self._deliveries.failure)


def _checked_timestamp(milliseconds: int, topic: str) -> int:
    # Kafka has no timestamps before 1970, and librdkafka replaces 0 by the current time.
    if milliseconds <= 0:
        raise KafkaError(f"a record for '{topic}' has a timestamp not after 1970-01-01T00:00:00Z")
    return milliseconds


def _refused(
    topic: str, key: bytes | None, value: bytes | None, error: confluent_kafka.KafkaError
) -> KafkaError:
    size = len(key or b"") + len(value or b"")
    which = f"key's SHA-256 begins {hashlib.sha256(key).hexdigest()[:16]}" if key is not None else "no key"
    way_out = ""
    if error.code() == confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE:
        way_out = "; raise 'properties.max.request.size' and the topic's max.message.bytes"
    return KafkaError(
        f"a record of {size} bytes for '{topic}' ({which}) is refused: {error_text(error)}{way_out}"
    )
