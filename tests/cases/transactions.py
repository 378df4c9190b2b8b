"""Writes records in transactions, which a case describes in prose."""

from __future__ import annotations

import json
import re
import time
import uuid

from confluent_kafka import Producer

from tests.cases.bench import Bench
from tests.cases.outcome import Unsupported

_SECONDS = 20.0
_DESCRIPTION = re.compile(
    r"(\d+) transactions?(?:,| x) (\d+) messages?(?: on (p\d+(?: and p\d+)*)(?: each)?)?"
)


def produce(bench: Bench, topic: str, description: str) -> None:
    """Writes `3 transactions x 2 messages on p0 and p1 each`: {"k": "txn-partition-n", "v": n}, and commits each."""
    if description == "nothing":
        return
    match = _DESCRIPTION.fullmatch(description)
    if match is None:
        raise Unsupported(f"records described as {description!r}")
    partitions = [int(p) for p in re.findall(r"p(\d+)", match[3] or "p0")]
    producer = Producer(
        {"bootstrap.servers": bench.world.broker.bootstrap, "transactional.id": f"cases-{uuid.uuid4()}"}
    )
    producer.init_transactions(_SECONDS)
    for transaction in range(int(match[1])):
        producer.begin_transaction()
        for partition in partitions:
            for n in range(int(match[2])):
                value = json.dumps({"k": f"{transaction}-{partition}-{n}", "v": n})
                producer.produce(topic, value=value, partition=partition)
        producer.commit_transaction(_SECONDS)
    wanted, until = int(match[1]) * len(partitions) * int(match[2]), time.monotonic() + _SECONDS
    # A commit returns before its markers are in the partitions.
    while len(bench.consume(topic)) < wanted and time.monotonic() < until:
        time.sleep(0.1)
