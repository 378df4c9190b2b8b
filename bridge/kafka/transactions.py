"""Kafka transactions that carry progress: a producer of one id, and what it last committed beside its records.

Progress is the offset that a consumer group without members holds for partition 0 of an output topic, its text the
offset's metadata (KIP-447: offsets are committed in the producer's own transaction). The group has the name of the
transactional id, so whoever owns one owns the other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bridge.errors import KafkaError
from bridge.kafka.client import LOGIN_ERRORS, LastError, committed_offsets, error_text
from bridge.kafka.client_settings import for_librdkafka

__all__ = [
    "FENCED",
    "TIMEOUT_MS",
    "OffsetMetadataStore",
    "consumer_settings",
    "init_transactions",
    "transactional_settings",
]

TIMEOUT_MS = 60_000
"""`transaction.timeout.ms` where 'properties.*' do not say: the broker ends a transaction that is open for longer."""

_DEFAULTS = {
    "transaction.timeout.ms": str(TIMEOUT_MS),
    # "rebootstrap" forgets the brokers while none answers; a transaction that was open then waits for ever for the
    # coordinator that librdkafka knew before (send_offsets_to_transaction, whatever its timeout).
    "metadata.recovery.strategy": "none",
}

_Code = confluent_kafka.KafkaError
FENCED = (_Code._FENCED, _Code.PRODUCER_FENCED, _Code.INVALID_PRODUCER_EPOCH)
"""A younger producer of the same id took over, or the broker ended a transaction that was open for too long."""

_WAIT = 30.0
_METADATA_SECONDS = 2.0
_log = logging.getLogger("bridge.kafka")


def transactional_settings(settings: Mapping[str, Any], transactional_id: str) -> dict[str, Any]:
    """A producer's `settings` (see producer_settings) with transactions under that id.

    Raises KafkaError for settings that transactions cannot have.
    """
    if settings.get("enable.idempotence") != "true":
        raise KafkaError(
            "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.acks' = 'all' and "
            "'properties.enable.idempotence' = 'true'; leave both out"
        )
    if settings.get("metadata.recovery.strategy", "none") != "none":
        raise KafkaError(
            "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.metadata.recovery.strategy' = 'none': a "
            "transaction would wait for ever for a broker that restarts; leave it out"
        )
    return {**_DEFAULTS, **settings, "transactional.id": transactional_id}


def consumer_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """What `Notes` needs to reach the broker. Secrets are in it in clear: never shown."""
    return for_librdkafka(properties)


def init_transactions(producer: Producer, topic: str) -> None:
    """Fence all others of the producer's transactional id, and end what they have open; waits for the broker as long as
    half a minute, then raises KafkaException.

    A producer that has no connection when it looks for its coordinator looks again by a timer of half a second, that no
    setting moves. So it is made to ask for `topic` first, and twice: it closes the connection of the first answer.
    """
    with suppress(KafkaException):  # what is wrong, the call below tells
        for _ in range(2):
            producer.list_topics(topic, timeout=_METADATA_SECONDS)
    producer.init_transactions(_WAIT)


class OffsetMetadataStore:
    """The notes that one transactional id leaves behind: a number and a text, in its consumer group."""

    def __init__(
        self, settings: Mapping[str, Any], group: str, topics: Sequence[str], *, require_stable: bool = True
    ) -> None:
        self.group = group
        self._topics = tuple(topics)
        self._last_error = LastError()
        ours = {"group.id": group, "enable.auto.commit": False, "error_cb": self._last_error}
        try:
            level = "read_committed" if require_stable else "read_uncommitted"
            self._consumer = Consumer({**settings, **ours, "isolation.level": level}, logger=_log)
        except KafkaException as refused:
            raise KafkaError(
                f"librdkafka refuses the 'properties.*': {error_text(refused.args[0])}"
            ) from None

    def read(self) -> list[str]:
        """The texts noted for any of the topics. An unfinished transaction's notes are not read; with `waits`, it is
        waited for.

        Raises KafkaError when the broker refuses, KafkaException for what may be better in a moment.
        """
        asked = [TopicPartition(topic, 0) for topic in self._topics]
        try:
            found = committed_offsets(self._consumer, asked, _WAIT, self._last_error)
            for place in found:
                if place.error is not None:
                    raise KafkaException(place.error)
        except KafkaException as failed:
            heard = self._last_error.error
            error = heard if heard is not None and heard.code() in LOGIN_ERRORS else failed.args[0]
            if error.code() not in (*LOGIN_ERRORS, _Code.GROUP_AUTHORIZATION_FAILED):
                raise
            raise KafkaError(
                f"group '{self.group}', which holds the progress of this publish, cannot be read: {error_text(error)}; "
                "the login needs READ on groups that begin with 'sink.transactional-id-prefix'"
            ) from None
        return [place.metadata for place in found if place.offset >= 0 and place.metadata]

    def write(self, producer: Producer, number: int, text: str, *, group: str | None = None) -> None:
        """Add a note to the producer's open transaction, in its own group or another one. Raises KafkaException."""
        place = TopicPartition(self._topics[0], 0, number, text)
        told = self._consumer.consumer_group_metadata() if group is None else _group_metadata(group)
        producer.send_offsets_to_transaction([place], told, _WAIT)

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()


def _group_metadata(group: str) -> object:
    """What names a group without members. Only a consumer can tell it; this one knows no broker, and asks none."""
    consumer = Consumer({"group.id": group}, logger=_log)
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()
