"""Reads a few records of a topic with a plain consumer that joins no group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, Message

from bridge.definition import Topic
from bridge.errors import DefinitionError, KafkaError
from bridge.kafka import admin
from bridge.kafka.client import LastError, error_text, settings_accepted
from bridge.kafka.client_settings import for_consumer
from bridge.offsets import Offsets, TopicPartition

_NO_ANSWER_SECONDS = 20.0
_log = logging.getLogger("bridge.kafka")


@dataclass(frozen=True)
class Start:
    """Where reading begins: `earliest`, `latest` (the newest records of the topic), `offset` or `timestamp`."""

    mode: str
    value: int = 0
    """An offset, or milliseconds since 1970."""

    @classmethod
    def of(cls, text: str) -> Start:
        """Parse `--from`. A timestamp without a zone is UTC. Raises DefinitionError with the legal values."""
        if text in ("earliest", "latest"):
            return cls(text)
        if text.isascii() and text.isdigit():
            return cls("offset", int(text))
        try:
            at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError:
            raise DefinitionError(
                f"--from {text}: legal values are earliest, latest, an offset (42) or a timestamp "
                "(2026-01-31T00:00:00Z)"
            ) from None
        at = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
        return cls("timestamp", round(at.timestamp() * 1000))


@dataclass(frozen=True)
class Record:
    """One record of the broker; `timestamp` is in milliseconds since 1970, None where it has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


Filter = Callable[[Record], bool]


def fetch(topic: Topic, start: Start, limit: int, filter: Filter | None = None) -> list[Record]:
    """Return at most `limit` records of `topic.names`, by timestamp, partition and offset: the first from `start` on,
    or the last for `latest`. Reads at most `limit` records of each partition, or as many as `filter` needs.

    Reads up to the ends that the topic has when this is called. Raises what `kafka.admin` raises, and KafkaError where
    no partition has the offset or the broker does not answer.
    """
    state = admin.describe(topic)
    newest = start.mode == "latest"
    span = limit
    while True:
        begin = _begin(topic, start, state, span if newest and filter is None else None)
        records = _read(topic, begin, state.end, None if newest else limit, filter)
        # Compaction and transaction markers leave fewer records than offsets: begin earlier for the newest ones.
        if not newest or len(records) >= limit or begin == state.earliest:
            break
        span *= 8
    records.sort(key=lambda r: (r.timestamp or 0, r.topic, r.partition, r.offset))
    return records[-limit:] if newest else records[:limit]


def _begin(topic: Topic, start: Start, state: admin.TopicState, span: int | None) -> Offsets:
    """Return the first offset to read of each partition: for the newest records `span` before its end."""
    low, end = state.earliest.by_partition, state.end.by_partition
    if start.mode == "latest":
        return state.earliest if span is None else Offsets({p: max(low[p], end[p] - span) for p in end})
    if start.mode == "timestamp":
        later = admin.offsets_at_timestamp(topic, state.end, start.value).by_partition
        return Offsets({p: later.get(p, end[p]) for p in end})
    if start.mode == "offset":
        if not any(low[p] <= start.value < end[p] for p in end):
            ranges = ", ".join(f"{t}-{p} {low[t, p]} to {e - 1}" for t, p, e in state.end if low[t, p] < e)
            raise KafkaError(
                f"--from {start.value}: no partition of '{topic.title}' has that offset; there are: "
                f"{ranges or 'no records'}"
            )
        return Offsets({p: min(max(low[p], start.value), end[p]) for p in end})
    return state.earliest


def _read(
    topic: Topic, begin: Offsets, end: Offsets, limit: int | None, filter: Filter | None
) -> list[Record]:
    """Return every record from `begin` up to `end`, of each partition at most `limit`."""
    unread = {place: at for place, at in begin.by_partition.items() if at < end.by_partition[place]}
    records: list[Record] = []
    counts = dict.fromkeys(unread, 0)
    if not unread:
        return records
    last_error = LastError()
    with closing(_consumer(topic, last_error)) as consumer:
        consumer.assign([confluent_kafka.TopicPartition(t, p, at) for (t, p), at in unread.items()])
        deadline = time.monotonic() + _NO_ANSWER_SECONDS
        while unread:
            messages = consumer.consume(500, timeout=0.2)
            if messages:
                deadline = time.monotonic() + _NO_ANSWER_SECONDS
            elif time.monotonic() > deadline:
                reason = f": {error_text(last_error.error)}" if last_error.error is not None else ""
                raise KafkaError(
                    f"no answer from {topic.bootstrap_servers} within {_NO_ANSWER_SECONDS:.0f} s{reason}"
                )
            for message in messages:
                place, at = _place(message), message.offset() or 0
                if place not in unread:
                    continue
                if message.error() is None and at < end.by_partition[place]:
                    record = _record(message)
                    if filter is None or filter(record):
                        records.append(record)
                        counts[place] += 1
                if _is_last(message, at, end.by_partition[place]) or counts[place] == limit:
                    del unread[place]
                    consumer.incremental_unassign([confluent_kafka.TopicPartition(*place)])
    return records


def _is_last(message: Message, at: int, end: int) -> bool:
    """Return whether `message` is the last of its partition to read. Raises KafkaError for an error of the broker."""
    error = message.error()
    if error is None:
        return at + 1 >= end
    if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
        return at >= end
    raise KafkaError(f"{message.topic()}-{message.partition()} cannot be read: {error_text(error)}")


def _consumer(topic: Topic, last_error: LastError) -> Consumer:
    settings = {
        **for_consumer(topic),
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 10,
        "error_cb": last_error,
    }
    with settings_accepted():
        return Consumer(settings, logger=_log)


def _place(message: Message) -> TopicPartition:
    return message.topic() or "", message.partition() or 0


def _record(message: Message) -> Record:
    kind, timestamp = message.timestamp()
    headers: Any = message.headers() or ()
    return Record(
        *_place(message),
        offset=message.offset() or 0,
        timestamp=None if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE else timestamp,
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
    )
