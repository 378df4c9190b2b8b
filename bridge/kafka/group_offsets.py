"""Committed offsets of a consumer group: read for `scan.*.mode` group-offsets, written for monitoring.

Uses a consumer that never joins its group, as Flink does. librdkafka's admin request ListConsumerGroupOffsets crashes
the process (2.16, a null pointer) when the broker has no coordinator for the group yet.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

import confluent_kafka
from confluent_kafka import Consumer, KafkaException

from bridge.definition import Topic
from bridge.errors import KafkaError
from bridge.kafka.client import LastError, committed_offsets, error_text, group_refusal, settings_accepted
from bridge.kafka.client_settings import for_consumer
from bridge.offsets import Offsets, TopicPartition

_TIMEOUT = 20.0
_SESSION_TIMEOUT_MS = 6000
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.001, 0.02
"""Between looks for the answer to a commit, each pause twice the one before: most answers come within milliseconds."""

_log = logging.getLogger("bridge.kafka")


def starts_at_latest(topic: Topic) -> bool:
    """Return whether partitions without a committed offset start at the latest because no setting says otherwise."""
    is_default = topic.startup.mode == "group-offsets" and "auto.offset.reset" not in topic.properties
    return is_default and not topic.is_upsert


class ConsumerGroup:
    """The consumer group of a topic, which the caller closes. It does not disturb members of the group; while there are
    any, Kafka refuses commits of others."""

    def __init__(self, topic: Topic, *, timeout: float = _TIMEOUT) -> None:
        self.name = topic.group
        self._topic, self._timeout = topic, timeout
        self._last_error = LastError()
        self._in_flight = 0
        self._commit_error: confluent_kafka.KafkaError | None = None
        settings = {
            **for_consumer(topic),
            # The consumer never joins its group. But librdkafka keeps a commit for this time (by default 45 s) when it
            # reaches no coordinator, as when the login may not use the group, and `close` waits for it.
            "session.timeout.ms": _SESSION_TIMEOUT_MS,
            "error_cb": self._last_error,
            "on_commit": self._on_commit,
        }
        with settings_accepted():
            self._consumer = Consumer(settings, logger=_log)

    def committed(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the group's committed offsets of `partitions`, no entry without a commit. Raises KafkaError."""
        requested = [confluent_kafka.TopicPartition(t, p) for t, p in partitions]
        try:
            results = committed_offsets(self._consumer, requested, self._timeout, self._last_error)
        except KafkaException as failed:
            raise self._error("return its offsets", failed) from None
        for result in results:
            if result.error is not None:
                raise self._error("return its offsets", KafkaException(result.error)) from None
        return Offsets.of((r.topic, r.partition, r.offset) for r in results if r.offset >= 0)

    def commit(self, offsets: Offsets) -> None:
        """Start to commit offsets of the group; `check_commits` reports the result."""
        positions = [confluent_kafka.TopicPartition(t, p, o) for t, p, o in offsets]
        if positions:
            self._in_flight += 1
            try:
                self._consumer.commit(offsets=positions, asynchronous=True)
            except KafkaException as failed:
                self._in_flight -= 1
                self._commit_error = failed.args[0]

    def check_commits(self, seconds: float = 0.0) -> None:
        """Wait at most `seconds` for commits in flight.

        Raises KafkaError when a commit was refused since the last call (as Kafka does while the group has members), or,
        after a wait, when no response came.
        """
        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE_SECONDS
        while True:
            self._commit_error = group_refusal(self._consumer) or self._commit_error
            if self._commit_error is None and seconds and self._in_flight:
                time.sleep(pause)
                pause = min(2 * pause, _LAST_PAUSE_SECONDS)
            if not self._in_flight or self._commit_error is not None or time.monotonic() >= deadline:
                break
        refused, self._commit_error = self._commit_error, None
        if refused is None and self._in_flight and seconds:
            refused = self._last_error.error or confluent_kafka.KafkaError(
                confluent_kafka.KafkaError._TIMED_OUT
            )
        if refused is not None:
            raise self._error("commit offsets", KafkaException(refused))

    def close(self) -> None:
        """Close the connection to the broker. May be called again."""
        self._consumer.close()

    def _on_commit(
        self, error: confluent_kafka.KafkaError | None, positions: list[confluent_kafka.TopicPartition]
    ) -> None:
        self._in_flight -= 1
        refusals = (position.error for position in positions if position.error is not None)
        self._commit_error = error or next(refusals, None) or self._commit_error

    def _error(self, action: str, failed: KafkaException) -> KafkaError:
        error = failed.args[0]
        no_answer = error.code() in (
            confluent_kafka.KafkaError._TIMED_OUT,
            confluent_kafka.KafkaError._TRANSPORT,
        )
        if no_answer and self._last_error.error is not None:
            error = self._last_error.error
        return KafkaError(
            f"{self._topic.bootstrap_servers}: group '{self.name}' refuses to {action}: {error_text(error)}"
        )
