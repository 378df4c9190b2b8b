"""A few records of a topic, read by a plain consumer that joins no group."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message

from bridge.definition import Topic
from bridge.errors import DefinitionError, KafkaError
from bridge.kafka import admin
from bridge.kafka.client import LastError, error_text
from bridge.kafka.client_settings import for_librdkafka, read_committed
from bridge.offsets import Offsets, TopicPartition

__all__ = ["Filter", "Record", "Start", "fetch"]

_SILENCE_SECONDS = 20.0
_log = logging.getLogger("bridge.kafka")


@dataclass(frozen=True)
class Start:
    """Where reading begins: `earliest`, `latest` (the newest records that are there), `offset` or `timestamp`."""

    mode: str
    value: int = 0
    """An offset, or milliseconds since 1970."""

    @classmethod
    def of(cls, text: str) -> Start:
        """Read `--from`. A timestamp without a zone is UTC. Raises DefinitionError naming the legal values."""
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
    """One record as the broker has it; `timestamp` is in milliseconds since 1970, None where it has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


Filter = Callable[[Record], bool]


def fetch(topic: Topic, start: Start, limit: int, wanted: Filter | None = None) -> list[Record]:
    """At most `limit` records of `topic.names`, by timestamp, partition and offset: the first ones from `start` on, the
    last ones for `latest`. Of each partition at most `limit` are looked at, or as many as a filter needs.

    Reads up to the ends that the topic has when this is called. Raises KafkaError as `kafka.admin`, and where an offset
    lies in no partition or the broker falls silent.
    """
    state = admin.describe(topic)
    newest = start.mode == "latest"
    span = limit
    while True:
        begin = _begin(topic, start, state, span if newest and wanted is None else None)
        found = _read(topic, begin, state.end, None if newest else limit, wanted)
        # Compaction and transaction markers leave fewer records than offsets: look further back for the newest ones.
        if not newest or len(found) >= limit or begin == state.earliest:
            break
        span *= 8
    found.sort(key=lambda r: (r.timestamp or 0, r.topic, r.partition, r.offset))
    return found[-limit:] if newest else found[:limit]


def _begin(topic: Topic, start: Start, state: admin.TopicState, span: int | None) -> Offsets:
    """The first offset to read of each partition; `span` is how far before its end, for the newest records."""
    low, end = state.earliest.by_partition, state.end.by_partition
    if start.mode == "latest":
        return state.earliest if span is None else Offsets({p: max(low[p], end[p] - span) for p in end})
    if start.mode == "timestamp":
        later = admin.offsets_at_timestamp(topic, state.end, start.value).by_partition
        return Offsets({p: later.get(p, end[p]) for p in end})
    if start.mode == "offset":
        if not any(low[p] <= start.value < end[p] for p in end):
            there = ", ".join(f"{t}-{p} {low[t, p]} to {e - 1}" for t, p, e in state.end if low[t, p] < e)
            raise KafkaError(
                f"--from {start.value}: no partition of '{topic.title}' has that offset; there are: "
                f"{there or 'no records'}"
            )
        return Offsets({p: min(max(low[p], start.value), end[p]) for p in end})
    return state.earliest


def _read(
    topic: Topic, begin: Offsets, end: Offsets, limit: int | None, wanted: Filter | None
) -> list[Record]:
    """Every record from `begin` up to `end`, of each partition at most `limit`."""
    left = {place: at for place, at in begin.by_partition.items() if at < end.by_partition[place]}
    found: list[Record] = []
    taken = dict.fromkeys(left, 0)
    if not left:
        return found
    heard = LastError()
    with closing(_consumer(topic, heard)) as consumer:
        consumer.assign([confluent_kafka.TopicPartition(t, p, at) for (t, p), at in left.items()])
        deadline = time.monotonic() + _SILENCE_SECONDS
        while left:
            messages = consumer.consume(500, timeout=0.2)
            if messages:
                deadline = time.monotonic() + _SILENCE_SECONDS
            elif time.monotonic() > deadline:
                said = f": {error_text(heard.error)}" if heard.error is not None else ""
                raise KafkaError(
                    f"no answer from {topic.bootstrap_servers} within {_SILENCE_SECONDS:.0f} s{said}"
                )
            for message in messages:
                place, at = _place(message), message.offset() or 0
                if place not in left:
                    continue
                if message.error() is None and at < end.by_partition[place]:
                    record = _record(message)
                    if wanted is None or wanted(record):
                        found.append(record)
                        taken[place] += 1
                if _is_last(message, at, end.by_partition[place]) or taken[place] == limit:
                    del left[place]
                    consumer.incremental_unassign([confluent_kafka.TopicPartition(*place)])
    return found


def _is_last(message: Message, at: int, end: int) -> bool:
    """Whether its partition has no more to give. Raises KafkaError for what the broker refuses."""
    error = message.error()
    if error is None:
        return at + 1 >= end
    if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
        return at >= end
    raise KafkaError(f"{message.topic()}-{message.partition()} cannot be read: {error_text(error)}")


def _consumer(topic: Topic, heard: LastError) -> Consumer:
    settings = {
        **for_librdkafka(topic.properties),
        "group.id": topic.group,  # librdkafka wants one; it is never joined, and nothing is committed
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 10,
        "isolation.level": "read_committed" if read_committed(topic.properties) else "read_uncommitted",
        "error_cb": heard,
    }
    try:
        return Consumer(settings, logger=_log)
    except KafkaException as refused:
        raise KafkaError(f"librdkafka refuses the 'properties.*': {error_text(refused.args[0])}") from None


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
