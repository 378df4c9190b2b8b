"""Offsets that a consumer group has committed: read for the modes `group-offsets`, written for monitoring.

Done by a consumer that never joins its group, as Flink does, not by librdkafka's admin calls: ListConsumerGroupOffsets
ends the whole process (2.16, a null pointer) when the broker has no coordinator for the group yet.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from types import TracebackType

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from bridge.definition import Topic
from bridge.errors import KafkaError
from bridge.kafka.client import LastError, committed_offsets, error_text, group_refusal
from bridge.kafka.client_settings import for_librdkafka, read_committed
from bridge.offsets import Offsets, TopicPartition

__all__ = ["ConsumerGroup"]

_TIMEOUT = 20.0
_SESSION_TIMEOUT_MS = 6000

_log = logging.getLogger("bridge.kafka")


class ConsumerGroup:
    """The consumer group of a topic; a context manager. Members of the group are not disturbed, but while it has some,
    Kafka lets nobody else commit."""

    def __init__(self, topic: Topic, *, timeout: float = _TIMEOUT) -> None:
        self.name = topic.group
        self._topic, self._timeout = topic, timeout
        self._last_error = LastError()
        self._in_flight = 0
        self._commit_error: confluent_kafka.KafkaError | None = None
        settings = {
            **for_librdkafka(topic.properties),
            "group.id": topic.group,
            "enable.auto.commit": False,
            # It never joins. But librdkafka keeps a commit for so long that reaches no coordinator (as where the group
            # may not be used), 45 s by default, and `close` waits for it.
            "session.timeout.ms": _SESSION_TIMEOUT_MS,
            "isolation.level": "read_committed" if read_committed(topic.properties) else "read_uncommitted",
            "error_cb": self._last_error,
            "on_commit": self._on_commit,
        }
        try:
            self._consumer = Consumer(settings, logger=_log)
        except KafkaException as refused:
            raise KafkaError(
                f"librdkafka refuses the 'properties.*': {error_text(refused.args[0])}"
            ) from None

    def committed(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """What the group has committed for `partitions`; without a commit no entry. Raises KafkaError."""
        asked = [confluent_kafka.TopicPartition(t, p) for t, p in partitions]
        try:
            found = committed_offsets(self._consumer, asked, self._timeout, self._last_error)
        except KafkaException as failed:
            raise self._error("tell its offsets", failed) from None
        for place in found:
            if place.error is not None:
                raise self._error("tell its offsets", KafkaException(place.error)) from None
        return Offsets.of((at.topic, at.partition, at.offset) for at in found if at.offset >= 0)

    def commit(self, offsets: Offsets) -> None:
        """Send the group's offsets on their way; `settle` tells what became of them."""
        places = [confluent_kafka.TopicPartition(t, p, o) for t, p, o in offsets]
        if places:
            self._in_flight += 1
            try:
                self._consumer.commit(offsets=places, asynchronous=True)
            except KafkaException as failed:
                self._in_flight -= 1
                self._commit_error = failed.args[0]

    def check_commits(self, seconds: float = 0.0) -> None:
        """Wait so long at most for what is on its way. Raises KafkaError when a commit was refused since the last call
        (Kafka refuses them while the group has members), or, after a wait, when no answer came."""
        deadline = time.monotonic() + seconds
        while True:
            self._commit_error = group_refusal(self._consumer) or self._commit_error
            if self._commit_error is None and seconds:
                time.sleep(0.02)
            if not self._in_flight or self._commit_error is not None or time.monotonic() >= deadline:
                break
        refused, self._commit_error = self._commit_error, None
        if refused is None and self._in_flight and seconds:
            refused = self._last_error.error or confluent_kafka.KafkaError(
                confluent_kafka.KafkaError._TIMED_OUT
            )
        if refused is not None:
            raise self._error("take offsets", KafkaException(refused))

    def close(self) -> None:
        """Let go of the broker. Harmless when done before."""
        self._consumer.close()

    def __enter__(self) -> ConsumerGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _on_commit(
        self, error: confluent_kafka.KafkaError | None, places: list[confluent_kafka.TopicPartition]
    ) -> None:
        self._in_flight -= 1
        refusals = (place.error for place in places if place.error is not None)
        self._commit_error = error or next(refusals, None) or self._commit_error

    def _error(self, doing: str, failed: KafkaException) -> KafkaError:
        error = failed.args[0]
        silent = error.code() in (
            confluent_kafka.KafkaError._TIMED_OUT,
            confluent_kafka.KafkaError._TRANSPORT,
        )
        if silent and self._last_error.error is not None:
            error = self._last_error.error
        return KafkaError(
            f"{self._topic.bootstrap_servers}: group '{self.name}' refuses to {doing}: {error_text(error)}"
        )
