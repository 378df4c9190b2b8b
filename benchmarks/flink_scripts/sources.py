"""The topics that the scripts read: their CREATE TABLE for each system, and their columns for the grammar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_JSON = {"format": "json"}
_UPSERT = {"key.format": "json", "value.format": "json"}
_DELAY = "INTERVAL '5' SECOND"


@dataclass(frozen=True)
class Source:
    """A topic as a table. `columns` are types by name, in their order; `more` follows them in the CREATE TABLE."""

    name: str
    connector: str
    columns: Mapping[str, str]
    format: Mapping[str, str]
    more: str = ""

    @property
    def topic(self) -> str:
        """The name of its topic among those of the data."""
        return self.name

    def ddl(self, topic: str, bootstrap: str, more: Mapping[str, str]) -> str:
        """The CREATE TABLE over a topic, with `more` options."""
        declared = [f"{name} {type}" for name, type in self.columns.items()]
        body = ", ".join([*declared, *([self.more] if self.more else [])])
        start = {} if self.connector == "upsert-kafka" else {"scan.startup.mode": "earliest-offset"}
        given = {**_place(self.connector, topic, bootstrap), **start, **self.format, **more}
        return f"CREATE TABLE {self.name} ({body}) WITH ({options(given)})"

    @property
    def has_watermark(self) -> bool:
        return "WATERMARK" in self.more


@dataclass(frozen=True)
class Printed:
    """A table that is read, with the CREATE TABLE that a manual has; `topic` is one of the data."""

    name: str
    topic: str
    text: str

    def ddl(self, topic: str, bootstrap: str, more: Mapping[str, str]) -> str:
        """The CREATE TABLE; it starts at the earliest record if it says nothing: no group has committed an offset."""
        start = {} if "scan.startup.mode" in self.text else {"scan.startup.mode": "earliest-offset"}
        return placed(self.text, topic, bootstrap, start | dict(more))

    @property
    def has_watermark(self) -> bool:
        return "WATERMARK" in self.text


def placed(text: str, topic: str, bootstrap: str, more: Mapping[str, str]) -> str:
    """A CREATE TABLE with another topic, other brokers and `more` options."""
    for option, value in (("topic", topic), ("properties.bootstrap.servers", bootstrap)):
        text = re.sub(rf"('{option}'\s*)= '[^']*'", rf"\1= '{value}'", text)
    return re.sub(r"WITH\s*\(", f"WITH ({options(more)},", text) if more else text


def options(given: Mapping[str, str]) -> str:
    """The options of a CREATE TABLE."""
    return ", ".join(f"'{key}' = '{value}'" for key, value in given.items())


def _place(connector: str, topic: str, bootstrap: str) -> dict[str, str]:
    return {"connector": connector, "topic": topic, "properties.bootstrap.servers": bootstrap}


_VISITED = {"user_id": "BIGINT", "page": "INT", "price": "BIGINT", "ts": "TIMESTAMP(3)", "note": "STRING"}
_CLICKED = {"user_id": "BIGINT", "page": "INT", "ts": "TIMESTAMP(3)", "target": "STRING"}
_HIT = {"lane": "INT", "user_id": "BIGINT", "ts": "TIMESTAMP(3)", "target": "STRING"}
_PERSON = (
    "ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "customTime TIMESTAMP(3), extra STRING>"
)
_AUCTION = (
    "ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, customTime TIMESTAMP(3), "
    "expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING>"
)
_BID = (
    "ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, customTime TIMESTAMP(3), "
    "extra STRING>"
)
SOURCES = {
    source.name: source
    for source in (
        Source(
            "users",
            "upsert-kafka",
            {"id": "BIGINT", "name": "STRING", "region": "STRING", "score": "INT", "since": "TIMESTAMP(3)"},
            _UPSERT,
            "PRIMARY KEY (id) NOT ENFORCED",
        ),
        Source(
            "orders",
            "upsert-kafka",
            {
                "id": "BIGINT",
                "user_id": "BIGINT",
                "amount": "DECIMAL(10, 2)",
                "status": "STRING",
                "placed": "TIMESTAMP(3)",
            },
            _UPSERT,
            "PRIMARY KEY (id) NOT ENFORCED",
        ),
        Source(
            "stock",
            "kafka",
            {"sku": "STRING", "place": "STRING", "qty": "INT"},
            {"format": "debezium-json"},
            "PRIMARY KEY (sku) NOT ENFORCED",
        ),
        Source("visits", "kafka", _VISITED, _JSON, f"WATERMARK FOR ts AS ts - {_DELAY}"),
        Source("clicks", "kafka", _CLICKED, _JSON, f"WATERMARK FOR ts AS ts - {_DELAY}"),
        Source("hits", "kafka", _HIT, _JSON, f"WATERMARK FOR ts AS ts - {_DELAY}"),
        Source(
            "nexmark",
            "kafka",
            {"event_type": "INT", "person": _PERSON, "auction": _AUCTION, "bid": _BID},
            _JSON,
            "customTime AS CASE WHEN event_type = 0 THEN person.customTime WHEN event_type = 1 THEN auction.customTime "
            "ELSE bid.customTime END, WATERMARK FOR customTime AS customTime - INTERVAL '4' SECOND",
        ),
    )
}
"""Tables with updates and deletes (users, orders, stock), tables whose rows are only added, and Nexmark's events."""
NEXMARK_VIEWS = {
    "person": "CREATE VIEW person AS SELECT person.id, person.name, person.emailAddress, person.creditCard, "
    "person.city, person.state, customTime, person.extra FROM nexmark WHERE event_type = 0",
    "auction": "CREATE VIEW auction AS SELECT auction.id, auction.itemName, auction.description, auction.initialBid, "
    "auction.reserve, customTime, auction.expires, auction.seller, auction.category, auction.extra FROM nexmark "
    "WHERE event_type = 1",
    "bid": "CREATE VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, customTime, bid.extra "
    "FROM nexmark WHERE event_type = 2",
}
"""The views of Nexmark over its one topic of events."""
