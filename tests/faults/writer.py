"""Keeps producing changes of a few hundred keys, and a ledger of what the broker has acknowledged. No bridge.

    python -m tests.faults.writer BOOTSTRAP TOPIC SEED LEDGER RATE

Inserts, updates and tombstones, plain and in transactions, of which some are aborted. Every record carries its key,
a number that rises with every record, the kind of writer and the seed: the value does, and the headers of tombstones.
SIGTERM, or the end of whoever started it, ends it after the burst under way.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.faults.history import Acked

__all__ = ["Writer", "main"]

KEYS = 300
_BURST = 20
_TRANSACTIONS = 0.12
_ABORTED = 0.5
_TOMBSTONES = 0.2


class Writer:
    """One topic's only writer; `burst` returns when the ledger holds, on disk, what it has sent."""

    def __init__(self, bootstrap: str, topic: str, seed: int, ledger: Path) -> None:
        self._draw = random.Random(seed)
        self._topic, self._seed = topic, seed
        self._ledger = ledger
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "acks": "all",
        }
        self._settings |= {"enable.idempotence": True, "linger.ms": 2, "log_level": 0}
        self._plain: Any = None
        self._transactional: Any = None
        self._seq = 0

    def burst(self) -> None:
        """Some changes, plain or as one transaction."""
        try:
            if self._draw.random() < _TRANSACTIONS:
                self._transaction()
            else:
                self._send_plain()
        except KafkaException:  # the broker is away: what is not in the ledger may be there or not
            self._plain = self._transactional = None
            time.sleep(0.5)

    def _send_plain(self) -> None:
        self._plain = self._plain or Producer(self._settings)
        with self._noting(self._plain, "plain"):
            pass

    def _transaction(self) -> None:
        if self._transactional is None:
            self._transactional = Producer(self._settings | {"transactional.id": f"{self._topic}-writer"})
            self._transactional.init_transactions(30)
        self._transactional.begin_transaction()
        aborted = self._draw.random() < _ABORTED
        with self._noting(self._transactional, "aborted" if aborted else "committed"):
            if aborted:
                self._transactional.abort_transaction(30)
            else:
                self._transactional.commit_transaction(30)

    @contextmanager
    def _noting(self, producer: Any, fate: str) -> Iterator[None]:
        """Send some changes, wait for their places, and write them down when the block has ended well."""
        acked: list[Acked] = []
        for _ in range(self._draw.randrange(1, _BURST)):
            self._produce(producer, fate, acked)
        while producer.flush(1):
            if os.getppid() == 1:
                raise KafkaException("nobody waits for this any more")
        yield
        with self._ledger.open("ab") as out:
            out.write(b"".join(json.dumps(a).encode() + b"\n" for a in acked))
            out.flush()
            os.fsync(out.fileno())

    def _produce(self, producer: Any, fate: str, acked: list[Acked]) -> None:
        self._seq += 1
        seq, key = self._seq, self._draw.randrange(KEYS)
        gone = self._draw.random() < _TOMBSTONES
        value = {"id": key, "seq": seq, "writer": fate, "seed": self._seed}

        def on_delivery(error: Any, message: Any) -> None:
            if error is None:
                acked.append(Acked(key, seq, message.partition(), message.offset(), fate, gone))

        producer.produce(
            self._topic,
            key=json.dumps({"id": key}),
            value=None if gone else json.dumps(value),
            headers=[("sent", json.dumps(value).encode())] if gone else None,
            on_delivery=on_delivery,
        )


def main(bootstrap: str, topic: str, seed: str, ledger: str, rate: str) -> None:
    """Write about `rate` records a second until told to end."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    parent = os.getppid()
    writer = Writer(bootstrap, topic, int(seed), Path(ledger))
    while not ended and os.getppid() == parent:
        writer.burst()
        time.sleep(_BURST / 2 / float(rate))


if __name__ == "__main__":
    main(*sys.argv[1:])
