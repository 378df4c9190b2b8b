"""The driver's side of an exactly-once publish: fences older runs and records progress, with one transactional id."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka import KafkaException, Producer

from bridge.definition import Topic
from bridge.errors import ConcurrentRunError, DefinitionError, KafkaError
from bridge.kafka.client import LOGIN_ERRORS, LastError, error_text, settings_accepted
from bridge.kafka.client_settings import for_librdkafka, producer_settings
from bridge.kafka.transactions import (
    FENCED,
    OffsetMetadataStore,
    consumer_settings,
    init_transactions,
    transactional_settings,
)
from bridge.publish_progress import PublishProgress

_Code = confluent_kafka.KafkaError
_WAIT = 30.0
_RETRY_SECONDS = 120.0
_T = TypeVar("_T")


def latest_progress(offset_metadata: list[str], group: str) -> PublishProgress | None:
    """Return the progress with the highest batch number, None without any.

    Raises KafkaError for offset metadata that this version of the bridge did not write.
    """
    try:
        progress = [PublishProgress.from_json(text) for text in offset_metadata]
    except (ValueError, NotImplementedError) as error:
        raise KafkaError(
            f"group '{group}' holds offsets that this version of the bridge did not write ({error}); choose another "
            "'sink.transactional-id-prefix'"
        ) from None
    return max(progress, key=lambda p: p.batch, default=None)


def taken_over_message(prefix: str) -> str:
    """Return the message of a run that a newer run of the same prefix has fenced."""
    return (
        f"another run publishes with 'sink.transactional-id-prefix' = '{prefix}' and has taken over; this one has sent "
        "nothing that the other does not know of. Let only one of them run"
    )


class Control:
    """Progress of a publish in Kafka. Only the newest Control of a prefix can record progress.

    A context manager. `run` identifies it; shards compare it with the recorded progress to detect a newer run.
    `client` creates librdkafka's producer.
    """

    def __init__(
        self,
        topic: Topic,
        prefix: str,
        pipeline: str,
        *,
        client: Callable[[dict[str, Any]], Producer] = Producer,
    ) -> None:
        self.run = uuid.uuid4().hex
        self.prefix, self._pipeline = prefix, pipeline
        self._offset_metadata = OffsetMetadataStore(consumer_settings(topic.properties), prefix, topic.names)
        self._topic = topic
        self._last_recorded: PublishProgress | None = None
        """The progress in Kafka, as of the last successful request."""
        self._shard_offset_metadata: Mapping[str, str] = {}
        """Offset metadata of shards (by group) in the transaction being committed."""
        settings = producer_settings(for_librdkafka(topic.properties, "producer"), checked=True)
        self._settings = {**transactional_settings(settings, prefix), "error_cb": LastError(), "log_level": 2}
        self._client = client
        self._producer: Producer | None = None

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer = None
        self._offset_metadata.close()

    def take_over(self) -> PublishProgress | None:
        """Fence older runs and return the recorded progress; None when no run has recorded any.

        Raises DefinitionError when the prefix belongs to another pipeline or the transaction timeout is longer than the
        broker allows, KafkaError when the broker refuses a request or does not answer.
        """
        return self._with_retries(self._initialize, self._initialize)

    def record(self, progress: PublishProgress, shards: Mapping[str, str] | None = None) -> PublishProgress:
        """Record `progress` with this run's id and return it as recorded.

        `shards` maps consumer groups of shards to offset metadata, which the same transaction commits: all or nothing.
        Raises ConcurrentRunError when a newer run took over, KafkaError when the broker does not accept it.
        """
        recorded = replace(progress, run=self.run).for_offset_metadata()
        self._shard_offset_metadata = shards or {}
        self._with_retries(lambda: self._commit(recorded), lambda: self._retry_record(recorded))
        self._last_recorded = recorded
        return recorded

    def _initialize(self) -> PublishProgress | None:
        self._new_producer()
        self._last_recorded = self._read(self._offset_metadata)
        return self._last_recorded

    def _retry_record(self, progress: PublishProgress) -> None:
        """Commit `progress` after a failure, unless the failed commit succeeded or a newer run has recorded."""
        self._raise_if_superseded(progress, self._read_without_waiting())  # before fencing a newer run
        self._new_producer()
        in_kafka = self._read(self._offset_metadata)
        self._raise_if_superseded(progress, in_kafka)
        if in_kafka != progress:
            self._commit(progress)

    def _raise_if_superseded(self, progress: PublishProgress, in_kafka: PublishProgress | None) -> None:
        if in_kafka not in (progress, self._last_recorded, None):
            raise ConcurrentRunError(taken_over_message(self.prefix))

    def _read_without_waiting(self) -> PublishProgress | None:
        """Read the committed progress without waiting for an open transaction, which may be this run's own."""
        topic = self._topic
        store = OffsetMetadataStore(
            consumer_settings(topic.properties), self.prefix, topic.names, require_stable=False
        )
        try:
            return self._read(store)
        finally:
            store.close()

    def _new_producer(self) -> None:
        with settings_accepted():
            self._producer = self._client(self._settings)
        init_transactions(self._producer, self._topic.names[0])

    def _commit(self, progress: PublishProgress) -> None:
        assert self._producer is not None, "take_over comes first"
        self._producer.begin_transaction()
        offset = max(0, progress.version + 1)
        for group, metadata in self._shard_offset_metadata.items():
            self._offset_metadata.write(self._producer, offset, metadata, group=group)
        self._offset_metadata.write(self._producer, offset, progress.to_json())
        self._producer.commit_transaction(_WAIT)

    def _with_retries(self, action: Callable[[], _T], retry: Callable[[], _T]) -> _T:
        """Run `action`, and after a failure `retry` until it succeeds, each time with a new producer."""
        deadline = time.monotonic() + _RETRY_SECONDS
        while True:
            try:
                return action()
            except KafkaException as failed:
                self._producer = None
                self._raise_if_final(failed.args[0])
                if time.monotonic() > deadline:
                    raise KafkaError(f"no transaction can be made: {error_text(failed.args[0])}") from None
                time.sleep(0.2)
                action = retry

    def _raise_if_final(self, error: confluent_kafka.KafkaError) -> None:
        """Raise an error that a retry cannot solve."""
        if error.code() in FENCED:
            # Not retried: the other run may not have recorded progress yet, and a new producer would fence it.
            raise ConcurrentRunError(taken_over_message(self.prefix))
        if error.code() == _Code.INVALID_TRANSACTION_TIMEOUT:
            raise DefinitionError(
                f"'properties.transaction.timeout.ms' = {self._settings['transaction.timeout.ms']} is more than the "
                "broker's transaction.max.timeout.ms allows; lower the one or raise the other"
            )
        if error.code() in (_Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _Code.GROUP_AUTHORIZATION_FAILED):
            raise KafkaError(
                f"the login may not use transactional ids and groups that begin with '{self.prefix}': "
                f"{error_text(error)}; "
                "give it WRITE and DESCRIBE on the prefixed transactional id, READ on the prefixed group"
            )
        if error.code() in (_Code.TOPIC_AUTHORIZATION_FAILED, _Code.CLUSTER_AUTHORIZATION_FAILED):
            raise KafkaError(
                f"the login may not use topic '{self._topic.names[0]}' in transactions: {error_text(error)}; give it "
                "DESCRIBE, WRITE and READ (progress is stored as committed offsets of the topic)"
            )
        if error.code() in LOGIN_ERRORS:
            raise KafkaError(f"the broker refuses the producer's login: {error_text(error)}")

    def _read(self, store: OffsetMetadataStore) -> PublishProgress | None:
        progress = latest_progress(store.read(), self.prefix)
        if progress is not None and progress.pipeline != self._pipeline:
            raise DefinitionError(
                f"'sink.transactional-id-prefix' = '{self.prefix}' belongs to pipeline {progress.pipeline!r}; give "
                "each pipeline a prefix of its own"
            )
        return progress
