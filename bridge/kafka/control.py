"""The driver's end of an exactly-once publish: one transactional id that says who publishes, and how far it is."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

import confluent_kafka
from confluent_kafka import KafkaException, Producer

from bridge.definition import Topic
from bridge.errors import ConcurrentRunError, DefinitionError, KafkaError
from bridge.kafka.client import LOGIN_ERRORS, LastError, error_text
from bridge.kafka.client_settings import for_librdkafka
from bridge.kafka.producer_settings import producer_settings
from bridge.kafka.transactions import (
    FENCED,
    OffsetMetadataStore,
    consumer_settings,
    init_transactions,
    transactional_settings,
)
from bridge.publish_progress import PublishProgress

__all__ = ["Control", "latest_progress", "taken_over_message"]

_Code = confluent_kafka.KafkaError
_WAIT = 30.0
_PATIENCE_SECONDS = 120.0
_T = TypeVar("_T")


def latest_progress(offset_metadata: list[str], group: str) -> PublishProgress | None:
    """The furthest progress among notes. Raises KafkaError for a note that is not ours."""
    try:
        found = [PublishProgress.from_json(text) for text in offset_metadata]
    except (ValueError, NotImplementedError) as error:
        raise KafkaError(
            f"group '{group}' holds offsets that this version of the bridge did not write ({error}); choose another "
            "'sink.transactional-id-prefix'"
        ) from None
    return max(found, key=lambda p: p.batch, default=None)


def taken_over_message(prefix: str) -> str:
    """Why a run ends that is not the youngest of its kind."""
    return (
        f"another run publishes with 'sink.transactional-id-prefix' = '{prefix}' and has taken over; this one has sent "
        "nothing that the other does not know of. Let only one of them run"
    )


class Control:
    """Progress of a publish in Kafka. The youngest Control of a prefix is the only one that can record.

    A context manager. `run` is its name, by which its shards know whether they still serve the youngest one.
    """

    def __init__(self, topic: Topic, prefix: str, pipeline: str) -> None:
        self.run = uuid.uuid4().hex
        self._prefix, self._pipeline = prefix, pipeline
        self._offset_metadata = OffsetMetadataStore(consumer_settings(topic.properties), prefix, topic.names)
        self._topic = topic
        self._last_recorded: PublishProgress | None = None
        """What is recorded, as far as we know."""
        self._shard_offset_metadata: Mapping[str, str] = {}
        """What the record under way says for shards."""
        self._last_error = LastError()
        settings = producer_settings(for_librdkafka(topic.properties, "producer"), checked=True)
        self._settings = {
            **transactional_settings(settings, prefix),
            "error_cb": self._last_error,
            "log_level": 2,
        }
        self._producer: Producer | None = None

    def __enter__(self) -> Control:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer = None
        self._offset_metadata.close()

    def take_over(self) -> PublishProgress | None:
        """Fence the run before this one, and read how far it got; None when nobody ever recorded.

        Raises DefinitionError when the prefix belongs to another pipeline or the transaction timeout is longer than the
        broker allows, KafkaError when the broker refuses us or does not answer.
        """
        return self._with_retries(self._initialize, self._initialize)

    def record(self, progress: PublishProgress, shards: Mapping[str, str] | None = None) -> PublishProgress:
        """Write `progress` down as this run's, and in the same transaction what the groups of `shards` are to hold:
        whole or not at all; returns it as it was written.

        Raises ConcurrentRunError when a younger run took over, KafkaError when the broker does not take it.
        """
        ours = replace(progress, run=self.run).for_offset_metadata()
        self._shard_offset_metadata = shards or {}
        self._with_retries(lambda: self._commit(ours), lambda: self._retry_record(ours))
        self._last_recorded = ours
        return ours

    def _initialize(self) -> PublishProgress | None:
        self._new_producer()
        self._last_recorded = self._read(self._offset_metadata)
        return self._last_recorded

    def _retry_record(self, progress: PublishProgress) -> None:
        """After a failure: the answer may have got lost, the note not; or a younger run is there by now."""
        self._raise_if_superseded(progress, self._read_stable())  # before we fence anybody
        self._new_producer()
        found = self._read(self._offset_metadata)
        self._raise_if_superseded(progress, found)
        if found != progress:
            self._commit(progress)

    def _raise_if_superseded(self, progress: PublishProgress, found: PublishProgress | None) -> None:
        if found not in (progress, self._last_recorded, None):
            raise ConcurrentRunError(taken_over_message(self._prefix))

    def _read_stable(self) -> PublishProgress | None:
        """What is recorded for good, without waiting for a transaction that may be ours."""
        topic = self._topic
        notes = OffsetMetadataStore(
            consumer_settings(topic.properties), self._prefix, topic.names, require_stable=False
        )
        try:
            return self._read(notes)
        finally:
            notes.close()

    def _new_producer(self) -> None:
        try:
            self._producer = Producer(self._settings)
        except KafkaException as refused:
            raise KafkaError(
                f"librdkafka refuses the 'properties.*': {error_text(refused.args[0])}"
            ) from None
        init_transactions(self._producer, self._topic.names[0])

    def _commit(self, progress: PublishProgress) -> None:
        assert self._producer is not None, "take_over comes first"
        self._producer.begin_transaction()
        number = max(0, progress.version + 1)
        for group, text in self._shard_offset_metadata.items():
            self._offset_metadata.write(self._producer, number, text, group=group)
        self._offset_metadata.write(self._producer, number, progress.to_json())
        self._producer.commit_transaction(_WAIT)

    def _with_retries(self, action: Callable[[], _T], again: Callable[[], _T]) -> _T:
        """Do `action`; when it fails, `again` until it works. A producer that failed is thrown away."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return action()
            except KafkaException as failed:
                self._producer = None
                self._raise_if_final(failed.args[0])
                if time.monotonic() > deadline:
                    raise KafkaError(f"no transaction can be made: {error_text(failed.args[0])}") from None
                time.sleep(0.2)
                action = again

    def _raise_if_final(self, error: confluent_kafka.KafkaError) -> None:
        """Raise what a new attempt would not mend."""
        if error.code() in FENCED:
            # Never by beginning again: the other run may not have recorded itself yet, and would be fenced in turn.
            raise ConcurrentRunError(taken_over_message(self._prefix))
        if error.code() == _Code.INVALID_TRANSACTION_TIMEOUT:
            raise DefinitionError(
                f"'properties.transaction.timeout.ms' = {self._settings['transaction.timeout.ms']} is more than the "
                "broker's transaction.max.timeout.ms allows; lower the one or raise the other"
            )
        if error.code() in (_Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _Code.GROUP_AUTHORIZATION_FAILED):
            raise KafkaError(
                f"the login may not use transactional ids and groups that begin with '{self._prefix}': "
                f"{error_text(error)}; "
                "give it WRITE and DESCRIBE on the prefixed transactional id, READ on the prefixed group"
            )
        if error.code() in (_Code.TOPIC_AUTHORIZATION_FAILED, _Code.CLUSTER_AUTHORIZATION_FAILED):
            raise KafkaError(
                f"the login may not use topic '{self._topic.names[0]}' in transactions: {error_text(error)}; give it "
                "DESCRIBE, WRITE and READ (progress is kept as offsets of the topic)"
            )
        if error.code() in LOGIN_ERRORS:
            raise KafkaError(f"the broker refuses the producer's login: {error_text(error)}")

    def _read(self, notes: OffsetMetadataStore) -> PublishProgress | None:
        found = latest_progress(notes.read(), self._prefix)
        if found is not None and found.pipeline != self._pipeline:
            raise DefinitionError(
                f"'sink.transactional-id-prefix' = '{self._prefix}' belongs to pipeline {found.pipeline!r}; give each "
                "pipeline a prefix of its own"
            )
        return found
