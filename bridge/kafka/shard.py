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
from bridge.kafka.client import behind, words
from bridge.kafka.control import newest, taken_over
from bridge.kafka.flush_buffer import FlushBuffer
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import Records, Sent
from bridge.kafka.shard_state import Cursor, ShardSpec
from bridge.kafka.transactions import OffsetMetadata, init, transactional

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
        self, share: ShardSpec, number: int, make_writer: Callable[[Mapping[str, Any]], RecordProducer]
    ) -> None:
        self.sent = Sent()
        """What is committed."""
        self._share, self._number, self._make_writer = share, number, make_writer
        self._id = share.group(number)
        self._settings = transactional(share.producer, self._id)
        # The broker ends a transaction by itself after its timeout; long before that we do.
        self._max_seconds = int(self._settings["transaction.timeout.ms"]) / 1000 / 3
        self._notes = OffsetMetadata(share.consumer, self._id, share.topics)
        self._writer: RecordProducer | None = None
        self._buffer: FlushBuffer | None = None
        self._counted = Sent()
        self._held: list[tuple[Records, Cursor]] = []
        self._rows = self._bytes = 0
        self._begun = 0.0
        if self._superseded():
            raise ConcurrentRunError(taken_over(share.prefix))
        self.cursor: Cursor = self._insisting(self._open, self._open)
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
            self._drop()
            self._notes.close()

    def add(self, records: Records, upto: Cursor) -> None:
        """Send records, which end at `upto`; now and then this commits."""
        self._held.append((records, upto))
        self._rows += len(records.keys)
        self._bytes += _size(records)
        if len(self._held) == 1:
            self._begun = time.monotonic()
            self._trying(self._resend, self._resend)
        else:
            self._trying(lambda: self._hand_over(records), self._resend)
        if self.cursor == upto:  # another attempt of our task has sent the very same
            self._let_go()
        elif self._full():
            self.commit()

    def commit(self) -> None:
        """End the open transaction, if there is one: its records and the cursor after them, or neither."""
        if not self._held:
            return
        upto = self._held[-1][1]
        failpoints.hit("shard.before-commit")
        self._counted = Sent()
        self._trying(lambda: self._commit(upto), lambda: self._recommit(upto))
        failpoints.hit("shard.after-commit")
        self.cursor = upto
        self.sent += self._counted
        self._let_go()

    def _let_go(self) -> None:
        """What is held is committed."""
        self._held.clear()
        self._rows = self._bytes = 0

    def _full(self) -> bool:
        late = time.monotonic() - self._begun > self._max_seconds
        return late or self._rows >= self._share.max_rows or self._bytes >= MAX_BYTES

    def _open(self) -> Cursor:
        """A producer of our own, which fences all others of this id, and where they left off."""
        self._writer = self._make_writer(self._settings)
        init(self._writer.producer, self._share.topics[0])
        failpoints.hit("shard.opened")
        return self._read()

    def _read(self) -> Cursor:
        return self._share.cursor_from(self._notes.read(), self._id)

    def _resend(self) -> None:
        """Begin a transaction and send all that is held for it."""
        writer = self._ready()
        writer.sent = Sent()
        self._buffer = self._new_buffer(writer)
        writer.producer.begin_transaction()
        for records, _ in self._held:
            self._hand_over(records)

    def _hand_over(self, records: Records) -> None:
        if self._buffer is None:
            self._ready().send(records)
        else:
            self._buffer.add(records)

    def _new_buffer(self, writer: RecordProducer) -> FlushBuffer | None:
        share = self._share
        if not share.buffer_rows:
            return None
        return FlushBuffer(writer.send, max_rows=share.buffer_rows, interval_ms=share.buffer_interval_ms)

    def _commit(self, upto: Cursor) -> None:
        writer = self._ready()
        if self._buffer is not None:
            self._buffer.flush()
        writer.flush()
        failpoints.hit("shard.sent")
        self._counted = writer.sent
        self._notes.write(writer.producer, upto.version + 1, self._share.offset_metadata(upto))
        writer.producer.commit_transaction(_WAIT)

    def _recommit(self, upto: Cursor) -> None:
        self._resend()
        self._commit(upto)

    def _ready(self) -> RecordProducer:
        assert self._writer is not None
        return self._writer

    def _trying(self, action: Callable[[], None], again: Callable[[], None]) -> None:
        """Do `action`; when it fails, `again` with a new producer, until it works or need not be done."""
        self._insisting(action, lambda: self._anew(again))

    def _insisting(self, action: Callable[[], _T], again: Callable[[], _T]) -> _T:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        attempt = action
        while True:
            try:
                return attempt()
            except (KafkaException, KafkaError, SystemError) as failed:
                self._give_up_if_hopeless(behind(failed), deadline)
                time.sleep(0.2)
                attempt = again

    def _anew(self, action: Callable[[], None]) -> None:
        """With a new producer: the transaction was committed after all, or `action` makes it again."""
        before = self.cursor
        self.cursor = self._open()
        if self.cursor == self._held[-1][1]:
            return
        if self.cursor != before:
            raise ConcurrentRunError(taken_over(self._share.prefix))
        action()

    def _give_up_if_hopeless(self, failed: KafkaException | KafkaError, deadline: float) -> None:
        heard = self._writer.reason if self._writer is not None else None
        reason = failed.args[0] if isinstance(failed, KafkaException) else heard
        self._drop()
        ours = (
            failed
            if isinstance(failed, KafkaError)
            else KafkaError(f"a transaction of '{self._id}' failed: {words(failed.args[0])}")
        )
        if reason is None or reason.code() in _FINAL:
            raise ours from None
        if time.monotonic() > deadline:
            raise KafkaError(
                f"{ours}; for {_PATIENCE_SECONDS:.0f} s nothing more of {', '.join(self._share.topics)} could be sent. "
                "See to the broker (its log says why it does not answer, or has ended), then start again: what is "
                "committed stays, the rest is sent then"
            ) from None
        if self._superseded():
            raise ConcurrentRunError(taken_over(self._share.prefix)) from None

    def _superseded(self) -> bool:
        """True when the driver that sent us is not the youngest any more: then it is not for us to fence others."""
        notes = OffsetMetadata(self._share.consumer, self._share.prefix, self._share.topics)
        try:
            there = newest(notes.read(), self._share.prefix)
        except KafkaException:
            return False
        finally:
            notes.close()
        return there is not None and there.run != self._share.run

    def _drop(self) -> None:
        """Leave the producer without a trace: an open transaction is taken back, if the broker is there."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abandon()


def _size(records: Records) -> int:
    """Bytes of keys, values and headers, which all stay in memory; a tombstone has a key, too."""
    parts = sum(len(part) for column in (records.keys, records.values) for part in column if part)
    headers = (header for row in records.headers or () for header in row or ())
    return parts + sum(len(name) + len(value or b"") for name, value in headers)
