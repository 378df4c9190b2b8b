"""Produces changes of a few hundred keys, and a ledger of what the broker acknowledged. No code of the bridge.

    python -m tests.faults.writer SPEC RATE

SPEC is a JSON file: a list of arguments of `Writer`, one entry per topic. It writes inserts, updates and tombstones,
plain and in transactions, some of which it aborts, and undecodable records. Every record contains its key, a number
that increases with every record, the kind of writer and the seed: in the value, or in the headers of a tombstone.
SIGTERM, or the end of the parent process, ends it after the current burst.
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

from tests.faults.documents import BAD, KEYS, Documents
from tests.faults.history import TRUNCATE, Acked, Row

_BURST = 20
_LARGE = 150
_TRANSACTIONS = 0.12
_ABORTED = 0.5
_TOMBSTONES = 0.2
_BETWEEN = 16


class Writer:
    """The only writer of a topic; `burst` returns when the ledger on disk contains what it has sent.

    `bad`: the ratio of undecodable records; `large`: the ratio of bursts with many records, so that a
    version of the table has enough rows for file shards; `late`: the ratio of changes whose number is less than that of
    changes before them; `truncates`: the ratio of records that delete all rows; `more`: rows have values to combine.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        seed: int,
        ledger: Path | str,
        *,
        key: str = "BIGINT",
        format: str = "json",
        registry: str = "",
        bad: float = 0.0,
        large: float = 0.0,
        late: float = 0.0,
        truncates: float = 0.0,
        more: bool = False,
    ) -> None:
        self._draw = random.Random(seed)
        self._documents = Documents(key, format, registry, topic, more=more)
        self._bad, self._large, self._late, self._truncates = bad, large, late, truncates
        self._rows: dict[int, Row | None] = {}
        self._topic, self._seed = topic, seed
        self._ledger = Path(ledger)
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "acks": "all",
            "topic.metadata.refresh.interval.ms": 3000,
        }
        self._settings |= {"enable.idempotence": True, "linger.ms": 2, "log_level": 0}
        self._plain: Any = None
        self._transactional: Any = None
        self._seq = 0
        self._numbers: set[int] = set()
        """Of late changes."""

    def burst(self) -> None:
        """Writes some changes, plain or as one transaction."""
        try:
            if self._draw.random() < _TRANSACTIONS:
                self._transaction()
            else:
                self._send_plain()
        except KafkaException:  # the broker is down: records that are not in the ledger may exist or not
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
        """Sends changes, waits for their offsets, and records them in the ledger when the block succeeds."""
        acked: list[Acked] = []
        most = _LARGE if self._draw.random() < self._large else _BURST
        for _ in range(self._draw.randrange(1, most)):
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
        seq, key = self._number(), self._draw.randrange(KEYS)
        truncates = self._truncates and self._draw.random() < self._truncates
        if truncates:
            key = TRUNCATE
        gone = truncates or self._draw.random() < _TOMBSTONES
        bad = fate != "aborted" and not truncates and self._draw.random() < self._bad
        row = seq, fate, self._seed
        # With numbers that order the changes, a deletion must have one of its own.
        before = row if self._late and gone else self._rows.get(key)
        value = self._documents.value(key, None if gone else row, before)
        if truncates:
            self._rows.clear()
        elif not bad:
            self._rows[key] = None if gone else row
        told = "bad" if bad else fate

        def on_delivery(error: Any, message: Any) -> None:
            if error is None:
                acked.append(Acked(key, seq, message.partition(), message.offset(), told, gone and not bad))

        producer.produce(
            self._topic,
            key=self._documents.key(key),
            value=BAD if bad else value,
            headers=[("sent", json.dumps(row).encode())] if gone else None,
            on_delivery=on_delivery,
        )

    def _number(self) -> int:
        """The number of the next change, which no other has; that of a late change is between those of two that were
        sent."""
        if not self._late:
            return self._seq
        if self._draw.random() >= self._late:
            return self._seq * _BETWEEN
        while True:
            ago = self._draw.randint(1, self._draw.choice((1, 30, 1000)))
            number = max(0, self._seq - ago) * _BETWEEN + self._draw.randrange(1, _BETWEEN)
            if number not in self._numbers:
                self._numbers.add(number)
                return number


def main(spec: str, rate: str) -> None:
    """Writes about `rate` records a second to each topic until SIGTERM."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    parent = os.getppid()
    writers = [Writer(**told) for told in json.loads(Path(spec).read_text())]
    while not ended and os.getppid() == parent:
        began = time.monotonic()
        for writer in writers:
            writer.burst()
        time.sleep(max(0.05, _BURST / 2 / float(rate) - (time.monotonic() - began)))


if __name__ == "__main__":
    main(*sys.argv[1:])
