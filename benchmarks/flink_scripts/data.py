"""The records of all topics, drawn by a seed, in two parts: between them the bridge stops and starts again.

There are updates, deletes, tombstones without a row, equal rows, equal times, NULL in keys of joins and groups, and, in
the second part, rows whose windows were closed by the first one, in both systems.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from benchmarks.flink_scripts.manual_data import manual_topics
from benchmarks.flink_scripts.nexmark_data import events
from benchmarks.topics import producer
from bridge.embedded.broker import Broker

Record = tuple[Any, Any]
"""Key and value of a record as bytes or as JSON documents; None is none."""

_BEGIN = datetime(2026, 11, 25, 10)
_REGIONS = ("north", "south", "west", "", None)
_STATES = ("new", "paid", "sent", None)
_LANES = 3
_PARTITIONS = {"users": 2, "orders": 2, "hits": _LANES}
"""Rows of one partition have an order, which ties need; users and orders have one by key only, hits by lane."""


@dataclass(frozen=True)
class Topics:
    """The records of each source in two parts."""

    parts: tuple[dict[str, list[Record]], dict[str, list[Record]]]

    def send(self, broker: Broker, prefix: str, part: int) -> None:
        """Send one part; the first one creates the topics."""
        sender = producer(broker)
        for name, records in self.parts[part].items():
            if part == 0:
                broker.create_topic(f"{prefix}-{name}", partitions=_PARTITIONS.get(name, 1))
            for key, value in records:
                place = {"partition": value["lane"]} if name == "hits" else {}
                sender.produce(f"{prefix}-{name}", key=_bytes(key), value=_bytes(value), **place)
                sender.poll(0)
            if sender.flush(120):
                raise RuntimeError(f"topic {name}: not all records arrived")


def drawn(seed: int, rows: int = 400, nexmark: int = 2000) -> Topics:
    """Draw the records: some `rows` for each topic, and this many events of Nexmark."""
    draw = random.Random(seed)
    tables = _Tables(draw)
    parts: list[dict[str, list[Record]]] = [{}, {}]
    made = list(events(draw, nexmark))
    for number, part in enumerate(parts):
        part["users"] = list(tables.users(rows))
        part["orders"] = list(tables.orders(rows))
        part["stock"] = list(tables.stock(rows // 2))
        part["visits"] = list(tables.visits(rows, with_late=number == 1))
        part["clicks"] = list(tables.clicks(rows // 2, with_late=number == 1))
        part["hits"] = list(tables.hits(rows // 2))
        part.update(manual_topics(draw, rows // 4))
        part["nexmark"] = made[: nexmark // 2] if number == 0 else made[nexmark // 2 :]
    return Topics((parts[0], parts[1]))


@dataclass
class _Tables:
    """What was sent so far, so that updates and deletes are about rows that exist, most of the time."""

    draw: random.Random
    stocked: dict[str, dict[str, Any]] = field(default_factory=dict)
    viewed: datetime = _BEGIN
    clicked: datetime = _BEGIN
    hit: list[datetime] = field(
        default_factory=lambda: [_BEGIN + timedelta(minutes=2 * lane) for lane in range(_LANES)]
    )

    def users(self, count: int) -> Iterator[Record]:
        for _ in range(count):
            key = {"id": self.draw.randrange(60)}
            if self.draw.random() < 0.15:
                yield key, None
                continue
            yield (
                key,
                {
                    **key,
                    "name": self.draw.choice(["ann", "bob", "Zoë", "", None]),
                    "region": self.draw.choice(_REGIONS),
                    "score": self.draw.choice([None, *range(-3, 12)]),
                    "since": _shown(_BEGIN + timedelta(days=self.draw.randrange(-40, 40))),
                },
            )

    def orders(self, count: int) -> Iterator[Record]:
        for _ in range(count):
            key = {"id": self.draw.randrange(150)}
            if self.draw.random() < 0.1:
                yield key, None
                continue
            yield (
                key,
                {
                    **key,
                    "user_id": self.draw.choice([None, *range(70)]),
                    "amount": self.draw.choice([None, self.draw.randrange(-500, 90_000) / 100]),
                    "status": self.draw.choice(_STATES),
                    "placed": _shown(_BEGIN + timedelta(seconds=self.draw.randrange(5000))),
                },
            )

    def stock(self, count: int) -> Iterator[Record]:
        for _ in range(count):
            sku = f"s{self.draw.randrange(40)}"
            before = self.stocked.get(sku)
            if before is not None and self.draw.random() < 0.3:
                del self.stocked[sku]
                yield None, {"before": before, "after": None, "op": "d"}
                continue
            place = self.draw.choice(["hall", "yard", None])
            after = {"sku": sku, "place": place, "qty": self.draw.choice([None, *range(9)])}
            self.stocked[sku] = after
            yield None, {"before": before, "after": after, "op": "c" if before is None else "u"}

    def visits(self, count: int, *, with_late: bool) -> Iterator[Record]:
        if with_late:
            for number in range(10):
                yield None, self._visit(_BEGIN + timedelta(seconds=number))
        for _ in range(count):
            self.viewed += timedelta(milliseconds=self.draw.choice([0, 0, 300, 900, 2500]))
            row = self._visit(self.viewed - timedelta(milliseconds=self.draw.choice([0, 0, 0, 700, 4000])))
            yield None, row
            if self.draw.random() < 0.05:
                yield None, row

    def _visit(self, at: datetime) -> dict[str, Any]:
        return {
            "user_id": self.draw.choice([None, *range(70)]),
            "page": self.draw.randrange(8),
            "price": self.draw.choice([None, 0, *range(100, 130)]),
            "ts": _shown(at),
            "note": self.draw.choice(["a", "b ", "", None, "ünï"]),
        }

    def clicks(self, count: int, *, with_late: bool) -> Iterator[Record]:
        if with_late:
            for number in range(10):
                yield None, self._click(_BEGIN + timedelta(seconds=number))
        for _ in range(count):
            self.clicked += timedelta(milliseconds=self.draw.choice([0, 600, 2000, 5000]))
            yield None, self._click(self.clicked)

    def _click(self, at: datetime) -> dict[str, Any]:
        return {
            "user_id": self.draw.choice([None, *range(70)]),
            "page": self.draw.randrange(8),
            "ts": _shown(at),
            "target": self.draw.choice(["buy", "back", None]),
        }

    def hits(self, count: int) -> Iterator[Record]:
        """Partitions of which one is minutes behind the others, so that their rows are not late for its watermark."""
        for _ in range(count):
            lane = self.draw.randrange(_LANES)
            self.hit[lane] += timedelta(milliseconds=self.draw.choice([0, 700, 1500, 4000]))
            at = self.hit[lane] - timedelta(milliseconds=self.draw.choice([0, 0, 900, 4900]))
            yield (
                None,
                {
                    "lane": lane,
                    "user_id": self.draw.choice([None, *range(70)]),
                    "ts": _shown(at),
                    "target": self.draw.choice(["buy", "back", None]),
                },
            )


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _bytes(document: Any) -> bytes | None:
    if document is None or isinstance(document, bytes):
        return document
    return json.dumps(document).encode()
