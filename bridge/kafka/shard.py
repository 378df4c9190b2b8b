"""One shard of an exactly-once publish: a transactional producer that knows how far its share has got.

No Spark here: this runs inside the executors' Python workers. A shard's records have one fixed order (version, then
key), so a count tells which of them are in the topic already. Each transaction commits some records together with the
cursor after the last of them. Whatever opens the shard next (a retry, a restart, a zombie) continues at that cursor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
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

__all__ = ["TransactionalShard"]

_Code = confluent_kafka.KafkaError
_WAIT = 30.0
_PATIENCE_SECONDS = 120.0
_T = TypeVar("_T")
MAX_BYTES = 64 * 1024 * 1024
"""A transaction holds not much more; it is kept in memory, to be sent again when its fate is unknown."""

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
"""A new producer would hear the same."""


class TransactionalShard:
    """Sends records in transactions; a context manager that commits the last one, or none after an error.

    `add` what is to be sent, in the shard's order, beginning after `cursor`. Whatever happens between, each record
    is in the topic once for a reader of committed records. After a failure, or an answer that got lost, the producer
    is thrown away, the next one looks where the shard stands, and the open transaction's records are sent again or
    not. Raises ConcurrentRunError when another run took over, KafkaError when the broker refuses a record or stays
    away for two minutes.
    """

    def __init__(
        self, spec: ShardSpec, number: int, make_producer: Callable[[Mapping[str, Any]], RecordProducer]
    ) -> None:
        self.counts = SendCounts()
        """What is committed."""
        self._spec, self._number, self._make_producer = spec, number, make_producer
        self._id = spec.group(number)
        self._settings = transactional_settings(spec.producer, self._id)
        # The broker ends a transaction by itself after its timeout; long before that we do.
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
        """What is committed ends here."""

    def __enter__(self) -> TransactionalShard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.commit()
        finally:
            self._abandon_producer()
            self._offset_metadata.close()

    def add(self, records: Records, upto: Cursor) -> None:
        """Send records, which end at `upto`; now and then this commits."""
        self._uncommitted.append((records, upto))
        self._rows += len(records.keys)
        self._bytes += _size(records)
        if len(self._uncommitted) == 1:
            self._transaction_start = time.monotonic()
            self._with_new_producer(self._resend, self._resend)
        else:
            self._with_new_producer(lambda: self._hand_over(records), self._resend)
        if self.cursor == upto:  # another attempt of our task has sent the very same
            self._clear()
        elif self._full():
            self.commit()

    def commit(self) -> None:
        """End the open transaction, if there is one: its records and the cursor after them, or neither."""
        if not self._uncommitted:
            return
        upto = self._uncommitted[-1][1]
        failpoints.hit("shard.before-commit")
        self._uncommitted_counts = SendCounts()
        self._with_new_producer(lambda: self._commit(upto), lambda: self._recommit(upto))
        failpoints.hit("shard.after-commit")
        self.cursor = upto
        self.counts += self._uncommitted_counts
        self._clear()

    def _clear(self) -> None:
        """What is held is committed."""
        self._uncommitted.clear()
        self._rows = self._bytes = 0

    def _full(self) -> bool:
        late = time.monotonic() - self._transaction_start > self._max_seconds
        return late or self._rows >= self._spec.max_rows or self._bytes >= MAX_BYTES

    def _open(self) -> Cursor:
        """A producer of our own, which fences all others of this id, and where they left off."""
        self._producer = self._make_producer(self._settings)
        init_transactions(self._producer.producer, self._spec.topics[0])
        failpoints.hit("shard.opened")
        return self._read()

    def _read(self) -> Cursor:
        return self._spec.cursor_from(self._offset_metadata.read(), self._id)

    def _resend(self) -> None:
        """Begin a transaction and send all that is held for it."""
        writer = self._open_producer()
        writer.counts = SendCounts()
        self._buffer = self._new_buffer(writer)
        writer.producer.begin_transaction()
        for records, _ in self._uncommitted:
            self._hand_over(records)

    def _hand_over(self, records: Records) -> None:
        if self._buffer is None:
            self._open_producer().send(records)
        else:
            self._buffer.add(records)

    def _new_buffer(self, writer: RecordProducer) -> FlushBuffer | None:
        share = self._spec
        if not share.buffer_rows:
            return None
        return FlushBuffer(writer.send, max_rows=share.buffer_rows, interval_ms=share.buffer_interval_ms)

    def _commit(self, upto: Cursor) -> None:
        writer = self._open_producer()
        if self._buffer is not None:
            self._buffer.flush()
        writer.flush()
        failpoints.hit("shard.sent")
        self._uncommitted_counts = writer.counts
        self._offset_metadata.write(writer.producer, upto.version + 1, self._spec.offset_metadata(upto))
        writer.producer.commit_transaction(_WAIT)

    def _recommit(self, upto: Cursor) -> None:
        self._resend()
        self._commit(upto)

    def _open_producer(self) -> RecordProducer:
        assert self._producer is not None
        return self._producer

    def _with_new_producer(self, action: Callable[[], None], again: Callable[[], None]) -> None:
        """Do `action`; when it fails, `again` with a new producer, until it works or need not be done."""
        self._with_retries(action, lambda: self._reopen(again))

    def _with_retries(self, action: Callable[[], _T], again: Callable[[], _T]) -> _T:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        attempt = action
        while True:
            try:
                return attempt()
            except (KafkaException, KafkaError, SystemError) as failed:
                self._raise_if_final(root_error(failed), deadline)
                time.sleep(0.2)
                attempt = again

    def _reopen(self, action: Callable[[], None]) -> None:
        """With a new producer: the transaction was committed after all, or `action` makes it again."""
        before = self.cursor
        self.cursor = self._open()
        if self.cursor == self._uncommitted[-1][1]:
            return
        if self.cursor != before:
            raise ConcurrentRunError(taken_over_message(self._spec.prefix))
        action()

    def _raise_if_final(self, failed: KafkaException | KafkaError, deadline: float) -> None:
        heard = self._producer.last_error if self._producer is not None else None
        reason = failed.args[0] if isinstance(failed, KafkaException) else heard
        self._abandon_producer()
        ours = (
            failed
            if isinstance(failed, KafkaError)
            else KafkaError(f"a transaction of '{self._id}' failed: {error_text(failed.args[0])}")
        )
        if reason is None or reason.code() in _FINAL:
            raise ours from None
        if time.monotonic() > deadline:
            raise KafkaError(
                f"{ours}; for {_PATIENCE_SECONDS:.0f} s nothing more of {', '.join(self._spec.topics)} could be sent. "
                "See to the broker (its log says why it does not answer, or has ended), then start again: what is "
                "committed stays, the rest is sent then"
            ) from None
        if self._superseded():
            raise ConcurrentRunError(taken_over_message(self._spec.prefix)) from None

    def _superseded(self) -> bool:
        """True when the driver that sent us is not the youngest any more: then it is not for us to fence others."""
        notes = OffsetMetadataStore(self._spec.consumer, self._spec.prefix, self._spec.topics)
        try:
            there = latest_progress(notes.read(), self._spec.prefix)
        except KafkaException:
            return False
        finally:
            notes.close()
        return there is not None and there.run != self._spec.run

    def _abandon_producer(self) -> None:
        """Leave the producer without a trace: an open transaction is taken back, if the broker is there."""
        writer, self._producer = self._producer, None
        if writer is not None:
            writer.abandon()


def _size(records: Records) -> int:
    """Bytes of keys, values and headers, which all stay in memory; a tombstone has a key, too."""
    parts = sum(len(part) for column in (records.keys, records.values) for part in column if part)
    headers = (header for row in records.headers or () for header in row or ())
    return parts + sum(len(name) + len(value or b"") for name, value in headers)
