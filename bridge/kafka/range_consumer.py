"""Reads offset ranges of partitions in a Python worker, and keeps of their records what a `RangePart` keeps.

Consumers stay open in the worker between tasks: a range that begins where the last one ended goes on with the records
that librdkafka has fetched meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from bridge.errors import GapError, KafkaError
from bridge.kafka.client import LOGIN_ERRORS, LastError, error_text
from bridge.kafka.range_parts import RangePart
from bridge.kafka.read_counts import ReadCounts

_Name: TypeAlias = tuple[str, int]
_Code = confluent_kafka.KafkaError

_POLL_RECORDS, _POLL_BYTES = 20_000, 16 << 20
_FIRST_RECORD_BYTES = 32 << 10
"""Records are polled in small numbers until it is known how large they are."""
_POLL_SECONDS = 0.05
"""`consume` waits so long for records that a range with gaps does not have."""
_STALLED_SECONDS = 3.0
_OPEN_CONSUMERS = 16
_SINGLE_PARTITIONS = 4
"""Up to so many partitions of a task have a consumer each, which goes on where it is; more share one."""

_GONE = (_Code._AUTO_OFFSET_RESET, _Code.OFFSET_OUT_OF_RANGE)
_NO_PARTITION = (_Code._UNKNOWN_PARTITION, _Code.UNKNOWN_TOPIC_OR_PART, _Code._UNKNOWN_TOPIC)
_REFUSED = (*LOGIN_ERRORS, _Code.TOPIC_AUTHORIZATION_FAILED)
"""A refused group is none: librdkafka looks for its coordinator, but the consumers do not use the group."""

_SETTINGS: dict[str, Any] = {
    "enable.partition.eof": True,
    # A range whose records are gone is an error, never another range.
    "auto.offset.reset": "error",
    # What a consumer has fetched beyond a range is lost where another worker reads on.
    "queued.min.messages": 50_000,
    "queued.max.messages.kbytes": 16_384,
    "fetch.queue.backoff.ms": 5,
    # The end of a range that ends with a transaction marker is known only after a request that finds no records.
    "fetch.wait.max.ms": 25,
}

_log = logging.getLogger("bridge.kafka")
_log.addHandler(logging.NullHandler())


class _OpenConsumer:
    """A consumer, and the offset after the last record that it returned of each of its partitions."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.last_error = LastError()
        self.client = Consumer({**settings, **_SETTINGS, "error_cb": self.last_error}, logger=_log)
        self.positions: dict[_Name, int] = {}

    def go_to(self, positions: Mapping[_Name, int]) -> None:
        """Continue at `positions`; keeps what is fetched already where the consumer is there."""
        if self.positions != positions:
            self.assign(positions)

    def assign(self, positions: Mapping[_Name, int]) -> None:
        self.client.assign([TopicPartition(t, p, offset) for (t, p), offset in positions.items()])
        self.positions = dict(positions)


_consumers: OrderedDict[tuple[Any, ...], _OpenConsumer] = OrderedDict()


def close_consumers() -> None:
    """Close the consumers that this process has open."""
    while _consumers:
        _consumers.popitem()[1].client.close()


def read_ranges(
    settings: Mapping[str, Any], parts: Sequence[RangePart], *, timeout: float, limit_bytes: int
) -> list[int]:
    """Add the records of each range to its part. Returns where each part ends: at the end of its range, or earlier,
    where reading stopped because the parts keep more than `limit_bytes`; then some may have no record yet.

    `settings` are those of `client_settings.for_consumer`. A range ends by position: transaction markers,
    aborted records and compacted offsets in it are neither added nor waited for.

    Raises GapError where records of a range are no longer available; KafkaError for a login or a right that the broker
    refuses, and when no record arrives within `timeout` seconds; and what a part raises.
    """
    single = len(parts) <= _SINGLE_PARTITIONS
    groups = [[part] for part in parts] if single else [list(parts)]
    readers = [_Reader(settings, group, part_of_key=single) for group in groups]
    try:
        for reader in readers:
            limit_bytes = reader.read(timeout, limit_bytes)
            if limit_bytes < 0:
                break
    finally:
        for reader in readers:
            reader.release()
        while len(_consumers) > _OPEN_CONSUMERS:
            _consumers.popitem(last=False)[1].client.close()
    reached = {name: position for reader in readers for name, position in reader.positions.items()}
    return [min(reached[_name(part)], part.range.end) for part in parts]


def _name(part: RangePart) -> _Name:
    return part.range.topic, part.range.partition


class _Reader:
    """Reads ranges with one consumer. Making it starts the fetching."""

    def __init__(self, settings: Mapping[str, Any], parts: Sequence[RangePart], *, part_of_key: bool) -> None:
        self._parts = {_name(part): part for part in parts}
        self._key = (tuple(sorted(settings.items())), *(self._parts if part_of_key else ()))
        opened = _consumers.pop(self._key) if self._key in _consumers else None
        self._consumer = opened or _OpenConsumer(settings)
        self._consumer.go_to({name: part.range.start for name, part in self._parts.items()})
        self._failed = False
        self._records = self._bytes = 0
        """Of what was taken so far."""

    @property
    def positions(self) -> Mapping[_Name, int]:
        """The offset after the last record that was taken of each partition."""
        return self._consumer.positions

    def release(self) -> None:
        """Keep the consumer open for the next task, unless it has failed."""
        if self._failed:
            self._consumer.client.close()
        else:
            _consumers[self._key] = self._consumer

    def read(self, timeout: float, limit: int) -> int:
        """Read the ranges; returns what is left of `limit`, negative if it was exceeded. Raises as `read_ranges`."""
        try:
            return self._read(timeout, limit)
        except BaseException:
            self._failed = True
            raise

    def _read(self, timeout: float, limit: int) -> int:
        consumer = self._consumer
        unread = {name: part.range.end for name, part in self._parts.items()}
        last_record = last_assigned = time.monotonic()
        uncounted = limit
        while unread:
            wanted = sum(end - consumer.positions[name] for name, end in unread.items())
            messages = consumer.client.consume(min(self._at_once(uncounted), max(wanted, 1)), _POLL_SECONDS)
            now = time.monotonic()
            if messages:
                last_record = last_assigned = now
                uncounted -= self._take(messages)
                if uncounted < 0:  # superseded values are counted up to here
                    uncounted = limit - sum(part.size() for part in self._parts.values())
                    if uncounted < limit // 8:  # counting again and again would take longer than reading
                        return -1
            else:
                self._check_silence(unread, now - last_record, timeout)
                if now - last_assigned > _STALLED_SECONDS:
                    # A consumer reports the end of a partition once. Where the rest of a range is transaction markers,
                    # a second report could be waited for in vain.
                    consumer.assign(consumer.positions)
                    last_assigned = now
            unread = {name: end for name, end in unread.items() if consumer.positions[name] < end}
        return uncounted

    def _at_once(self, left: int) -> int:
        """How many records to poll, so that little more than `left` bytes are taken."""
        size = self._bytes // self._records if self._records else _FIRST_RECORD_BYTES
        return min(_POLL_RECORDS, max(1, min(_POLL_BYTES, left) // max(1, size)))

    def _take(self, messages: Sequence[Message]) -> int:
        """Add the messages to their parts and store their positions; returns their bytes. Records at or after the end
        of a range are left out."""
        positions = self._consumer.positions
        name: _Name = ("", -1)
        end = position = size = 0
        part: RangePart | None = None
        taken: list[Message] = []
        for message in messages:
            offset = message.offset()
            if message.partition() != name[1] or message.topic() != name[0]:
                if _is_about_group(message):
                    continue
                if part is not None:
                    positions[name], size = position, size + self._add(part, taken)
                name = (message.topic() or "", message.partition() or 0)
                part = self._part(name, message)
                end, position, taken = part.range.end, positions[name], []
            error = message.error()
            if error is not None:
                position = _position_after(error, name, offset or 0, position)
                continue
            assert offset is not None
            position = offset + 1
            if offset < end:
                taken.append(message)
        if part is not None:
            positions[name], size = position, size + self._add(part, taken)
        return size

    def _add(self, part: RangePart, messages: Sequence[Message]) -> int:
        added = part.add(messages)
        part.read += ReadCounts.of(messages, added.bytes)
        self._records, self._bytes = self._records + len(messages), self._bytes + added.bytes
        return added.kept

    def _part(self, name: _Name, message: Message) -> RangePart:
        part = self._parts.get(name)
        if part is None:
            error = message.error()
            what = error_text(error) if error is not None else f"a record of {name[0]}-{name[1]}"
            raise KafkaError(f"{_names(self._parts)} cannot be read: {what}")
        return part

    def _check_silence(self, unread: Mapping[_Name, int], seconds: float, timeout: float) -> None:
        error = self._consumer.last_error.error
        if error is not None and error.code() in _REFUSED:
            raise KafkaError(f"{_names(unread)} cannot be read: {error_text(error)}")
        if seconds > timeout and error is not None and error.code() in _NO_PARTITION:
            raise GapError(f"{_names(unread)}: the partition no longer exists: {error_text(error)}")
        if seconds > timeout:
            reason = f": {error_text(error)}" if error is not None else ""
            raise KafkaError(
                f"{_names(unread)} cannot be read: no record within {timeout:.0f} s{reason}; check that Spark's "
                "executors reach the addresses that the brokers advertise"
            )


def _is_about_group(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == _Code.GROUP_AUTHORIZATION_FAILED


def _position_after(error: confluent_kafka.KafkaError, name: _Name, offset: int, position: int) -> int:
    """Return the position that the event of a partition's end reports. Raises for every other event."""
    if error.code() == _Code._PARTITION_EOF:
        return max(position, offset)
    where = f"{name[0]}-{name[1]} from offset {position} on"
    if error.code() in _GONE:
        raise GapError(f"{where} is no longer available: {error_text(error)}")
    way_out = "; give it READ on the topic" if error.code() == _Code.TOPIC_AUTHORIZATION_FAILED else ""
    raise KafkaError(f"{where} cannot be read: {error_text(error)}{way_out}") from KafkaException(error)


def _names(partitions: Mapping[_Name, object]) -> str:
    names = [f"{topic}-{partition}" for topic, partition in list(partitions)[:3]]
    more = len(partitions) - len(names)
    return ", ".join(names) + (f" and {more} more partitions" if more else "")
