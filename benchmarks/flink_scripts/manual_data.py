"""The records of the topics that the scripts of the manuals read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

_Record = tuple[Any, Any]
_BEGIN = datetime(2026, 11, 25, 10)


def manual_topics(draw: random.Random, count: int) -> dict[str, list[_Record]]:
    """So many records for each topic."""
    return {
        "pageviews": [(None, _pageview(draw)) for _ in range(count)],
        "product_orders": [(None, _order(draw, n)) for n in range(count)],
        "user_events": [
            (None, _behavior(draw) | {"category": draw.choice(["tea", "", None])}) for _ in range(count)
        ],
        "behaviors_csv": [(None, _csv(_behavior(draw))) for _ in range(count)],
        "behaviors_json": list(_some_broken(draw, count)),
        "behaviors_keyed": [_keyed(draw) for _ in range(count)],
        "behaviors_versioned": [_versioned(draw) for _ in range(count)],
        "behaviors_changed": list(_changed(draw, count)),
    }


def _pageview(draw: random.Random) -> dict[str, Any]:
    return {
        "user_id": draw.choice([None, *range(30)]),
        "page_id": draw.randrange(9),
        "viewtime": _time(draw),
        "user_region": draw.choice(["north", "south", "", "Zoë"]),
    }


def _order(draw: random.Random, number: int) -> dict[str, Any]:
    amount = draw.choice([None, 0, draw.randrange(-500, 90_000) / 100])
    return {
        "order_id": number,
        "product": draw.choice(["tea", None]),
        "amount": amount,
        "created_at": _time(draw),
    }


def _behavior(draw: random.Random) -> dict[str, Any]:
    return {
        "user_id": draw.choice([None, *range(9)]),
        "item_id": draw.randrange(2**40),
        "behavior": draw.choice(["buy", "a, b", 'say "so"', None, " x "]),
    }


def _csv(row: dict[str, Any]) -> bytes:
    quoted = "" if row["behavior"] is None else '"' + row["behavior"].replace('"', '""') + '"'
    return f"{row['user_id'] or 0},{row['item_id']},{quoted}".encode()


def _some_broken(draw: random.Random, count: int) -> Iterator[_Record]:
    for _ in range(count):
        broken: list[Any] = [
            b"{",
            b"",
            {"user_id": "many", "item_id": 3, "behavior": "x"},
            {"behavior": 7},
            [1],
            None,
        ]
        yield None, draw.choice(broken) if draw.random() < 0.2 else _behavior(draw)


def _keyed(draw: random.Random) -> _Record:
    row = _behavior(draw)
    key = {"user_id": row["user_id"], "item_id": row["item_id"]}
    broken: list[Any] = [b"{", {"user_id": 1}, {**key, "user_id": "x"}]
    return draw.choice([key, key, key, *broken]), row


def _versioned(draw: random.Random) -> _Record:
    row = _behavior(draw)
    key = {"version": draw.randrange(3), "user_id": row["user_id"], "item_id": row["item_id"]}
    return key, {"version": draw.choice([None, 1]), "behavior": row["behavior"]}


def _changed(draw: random.Random, count: int) -> Iterator[_Record]:
    """Changes as Debezium writes them, which never change item_id."""
    there: list[dict[str, Any]] = []
    for number in range(count):
        source = {"table": "behaviors", "ts_ms": 1_795_000_000_000 + number}
        if there and draw.random() < 0.4:
            before = there.pop(draw.randrange(len(there)))
            after = None if draw.random() < 0.4 else _behavior(draw) | {"item_id": before["item_id"]}
        else:
            before, after = None, _behavior(draw)
        if after is not None:
            there.append(after)
        op = "c" if before is None else "d" if after is None else "u"
        yield None, {"before": before, "after": after, "source": source, "op": op, "ts_ms": source["ts_ms"]}


def _time(draw: random.Random) -> str:
    return (_BEGIN + timedelta(seconds=draw.randrange(3000))).strftime("%Y-%m-%d %H:%M:%S")
