"""The demo's changelog: its mix of changes, its determinism, and its records in the topic."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import islice, pairwise

import pytest

from bridge import config
from bridge.demo.orders import FIRST_ORDER, Kind, Order, OrderChange, changes, write
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from bridge.rows import Change, RowKind, replay
from tests.kafka.topics import Fresh
from tests.reader import messages

START = datetime(2026, 1, 1, 12)


@pytest.fixture(scope="module")
def history() -> list[OrderChange]:
    return list(changes(7, start=START))


def test_the_size_the_demo_promises(history: list[OrderChange]) -> None:
    assert len(history) >= 100_000
    assert len({c.order_id for c in history if c.order}) >= 20_000


def test_every_kind_is_in_the_mix(history: list[OrderChange]) -> None:
    counts = Counter(c.kind for c in history)
    assert min(counts[kind] for kind in Kind) > 1_000
    assert counts[Kind.UPDATE] > len(history) / 2


def test_each_kind_is_what_it_says(history: list[OrderChange]) -> None:
    table: dict[int, Order] = {}
    seen: set[int] = set()
    for kind, key, order in history:
        before = table.get(key)
        truth = {
            Kind.INSERT: order is not None and key not in seen,
            Kind.UPDATE: order is not None and before is not None and order != before,
            Kind.NO_OP: order is not None and order == before,
            Kind.DELETE: order is None and before is not None,
            Kind.RE_INSERT: order is not None and before is None and key in seen,
            Kind.UNKNOWN_DELETE: order is None and key not in seen,
        }
        assert [k for k in Kind if truth[k]] == [kind]
        if order is None:
            table.pop(key, None)
        else:
            table[key] = order
            seen.add(key)


def test_it_folds_to_a_table_of_its_own_rows(history: list[OrderChange]) -> None:
    table = replay(
        Change(RowKind.UPDATE_AFTER, c.order_id, c.order._asdict())
        if c.order
        else Change(RowKind.DELETE, c.order_id)
        for c in history
    )
    counts = Counter(c.kind for c in history)
    assert len(table) == counts[Kind.INSERT] + counts[Kind.RE_INSERT] - counts[Kind.DELETE]
    assert all(row["order_id"] == key for key, row in table.items())


def test_the_same_seed_yields_the_same_changes() -> None:
    def story(seed: int) -> list[OrderChange]:
        return list(changes(seed, keys=50, count=500, start=START))

    assert story(1) == story(1)
    assert story(1) != story(2)


def test_a_few_keys_are_hot(history: list[OrderChange]) -> None:
    touched = sorted(Counter(c.order_id for c in history).values(), reverse=True)
    assert touched[0] > 50 * touched[len(touched) // 2]
    assert sum(touched[: len(touched) // 100]) > 0.2 * len(history)


def test_time_passes_and_never_goes_back(history: list[OrderChange]) -> None:
    fresh = [c.order.updated_at for c in history if c.order and c.kind is not Kind.NO_OP]
    assert all(a <= b for a, b in pairwise(fresh))
    assert timedelta(seconds=20) < fresh[-1] - fresh[0] < timedelta(seconds=30)


def test_the_clock_starts_now() -> None:
    first = next(changes(1)).order
    assert first is not None
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    assert timedelta(0) <= now - first.updated_at < timedelta(seconds=5)


def test_orders_stay_within_the_suite_s_ranges(history: list[OrderChange]) -> None:
    orders = [c.order for c in history if c.order]
    assert {o.status for o in orders} == {"new", "paid", "packed", "shipped", "delivered", "cancelled"}
    assert 1 <= min(o.quantity for o in orders) <= max(o.quantity for o in orders) <= 100
    assert 0 < min(o.amount for o in orders) <= max(o.amount for o in orders) <= 100_000
    assert {o.amount.as_tuple().exponent for o in orders} == {-2}


def test_an_order_has_the_columns_of_the_pipeline_file() -> None:
    assert Order._fields == config.load("conf/orders.yaml").topic.schema.names


def test_fewer_changes_than_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="10 changes cannot insert 20 orders"):
        next(changes(1, keys=20, count=10))


def test_what_is_written_is_the_changelog_in_flink_s_json(fresh: Fresh, broker: Broker) -> None:
    topic = fresh("orders", partitions=4, config={"cleanup.policy": "compact"})
    story = list(changes(3, keys=200, count=2_000, start=START))
    heard: list[int] = []
    counts = write(broker.bootstrap, topic, story, rate=20_000, on_progress=heard.append)
    assert counts == {k.value: n for k, n in Counter(c.kind for c in story).items()}
    assert heard[-1] == 2_000 and len(heard) > 1

    records = list(messages(broker.bootstrap, topic))
    assert {message.partition() for message in records} == {0, 1, 2, 3}
    sent: dict[int, list[Order | None]] = {}
    for change in story:
        sent.setdefault(change.order_id, []).append(change.order)
    got: dict[int, list[Order | None]] = {}
    for message in records:
        key, value = message.key(), message.value()
        assert key is not None
        document = json.loads(key)
        assert list(document) == ["order_id"]
        got.setdefault(document["order_id"], []).append(None if value is None else _parsed(value.decode()))
    assert got == sent


def _parsed(text: str) -> Order:
    """Parses the order in a JSON value, with its time in Flink's SQL format."""
    document = json.loads(text, parse_float=Decimal)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", document["updated_at"])
    document["updated_at"] = datetime.strptime(document["updated_at"], "%Y-%m-%d %H:%M:%S.%f")
    document["amount"] = Decimal(document["amount"]).quantize(Decimal("0.01"))
    return Order(**document)


def test_the_rate_is_kept_and_stop_ends_it_early(fresh: Fresh, broker: Broker) -> None:
    topic = fresh("orders", partitions=1)
    began, stop = time.monotonic(), threading.Event()

    def progress(written: int) -> None:
        if written >= 500:
            stop.set()

    counts = write(
        broker.bootstrap,
        topic,
        changes(1, keys=500, count=5_000),
        rate=1_000,
        on_progress=progress,
        stop=stop,
    )
    assert sum(counts.values()) == 500
    assert time.monotonic() - began >= 0.5


def test_a_topic_that_takes_nothing_is_an_error(fresh: Fresh, broker: Broker) -> None:
    topic = fresh("tiny", partitions=1, config={"max.message.bytes": "50"})
    with pytest.raises(KafkaError, match=f"{topic}-0 did not take a record"):
        write(broker.bootstrap, topic, islice(changes(1), 100))


def test_the_first_order_is_the_first_of_its_time(history: list[OrderChange]) -> None:
    assert history[0].kind is Kind.INSERT and history[0].order_id == FIRST_ORDER
