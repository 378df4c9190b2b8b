"""What a sink's topic comes to: rows by key, or a bag of rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

Rows = Counter[str]
"""Rows as canonical JSON, each with how often it is there."""
_SECONDS = 60.0


def folded(
    bootstrap: str, topic: str, *, by_key: bool, is_changelog: bool = False, is_binary: bool = False
) -> Rows:
    """The rows that all records of a topic come to: the last one of each key without its tombstones, or all of them; of
    a topic of changes (debezium-json) those that are left. Records that are no JSON are compared as they are."""
    decoded = _shown if is_binary else _document
    rows: dict[str, str] = {}
    bag: Rows = Counter()
    for message in _messages(bootstrap, topic):
        value, key = decoded(message.value()), decoded(message.key())
        if is_changelog:
            if value["before"] is not None:
                bag[_canonical(value["before"])] -= 1
            if value["after"] is not None:
                bag[_canonical(value["after"])] += 1
        elif not by_key:
            bag[_canonical(value if key is None else [key, value])] += 1
        elif value is None:
            rows.pop(_canonical(key), None)
        else:
            rows[_canonical(key)] = _canonical(value)
    return Counter(rows.values()) if by_key else Counter({row: n for row, n in bag.items() if n})


def difference(flink: Rows, bridge: Rows) -> str:
    """What is different, with an example of each side; empty if nothing is."""
    missing, more = flink - bridge, bridge - flink
    if not missing and not more:
        return ""
    shown = [
        f"{side}: {rows.total()} rows, such as {min(rows)}"
        for side, rows in (("only Flink", missing), ("only the bridge", more))
        if rows
    ]
    return "; ".join(shown)


def _messages(bootstrap: str, topic: str) -> Iterator[Message]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "flink-scripts",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
    }
    with closing(Consumer(settings)) as consumer:
        for partition in sorted(consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(_SECONDS)
                if message is None:
                    raise RuntimeError(f"{topic}-{partition} has no end within a minute")
                if message.error():
                    break
                yield message


def _document(text: bytes | None) -> Any:
    return None if text is None else json.loads(text, parse_float=Decimal)


def _shown(text: bytes | None) -> Any:
    return None if text is None else text.hex()


def _canonical(document: Any) -> str:
    """JSON of which equal values are the same text: numbers without trailing zeros, keys in their order."""
    return json.dumps(document, sort_keys=True, default=_number, ensure_ascii=False)


def _number(value: object) -> object:
    assert isinstance(value, Decimal)
    whole = value.normalize()
    return int(whole) if whole == whole.to_integral_value() else f"number {whole:f}"
