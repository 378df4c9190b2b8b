"""One shard of an exactly-once publish: a transactional producer that continues at the shard's cursor.

No Spark here: this runs inside the executors' Python workers. A shard's records have one fixed order (version, then
key), so a count tells which of them are in the topic already. Each transaction commits some records together with the
cursor after the last of them. Whatever opens the shard next (a retry, a restart, a zombie) continues at that cursor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka import KafkaException

from bridge import failpoints
from bridge.errors import ConcurrentRunError, KafkaError
from bridge.kafka.client import error_text, root_error
from bridge.kafka.control import latest_progress, taken_over_message
from bridge.kafka.flush_buffer import FlushBuffer
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import Records, SendCounts
from bridge.kafka.shard_state import Cursor, ShardSpec
from bridge.kafka.transactions import OffsetMetadataStore, init_transactions, transactional_settings

_Code = confluent_kafka.KafkaError
_WAIT = 30.0
_RETRY_SECONDS = 120.0
_T = TypeVar("_T")

_FINAL = (
    _Code._AUTHENTICATION,
    _Code._SSL,
    _Code.CLUSTER_AUTHORIZATION_FAILED,
    _Code.GROUP_AUTHORIZATION_FAILED,
    _Code.INVALID_RECORD,
    _Code.INVALID_TRANSACTION_TIMEOUT,
    _Code.MSG_SIZE_TOO_LARGE,
    _Code.POLICY_VIOLATION,
    _Code.SASL_AUTHENTICATION_FAILED,
    _Code.TOPIC_AUTHORIZATION_FAILED,
    _Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    _Code.UNKNOWN_TOPIC_OR_PART,
    _Code._UNKNOWN_PARTITION,
    _Code._UNKNOWN_TOPIC,
)
"""Errors that a new producer would meet again."""


class TransactionalShard:
    """Sends records in transactions; a context manager that commits the last one, or none after an error.

    `add` takes the records after `cursor`, in the shard's order. A reader of committed records sees each of them once,
    whatever fails. After a failure or a lost response the shard opens a new producer, which reads the committed cursor,
    and sends the open transaction's records again unless they are committed. Raises ConcurrentRunError when another run
    took over, KafkaError when the broker refuses a record or is away for two minutes.
    """

    def __init__(
        self,
        spec: ShardSpec,
        number: int,
        make_producer: Callable[[Mapping[str, Any]], RecordProducer],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts = SendCounts()
        """What has been committed."""
        self._spec, self._number, self._make_producer, self._clock = spec, number, make_producer, clock
        self._id = spec.group(number)
        self._settings = transactional_settings(spec.producer, self._id)
        # The broker aborts a transaction after its timeout; the shard commits long before that.
        self._max_seconds = int(self._settings["transaction.timeout.ms"]) / 1000 / 3
        self._offset_metadata = OffsetMetadataStore(spec.consumer, self._id, spec.topics)
        self._producer: RecordProducer | None = None
        self._buffer: FlushBuffer | None = None
        self._uncommitted_counts = SendCounts()
        self._uncommitted: list[tuple[Records, Cursor]] = []
        self._rows = self._bytes = 0
        self._transaction_start = 0.0
        if self._superseded():
            raise ConcurrentRunError(taken_over_message(spec.prefix))
        self.cursor: Cursor = self._with_retries(self._open, self._open)
        """The position after the last committed record."""

    def __enter__(self) -> TransactionalShard:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self.commit()
        finally:
            self._abandon_producer()
            self._offset_metadata.close()

    def add(self, records: Records, upto: Cursor) -> None:
        """Send records that end at `upto`; commits when the transaction has reached its maximum size or age."""
        self._uncommitted.append((records, upto))
        self._rows += len(records.keys)
        self._bytes += _size(records)
        if len(self._uncommitted) == 1:
            self._transaction_start = self._clock()
            self._with_new_producer(self._send_uncommitted, self._send_uncommitted)
        else:
            self._with_new_producer(lambda: self._send(records), self._send_uncommitted)
        if self.cursor == upto:  # another attempt of the same task has committed these records
            self._clear()
        elif self._full():
            self.commit()

    def commit(self) -> None:
        """Commit the open transaction, if any: its records and the cursor after them, or neither."""
        if not self._uncommitted:
            return
        upto = self._uncommitted[-1][1]
        failpoints.hit("shard.before-commit")
        self._uncommitted_counts = SendCounts()
        self._with_new_producer(lambda: self._commit(upto), lambda: self._resend_and_commit(upto))
        failpoints.hit("shard.after-commit")
        self.cursor = upto
        self.counts += self._uncommitted_counts
        self._clear()

    def _clear(self) -> None:
        self._uncommitted.clear()
        self._rows = self._bytes = 0

    def _full(self) -> bool:
        late = self._clock() - self._transaction_start > self._max_seconds
        return late or self._rows >= self._spec.max_rows or self._bytes >= self._spec.max_bytes

    def _open(self) -> Cursor:
        """Open a producer, which fences all others of this id, and return the committed cursor."""
        self._producer = self._make_producer(self._settings)
        init_transactions(self._producer.producer, self._spec.topics[0])
        failpoints.hit("shard.opened")
        return self._spec.cursor_from(self._offset_metadata.read(), self._id)

    def _send_uncommitted(self) -> None:
        """Begin a transaction and send all uncommitted records in it."""
        producer = self._open_producer()
        producer.counts = SendCounts()
        self._buffer = self._new_buffer(producer)
        producer.producer.begin_transaction()
        for records, _ in self._uncommitted:
            self._send(records)

    def _send(self, records: Records) -> None:
        if self._buffer is None:
            self._open_producer().send(records)
        else:
            self._buffer.add(records)

    def _new_buffer(self, producer: RecordProducer) -> FlushBuffer | None:
        rows, interval_ms = self._spec.buffer_rows, self._spec.buffer_interval_ms
        return FlushBuffer(producer.send, max_rows=rows, interval_ms=interval_ms) if rows else None

    def _commit(self, upto: Cursor) -> None:
        producer = self._open_producer()
        if self._buffer is not None:
            self._buffer.flush()
        producer.flush()
        failpoints.hit("shard.sent")
        self._uncommitted_counts = replace(producer.counts, transactions=1)
        metadata = self._spec.offset_metadata(upto)
        self._offset_metadata.write(producer.producer, upto.version + 1, metadata)
        producer.producer.commit_transaction(_WAIT)

    def _resend_and_commit(self, upto: Cursor) -> None:
        self._send_uncommitted()
        self._commit(upto)

    def _open_producer(self) -> RecordProducer:
        assert self._producer is not None
        return self._producer

    def _with_new_producer(self, action: Callable[[], None], retry: Callable[[], None]) -> None:
        """Run `action`; after a failure open a new producer and run `retry`, unless the transaction is committed."""
        self._with_retries(action, lambda: self._reopen(retry))

    def _with_retries(self, action: Callable[[], _T], retry: Callable[[], _T]) -> _T:
        """Run `action`, and after a failure `retry` until it succeeds."""
        deadline = time.monotonic() + _RETRY_SECONDS
        attempt = action
        while True:
            try:
                return attempt()
            except (KafkaException, KafkaError, SystemError) as failed:
                self._raise_if_final(root_error(failed), deadline)
                time.sleep(0.2)
                attempt = retry

    def _reopen(self, retry: Callable[[], None]) -> None:
        """Open a new producer, and run `retry` unless the failed transaction was committed after all."""
        before = self.cursor
        self.cursor = self._open()
        if self.cursor == self._uncommitted[-1][1]:
            return
        if self.cursor != before:
            raise ConcurrentRunError(taken_over_message(self._spec.prefix))
        retry()

    def _raise_if_final(self, failed: KafkaException | KafkaError, deadline: float) -> None:
        """Abandon the producer, and raise an error that a new producer cannot solve or that lasts until `deadline`."""
        last_error = self._producer.last_error if self._producer is not None else None
        cause = failed.args[0] if isinstance(failed, KafkaException) else last_error
        self._abandon_producer()
        if isinstance(failed, KafkaError):
            error = failed
        else:
            error = KafkaError(f"a transaction of '{self._id}' failed: {error_text(failed.args[0])}")
        if cause is None or cause.code() in _FINAL:
            raise error from None
        if time.monotonic() > deadline:
            raise KafkaError(
                f"{error}; no more records of {', '.join(self._spec.topics)} could be sent for {_RETRY_SECONDS:.0f} s. "
                "Check the broker (its log names the reason), then start the publish again: committed records stay, "
                "the others are sent then"
            ) from None
        if self._superseded():
            raise ConcurrentRunError(taken_over_message(self._spec.prefix)) from None

    def _superseded(self) -> bool:
        """Return True when a newer run has recorded progress: this shard must not fence that run's shards."""
        store = OffsetMetadataStore(self._spec.consumer, self._spec.prefix, self._spec.topics)
        try:
            progress = latest_progress(store.read(), self._spec.prefix)
        except KafkaException:
            return False
        finally:
            store.close()
        return progress is not None and progress.run != self._spec.run

    def _abandon_producer(self) -> None:
        """Drop the producer and abort its open transaction, if the broker answers."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.abandon()


def _size(records: Records) -> int:
    """Return the bytes of keys, values and headers, all of which stay in memory."""
    headers = (header for row in records.headers or () for header in row or ())
    return records.size + sum(len(name) + len(value or b"") for name, value in headers)
