"""Kafka transactions that carry progress: a producer with a transactional id, and the offset metadata of its group.

A consumer group without members stores the progress: it commits an offset for partition 0 of an output topic, and the
offset metadata (Kafka's string beside a committed offset) contains the progress. The producer commits that offset in
the transaction of the records (KIP-447). The group has the name of the transactional id, so both have one owner.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bridge.errors import KafkaError
from bridge.kafka.client import LOGIN_ERRORS, LastError, committed_offsets, error_text, settings_accepted
from bridge.kafka.client_settings import for_librdkafka

TIMEOUT_MS = 60_000
"""Default of `properties.transaction.timeout.ms`: the broker aborts a transaction that is open for longer."""

_DEFAULTS = {
    "transaction.timeout.ms": str(TIMEOUT_MS),
    # "rebootstrap" forgets the brokers while none answers. A transaction that is open at that time then waits forever
    # for the coordinator that librdkafka has forgotten (send_offsets_to_transaction ignores its timeout).
    "metadata.recovery.strategy": "none",
}

_Code = confluent_kafka.KafkaError
FENCED = (_Code._FENCED, _Code.PRODUCER_FENCED, _Code.INVALID_PRODUCER_EPOCH)
"""A newer producer of the same id took over, or the broker aborted a transaction that was open for too long."""

_WAIT = 30.0
_METADATA_SECONDS = 2.0
_log = logging.getLogger("bridge.kafka")


def transactional_settings(settings: Mapping[str, Any], transactional_id: str) -> dict[str, Any]:
    """Add transactions with the given id to a producer's `settings` (see producer_settings).

    Raises KafkaError for settings that exclude transactions.
    """
    if settings.get("enable.idempotence") != "true":
        raise KafkaError(
            "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.acks' = 'all' and "
            "'properties.enable.idempotence' = 'true'; leave both out"
        )
    if settings.get("metadata.recovery.strategy", "none") != "none":
        raise KafkaError(
            "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.metadata.recovery.strategy' = 'none': a "
            "transaction would wait forever for a broker that restarts; leave it out"
        )
    return {**_DEFAULTS, **settings, "transactional.id": transactional_id}


def consumer_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings with which OffsetMetadataStore connects. They contain secrets: never log them."""
    return for_librdkafka(properties)


def init_transactions(producer: Producer, topic: str) -> None:
    """Fence all other producers of the transactional id and abort their open transaction.

    Waits up to 30 seconds for the broker, then raises KafkaException. A producer without a connection looks for its
    coordinator again by a timer of half a second, which no setting changes. So it requests the metadata of `topic`
    first, and twice, because it closes the connection of the first response.
    """
    with suppress(KafkaException):  # init_transactions reports the same error
        for _ in range(2):
            producer.list_topics(topic, timeout=_METADATA_SECONDS)
    producer.init_transactions(_WAIT)


class OffsetMetadataStore:
    """Reads and writes the offset metadata of one transactional id, in the consumer group of the same name.

    With `require_stable`, reading waits for the end of an open transaction of the group (Kafka's require_stable).
    """

    def __init__(
        self, settings: Mapping[str, Any], group: str, topics: Sequence[str], *, require_stable: bool = True
    ) -> None:
        self.group = group
        self._topics = tuple(topics)
        self._last_error = LastError()
        level = "read_committed" if require_stable else "read_uncommitted"
        own = {"group.id": group, "enable.auto.commit": False, "error_cb": self._last_error}
        with settings_accepted():
            self._consumer = Consumer({**settings, **own, "isolation.level": level}, logger=_log)

    def read(self) -> list[str]:
        """Return the offset metadata committed for any of the topics, without that of an open transaction.

        Raises KafkaError when the broker refuses the request, KafkaException for an error that a retry may solve.
        """
        requested = [TopicPartition(topic, 0) for topic in self._topics]
        try:
            offsets = committed_offsets(self._consumer, requested, _WAIT, self._last_error)
            for offset in offsets:
                if offset.error is not None:
                    raise KafkaException(offset.error)
        except KafkaException as failed:
            client_error = self._last_error.error
            error = failed.args[0]
            if client_error is not None and client_error.code() in LOGIN_ERRORS:
                error = client_error
            if error.code() not in (*LOGIN_ERRORS, _Code.GROUP_AUTHORIZATION_FAILED):
                raise
            raise KafkaError(
                f"group '{self.group}', which holds the progress of this publish, cannot be read: "
                f"{error_text(error)}; the login needs READ on groups that begin with 'sink.transactional-id-prefix'"
            ) from None
        return [offset.metadata for offset in offsets if offset.offset >= 0 and offset.metadata]

    def write(self, producer: Producer, offset: int, metadata: str, *, group: str | None = None) -> None:
        """Add an offset with `metadata` to the producer's open transaction, for its own group or another one.

        Raises KafkaException.
        """
        position = TopicPartition(self._topics[0], 0, offset, metadata)
        group_metadata = self._consumer.consumer_group_metadata() if group is None else _group_metadata(group)
        producer.send_offsets_to_transaction([position], group_metadata, _WAIT)

    def close(self) -> None:
        """Close the connection to the broker."""
        self._consumer.close()


def _group_metadata(group: str) -> object:
    """Return the metadata of a group without members. Only a consumer creates it; this one connects to no broker."""
    consumer = Consumer({"group.id": group}, logger=_log)
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()
