"""Events of Nexmark, drawn: of 50 events one is a person, three are auctions, the others are bids."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

_BEGIN = datetime(2026, 11, 25, 23, 59, 30)
"""So that the events are of two days."""
_PERSON, _AUCTIONS = 1, 3
_CHANNELS = ("Apple", "google", "Facebook", "Baidu", "other-1", "other-2")


def events(draw: random.Random, count: int) -> Iterator[tuple[None, dict[str, Any]]]:
    """Rows of the topic of events, in the order of their times, which differ from each other."""
    people, auctions = 0, 0
    for number in range(count):
        at = _BEGIN + timedelta(milliseconds=number * 11 + draw.randrange(10))
        turn = number % 50
        row: dict[str, Any] = {"event_type": 2, "person": None, "auction": None, "bid": None}
        if turn < _PERSON:
            row |= {"event_type": 0, "person": _person(draw, people, at)}
            people += 1
        elif turn < _PERSON + _AUCTIONS:
            row |= {"event_type": 1, "auction": _auction(draw, auctions, max(1, people), at)}
            auctions += 1
        else:
            row["bid"] = _bid(draw, max(1, auctions), max(1, people), at)
        yield None, row


def _person(draw: random.Random, id: int, at: datetime) -> dict[str, Any]:
    return {
        "id": id,
        "name": draw.choice(["Peter Jones", "Kate Abrams", "Luke White"]),
        "emailAddress": f"p{id}@example.com",
        "creditCard": "1234 5678",
        "city": draw.choice(["Portland", "Boise", "Phoenix"]),
        "state": draw.choice(["OR", "ID", "CA", "WA", "AZ"]),
        "customTime": _shown(at),
        "extra": _extra(draw),
    }


def _auction(draw: random.Random, id: int, people: int, at: datetime) -> dict[str, Any]:
    first = draw.randrange(100, 2000)
    return {
        "id": id,
        "itemName": f"item {draw.randrange(50)}",
        "description": "as new",
        "initialBid": first,
        "reserve": first + draw.randrange(500),
        "customTime": _shown(at),
        "expires": _shown(at + timedelta(milliseconds=draw.randrange(500, 30_000))),
        "seller": draw.randrange(people),
        "category": draw.randrange(10, 15),
        "extra": _extra(draw),
    }


def _bid(draw: random.Random, auctions: int, people: int, at: datetime) -> dict[str, Any]:
    channel = draw.choice(_CHANNELS)
    page = f"https://www.nexmark.com/{draw.choice('abc')}/{draw.choice('de')}/item.htm?query=1"
    return {
        "auction": max(0, auctions - 1 - draw.randrange(40)),
        "bidder": max(0, people - 1 - draw.randrange(30)),
        "price": int(10 ** draw.uniform(2, 7.5)),
        "channel": channel,
        "url": f"{page}&channel_id={draw.randrange(1000)}" if channel.startswith("other") else page,
        "customTime": _shown(at),
        "extra": _extra(draw),
    }


def _extra(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefgh", k=draw.randrange(4, 12)))


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
