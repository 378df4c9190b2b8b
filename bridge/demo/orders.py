"""The demo's shop: a changelog of orders as it might come from a database, made up from a seed.

Orders come in all the time and walk from new to delivered; some are edited, cancelled, deleted, and now and then
one that was deleted comes back. Whoever feeds such a topic also repeats itself (no-op updates) and deletes
orders the topic has never seen. A few orders change again and again, most of them seldom.
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

from bridge.kafka.producer import RecordProducer
from bridge.kafka.producer_settings import producer_settings
from bridge.kafka.records import Records

__all__ = ["FIRST_ORDER", "Kind", "Order", "OrderChange", "changes", "write"]

FIRST_ORDER = 1_000_001
"""Numbers below belong to orders of a time before the topic."""

_NEXT_STATUS = {"new": "paid", "paid": "packed", "packed": "shipped", "shipped": "delivered"}
_FIRST_NAMES = (
    "Ada Béla Chidi Dana Emre Freya Goran Hana Ines Jonas Kaya Linh Mateo Nora Oluwaseun Priya".split()
)
_LAST_NAMES = (
    "Abebe Berg Castillo Demir Eriksen Fischer García Haddad Ito Jansen Kowalski Lindqvist Møller".split()
)

_ZIPF_OFFSET = 50
"""Flattens the top of Zipf's curve: the hottest of 20,000 orders takes a third of a percent of all changes."""
_CHANGES_PER_MILLISECOND = 5
"""Changes in a millisecond of the shop's clock, which so stays a little behind a writer of 4,000 a second."""
_CHUNK_SECONDS = 0.05


class Kind(str, Enum):
    """What happened in the shop. The value is the plural people read."""

    INSERT = "inserts"
    UPDATE = "updates"
    NO_OP = "no-op updates"
    DELETE = "deletes"
    RE_INSERT = "re-inserts"
    UNKNOWN_DELETE = "deletes of unknown keys"


class Order(NamedTuple):
    """A row of the table, column for column."""

    order_id: int
    customer: str
    status: str
    quantity: int
    amount: Decimal
    updated_at: datetime


class OrderChange(NamedTuple):
    """One record of the topic: the order as it is from now on, or None when it is deleted."""

    kind: Kind
    order_id: int
    order: Order | None


def changes(
    seed: int, keys: int = 20_000, count: int = 120_000, start: datetime | None = None
) -> Iterator[OrderChange]:
    """`count` changes of orders, `keys` of which are inserted; the same for the same seed, numbers and start.

    `updated_at` begins at `start` (UTC without zone; default: now), never goes back, and passes at 5,000 changes
    a second. Raises ValueError when there are fewer changes than keys.
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
    else:  # a closed order that is touched again is a standing one: it begins anew
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
    """Send `changes` to `topic` as Flink's json format writes them, in order; a deleted order is a tombstone.

    At most `rate` records a second, as fast as it goes without one. `on_progress` hears how many have been handed
    over, about twenty times a second. `stop` ends it early. Returns the records sent, counted by kind, once the
    broker has acknowledged all of them; raises KafkaError when it does not.
    """
    chunk = max(1, int(rate * _CHUNK_SECONDS)) if rate else 5_000
    sent: Counter[str] = Counter({kind.value: 0 for kind in Kind})
    source, started = iter(changes), time.monotonic()
    with RecordProducer(producer_settings({"bootstrap.servers": bootstrap}, checked=True)) as writer:
        while (some := list(islice(source, chunk))) and not (stop and stop.is_set()):
            writer.send(
                Records(
                    [topic] * len(some), [_key(c.order_id) for c in some], [_value(c.order) for c in some]
                )
            )
            sent.update(change.kind.value for change in some)
            on_progress(sent.total())
            if rate:
                time.sleep(max(0.0, started + sent.total() / rate - time.monotonic()))
    return dict(sent)


def _key(order_id: int) -> bytes:
    return json.dumps({"order_id": order_id}).encode()


def _value(order: Order | None) -> bytes | None:
    if order is None:
        return None
    document = order._asdict()
    document["amount"] = float(order.amount)  # two decimals below 10^13 survive it digit by digit
    document["updated_at"] = order.updated_at.isoformat(" ", "milliseconds")
    return json.dumps(document, ensure_ascii=False).encode()
