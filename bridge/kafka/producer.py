"""The sending end: one librdkafka producer that takes records in order and gives account of every one.

No Spark here: this runs inside executors' Python workers, and may run anywhere.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, Message, Producer

from bridge.errors import KafkaError
from bridge.kafka.client import LOGIN_ERRORS, error_text
from bridge.kafka.murmur2 import ANYWHERE, partitions_of
from bridge.kafka.records import Records, SendCounts
from bridge.partitioners import Partitioner

__all__ = ["RecordProducer"]

_METADATA_SECONDS = 20.0
_RESET_SECONDS = 2.0


class _Deliveries:
    """What librdkafka's callbacks told; it refers to no producer, which could then not end."""

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
    """Sends records in the order given; a context manager that ends only when all of them are accounted for.

    With `checked`, the first delivery that fails raises KafkaError with topic, partition and the reason,
    never a payload; what is still queued is thrown away. Without, failures are counted in `sent.lost`.
    `partitioner` (see `partitioners.opened`) chooses each record's partition; None puts keys where Java's default
    partitioner does. Both go by `counts`, how many partitions each topic has, whatever it gains meanwhile; for a topic
    that is not in it by librdkafka's own count.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        checked: bool = True,
        partitioner: Partitioner | None = None,
        partition_counts: Mapping[str, int] | None = None,
    ) -> None:
        self.counts = SendCounts()
        self._partitioner = partitioner
        self._partition_counts = dict(partition_counts or {})
        self._partitions: dict[str, tuple[int, ...]] = {}
        self._topics: set[str] = set()
        """Those it was ever given records for."""
        self._deliveries = _Deliveries(checked)
        try:
            callbacks = {"on_delivery": self._deliveries.on_delivery, "error_cb": self._deliveries.on_error}
            self._producer = Producer({**settings, **callbacks, "log_level": 2})
        except KafkaException as refused:
            raise KafkaError(f"librdkafka refuses the 'properties.*': {refused.args[0].str()}") from None

    @property
    def producer(self) -> Producer:
        """librdkafka's producer, for transactions around what is sent."""
        return self._producer

    @property
    def last_error(self) -> confluent_kafka.KafkaError | None:
        """What was behind the last KafkaError, if it was the broker or librdkafka."""
        return self._deliveries.error

    def __enter__(self) -> RecordProducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._purge()
            return
        self.flush()

    def reset(
        self, partitioner: Partitioner | None, partition_counts: Mapping[str, int] | None = None
    ) -> bool:
        """Make ready for other records, as if it were new, once all before are accounted for; it then knows the
        partitions that the topics it has sent to have by now, which may be new topics of the same name. False when it
        is better thrown away: librdkafka has told of an error, or the partitions cannot be learnt soon."""
        self._producer.poll(0)
        if self._deliveries.lost or self._deliveries.client_error is not None:
            return False
        try:
            self._partitions = {topic: self._list_partitions(topic, _RESET_SECONDS) for topic in self._topics}
        except KafkaError:
            return False
        # The topics stay: one that this block leaves alone may be sent to by the next, and librdkafka knows it still.
        self.counts, self._partitioner, self._partition_counts = (
            SendCounts(),
            partitioner,
            dict(partition_counts or {}),
        )
        return True

    def send(self, records: Records) -> None:
        """Hand records over, waiting while the buffer is full. Raises KafkaError as the class says."""
        where = self._choose_partitions(records)
        if records.timestamps is None and records.headers is None and self._partitioner is None:
            # One call per record: produce_batch() wants a dict for each, which costs more than the calls.
            produce = self._producer.produce
            for topic, key, value, place in zip(
                records.topics, records.keys, records.values, where, strict=True
            ):
                try:
                    produce(topic, value, key, place)
                except (BufferError, KafkaException) as busy:
                    self._retry_produce(busy, topic, key, value, {"partition": place})
        else:
            for (topic, key, value, timestamp, headers), place in zip(records.rows(), where, strict=True):
                more: dict[str, Any] = {"headers": headers} if headers else {}
                more["partition"] = place
                if timestamp is not None:
                    more["timestamp"] = _checked_timestamp(timestamp, topic)
                if self._partitioner is not None:
                    more["partition"] = self._partitioner.partition(
                        key, value, topic, self._partitions_of(topic)
                    )
                try:
                    self._producer.produce(topic, value, key, **more)
                except (BufferError, KafkaException) as busy:
                    self._retry_produce(busy, topic, key, value, more)
        self._producer.poll(0)
        self._raise_failure()
        self._topics.update(records.topics)
        self.counts.records += len(records.keys)
        self.counts.tombstones += records.values.count(None)
        self.counts.bytes += sum(map(len, filter(None, records.keys))) + sum(
            map(len, filter(None, records.values))
        )

    def _retry_produce(
        self, busy: Exception, topic: str, key: bytes | None, value: bytes | None, more: dict[str, Any]
    ) -> None:
        """Send a record again until the full buffer takes it; every other refusal is final."""
        while isinstance(busy, BufferError):
            self._producer.poll(0.05)  # returns as soon as a delivery makes room
            self._raise_failure()
            try:
                self._producer.produce(topic, value, key, **more)
                return
            except (BufferError, KafkaException) as still:
                busy = still
        self._deliveries.error = busy.args[0]
        raise _refused(topic, key, value, busy.args[0]) from None

    def _choose_partitions(self, records: Records) -> list[int]:
        """The partition of each record by `counts`; -1 is librdkafka's choice."""
        topics = set(records.topics)
        for topic in topics & self._partition_counts.keys():
            self._await_partitions(topic, self._partition_counts[topic])
        if self._partitioner is not None:
            return [ANYWHERE] * len(records.keys)
        counts = {self._partition_counts.get(topic, 0) for topic in topics}
        if counts == {0}:
            return [ANYWHERE] * len(records.keys)
        if len(counts) == 1:
            return partitions_of(records.keys, counts.pop())
        return partitions_of(records.keys, [self._partition_counts.get(topic, 0) for topic in records.topics])

    def _await_partitions(self, topic: str, count: int) -> None:
        """Wait until librdkafka knows so many partitions: it refuses records for one that it has not heard of."""
        deadline = time.monotonic() + _METADATA_SECONDS
        while len(self._partitions.get(topic, ())) < count:
            if time.monotonic() > deadline:
                raise KafkaError(
                    f"'{topic}' had {count} partitions when the batch began, and the broker that is asked knows of "
                    f"{len(self._partitions[topic])}: it was made anew, or its metadata are behind. Run again"
                )
            if topic in self._partitions:
                time.sleep(0.02)
            self._partitions[topic] = self._list_partitions(topic, _METADATA_SECONDS)

    def _partitions_of(self, topic: str) -> tuple[int, ...]:
        if topic not in self._partitions:
            self._partitions[topic] = self._list_partitions(topic, _METADATA_SECONDS)
        return self._partitions[topic][: self._partition_counts.get(topic)]

    def _list_partitions(self, topic: str, seconds: float) -> tuple[int, ...]:
        try:
            found = self._producer.list_topics(topic, timeout=seconds).topics[topic]
        except KafkaException as silent:
            self._raise_failure()
            raise KafkaError(
                f"the partitions of '{topic}' are not known: {error_text(silent.args[0])}"
            ) from None
        if found.error is not None or not found.partitions:
            told = error_text(found.error) if found.error is not None else "there are none"
            raise KafkaError(f"the partitions of '{topic}' are not known: {told}")
        return tuple(sorted(found.partitions))

    def flush(self) -> None:
        """Wait until nothing is outstanding; `delivery.timeout.ms` bounds the wait, record by record."""
        while self._producer.flush(1.0):
            self._raise_failure()
        self._raise_failure()
        self.counts.lost = self._deliveries.lost

    def _purge(self) -> None:
        """Nothing of a failed attempt may still go out while the next one is already sending."""
        self._deliveries.checked = False
        self._producer.purge()
        self._producer.flush(1.0)

    def abandon(self, seconds: float = 5.0) -> None:
        """Throw away what is queued and take an open transaction back, as far as the broker answers in time."""
        self._deliveries.checked = False
        # It fails when none was open, when we are fenced, and when the broker is away: then its timeout ends it.
        # A SystemError is what the client makes of a fatal error that meets further callbacks.
        with suppress(KafkaException, SystemError):
            self._producer.purge()
            self._producer.abort_transaction(seconds)

    def _raise_failure(self) -> None:
        if self._deliveries.failure is not None:
            raise KafkaError(self._deliveries.failure)


def _checked_timestamp(milliseconds: int, topic: str) -> int:
    # Kafka knows no time before 1970, and librdkafka takes 0 for "now".
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
