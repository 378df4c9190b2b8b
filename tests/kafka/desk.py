"""A topic, the records to send to it through one shard, and the expected result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.embedded.broker import Broker
from bridge.kafka.client_settings import producer_settings
from bridge.kafka.control import Control
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import Records
from bridge.kafka.shard import TransactionalShard
from bridge.kafka.shard_state import Cursor, ShardSpec
from bridge.kafka.transactions import consumer_settings
from tests.kafka.topics import topic_of
from tests.ledger import committed

IDS, VERSIONS, PER_ADD = range(6), range(1, 4), 3
EXPECTED = {id: [f"v{version}" for version in VERSIONS] for id in IDS}


@dataclass
class Desk:
    """A topic and the records for it, in calls of three records as a task makes them."""

    broker: Broker
    topic: str
    prefix: str

    def spec(self, **more: Any) -> ShardSpec:
        servers = {"bootstrap.servers": self.broker.bootstrap}
        settings = {
            "producer": producer_settings(servers, checked=True),
            "consumer": consumer_settings(servers),
        }
        defaults = {"run": "run-1", "shards": 2, "first": 1, "max_rows": 6}
        return ShardSpec(**{"prefix": self.prefix, "topics": (self.topic,), **settings, **defaults, **more})

    def shard(
        self,
        make_producer: Callable[[Mapping[str, Any]], RecordProducer] = RecordProducer,
        clock: Callable[[], float] = time.monotonic,
        **more: Any,
    ) -> TransactionalShard:
        return TransactionalShard(self.spec(**more), 0, make_producer, clock=clock)

    def adds(self) -> list[tuple[Records, Cursor]]:
        return [
            (self.records(list(IDS)[at : at + PER_ADD], f"v{version}"), Cursor(version, 0, at + PER_ADD))
            for version in VERSIONS
            for at in range(0, len(IDS), PER_ADD)
        ]

    def records(self, ids: list[int], name: str) -> Records:
        keys = [json.dumps({"id": id}).encode() for id in ids]
        values = [json.dumps({"id": id, "name": name}).encode() for id in ids]
        return Records([self.topic] * len(ids), list(keys), list(values))

    def rest(self, shard: TransactionalShard) -> None:
        """Add the records after the shard's cursor."""
        for records, upto in self.adds():
            if upto > shard.cursor:
                shard.add(records, upto)

    def received(self) -> dict[int, list[str | None]]:
        return committed(self.broker.bootstrap, self.topic)

    def control(self) -> Control:
        return Control(topic_of(self.topic, servers=self.broker.bootstrap), self.prefix, "p")
