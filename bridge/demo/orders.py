"""Generates the demo's data: a changelog of orders, like one captured from a database, from a random seed.

Orders are inserted continuously and progress from new to delivered; some are edited, cancelled or deleted, and some
deleted orders are inserted again. The changelog also contains no-op updates and deletes of orders that the topic has
never had. The frequency of changes follows Zipf's law: few orders change often, most seldom.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from itertools import islice
from typing import NamedTuple

from bridge.kafka.client_settings import producer_settings
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import Records

FIRST_ORDER = 1_000_001
"""Lower numbers belong to orders from before the topic existed."""

_NEXT_STATUS = {"new": "paid", "paid": "packed", "packed": "shipped", "shipped": "delivered"}
_FIRST_NAMES = (
    "Ada Béla Chidi Dana Emre Freya Goran Hana Ines Jonas Kaya Linh Mateo Nora Oluwaseun Priya".split()
)
_LAST_NAMES = (
    "Abebe Berg Castillo Demir Eriksen Fischer García Haddad Ito Jansen Kowalski Lindqvist Møller".split()
)

_ZIPF_OFFSET = 50
"""Flattens the top of the Zipf distribution: of 20,000 orders the most frequent has a third of a percent of all
changes."""
_CHANGES_PER_MILLISECOND = 5
"""Changes per millisecond of event time: event time stays slightly behind a writer of 4,000 changes per second."""
_CHUNK_SECONDS = 0.05


class Kind(str, Enum):
    """The kind of a change. The value is the plural that the demo prints."""

    INSERT = "inserts"
    UPDATE = "updates"
    NO_OP = "no-op updates"
    DELETE = "deletes"
    RE_INSERT = "re-inserts"
    UNKNOWN_DELETE = "deletes of unknown keys"


class Order(NamedTuple):
    """A row of the table."""

    order_id: int
    customer: str
    status: str
    quantity: int
    amount: Decimal
    updated_at: datetime


class OrderChange(NamedTuple):
    """One record of the topic: the new state of the order, or None for a delete."""

    kind: Kind
    order_id: int
    order: Order | None


def changes(
    seed: int, keys: int = 20_000, count: int = 120_000, start: datetime | None = None
) -> Iterator[OrderChange]:
    """Yields `count` changes that insert `keys` orders. The same arguments yield the same changes.

    `updated_at` starts at `start` (UTC without zone; default: the current time), never decreases, and advances by one
    second per 5,000 changes on average. Raises ValueError when there are fewer changes than keys.
    """
    if count < keys:
        raise ValueError(f"{count} changes cannot insert {keys} orders")
    chance = random.Random(seed)
    clock = (start or datetime.now(timezone.utc).replace(tzinfo=None)).replace(microsecond=0)
    orders: list[Order | None] = []
    for n in range(count):
        if chance.random() < 1 / _CHANGES_PER_MILLISECOND:
            clock += timedelta(milliseconds=1)
        if not orders or chance.random() * (count - n) < keys - len(orders):
            order = _new_order(chance, FIRST_ORDER + len(orders), clock)
            orders.append(order)
            yield OrderChange(Kind.INSERT, order.order_id, order)
        elif chance.random() < 0.02:
            yield OrderChange(Kind.UNKNOWN_DELETE, chance.randrange(1, FIRST_ORDER), None)
        else:
            index = int(_ZIPF_OFFSET * ((len(orders) / _ZIPF_OFFSET + 1) ** chance.random() - 1))
            kind, orders[index] = _next_change(chance, FIRST_ORDER + index, orders[index], clock)
            yield OrderChange(kind, FIRST_ORDER + index, orders[index])


def _next_change(
    chance: random.Random, order_id: int, order: Order | None, clock: datetime
) -> tuple[Kind, Order | None]:
    if order is None:
        return Kind.RE_INSERT, _new_order(chance, order_id, clock)
    dice = chance.random()
    if dice < 0.08:
        return Kind.NO_OP, order
    if dice < 0.14:
        return Kind.DELETE, None
    if dice < 0.50 and order.status in ("new", "paid"):
        price = order.amount / order.quantity
        quantity = order.quantity % 20 + 1
        order = order._replace(quantity=quantity, amount=(price * quantity).quantize(Decimal("0.01")))
    elif dice > 0.97 and order.status in _NEXT_STATUS:
        order = order._replace(status="cancelled")
    else:  # a delivered or cancelled order starts again
        order = order._replace(status=_NEXT_STATUS.get(order.status, "new"))
    return Kind.UPDATE, order._replace(updated_at=clock)


def _new_order(chance: random.Random, order_id: int, clock: datetime) -> Order:
    customer = f"{chance.choice(_FIRST_NAMES)} {chance.choice(_LAST_NAMES)}"
    quantity = chance.randint(1, 9)
    amount = Decimal(chance.randint(99, 49_999)).scaleb(-2) * quantity
    return Order(order_id, customer, "new", quantity, amount, clock)


def write(
    bootstrap: str,
    topic: str,
    changes: Iterable[OrderChange],
    *,
    rate: int | None = None,
    on_progress: Callable[[int], object] = lambda written: None,
    stop: threading.Event | None = None,
) -> dict[str, int]:
    """Sends `changes` to `topic` in order, in Flink's json format; a deleted order becomes a tombstone.

    Sends at most `rate` records per second, or without `rate` as many as possible. Calls `on_progress` with the number
    of records sent so far, about twenty times per second. `stop` ends it early. Returns the number of records by kind
    after the broker has acknowledged all of them; raises KafkaError when it does not.
    """
    chunk = max(1, int(rate * _CHUNK_SECONDS)) if rate else 5_000
    sent: Counter[str] = Counter({kind.value: 0 for kind in Kind})
    source, started = iter(changes), time.monotonic()
    with RecordProducer(producer_settings({"bootstrap.servers": bootstrap}, checked=True)) as writer:
        while (some := list(islice(source, chunk))) and not (stop and stop.is_set()):
            writer.send(
                Records(
                    [topic] * len(some),
                    [json.dumps({"order_id": c.order_id}).encode() for c in some],
                    [_value(c.order) for c in some],
                )
            )
            sent.update(change.kind.value for change in some)
            on_progress(sent.total())
            if rate:
                time.sleep(max(0.0, started + sent.total() / rate - time.monotonic()))
    return dict(sent)


def _value(order: Order | None) -> bytes | None:
    if order is None:
        return None
    document = order._asdict()
    document["amount"] = float(
        order.amount
    )  # a float represents two decimals below 10^13 exactly enough to print the same digits
    document["updated_at"] = order.updated_at.isoformat(" ", "milliseconds")
    return json.dumps(document, ensure_ascii=False).encode()
