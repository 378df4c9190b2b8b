"""The two sides of a soak, each a process of its own: one writes the topic, one reads what is published.

The writer keeps the time at which it sent each record, the reader the time at which it read each one, in files that the
soak reads. The writer puts a key into partition `id % PARTITIONS`, so a record's offset is how many of its partition
came before it.
"""

from __future__ import annotations

import time
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.topics import PARTITIONS, Load, records

READ = np.dtype([("at", "f8"), ("id", "i8"), ("number", "i8")])
"""What the reader notes of a record; number 0 is a tombstone."""
Offsets = dict[int, npt.NDArray[np.int64]]
_STEP_SECONDS = 0.01
_CHUNK = 10_000


def drawn(seed: int, rows: int, records: int) -> tuple[Load, str]:
    """A load of which the first `rows` records insert a row each, followed by `records` drawn ones, and what was drawn:
    how skewed the keys are, and how long the notes."""
    draw = np.random.default_rng(seed)
    skew, mean = float(draw.uniform(1.0, 3.0)), int(draw.integers(10, 400))
    keys = (rows * draw.random(records) ** skew).astype(np.int64)
    spread = draw.permutation(rows)  # keys that are often changed are not beside each other
    load = Load(
        np.concatenate([np.arange(rows), spread[keys]]),
        np.concatenate([np.zeros(rows, np.bool_), draw.random(records) < 0.05]),
        draw.integers(0, 2 * mean, rows + records),
    )
    hot = np.bincount(keys, minlength=rows)
    share = np.sort(hot)[::-1][: rows // 100].sum() / max(records, 1)
    return (
        load,
        f"a hundredth of the keys has {share:.0%} of the changes, notes of {mean} characters on average",
    )


def by_partition(load: Load) -> Offsets:
    """The indexes of the records of each partition, by offset."""
    return {p: np.flatnonzero(load.keys % PARTITIONS == p) for p in range(PARTITIONS)}


def write(bootstrap: str, topic: str, load: Load, first: int, rate: int, file: Path) -> None:
    """Send the records from index `first` on, `rate` a second or as fast as it goes for 0; into `file` the epoch
    seconds at which each was sent. Raises RuntimeError unless the broker has all of them."""
    sent = np.memmap(file, np.float64, "r+", shape=(len(load),))
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 3}
    sender = Producer({**settings, "queue.buffering.max.messages": 1_000_000})
    started, at = time.monotonic(), first
    while at < len(load):
        time.sleep(_STEP_SECONDS)
        due = first + int((time.monotonic() - started) * rate) if rate else at + _CHUNK
        due = min(due, len(load))
        sent[at:due] = time.time()
        for record, key in zip(records(load, at, due), load.keys[at:due].tolist(), strict=True):
            sender.produce(topic, record["value"], record["key"], partition=key % PARTITIONS)
        sender.poll(0)
        at = due
    if left := sender.flush(60):
        raise RuntimeError(f"topic {topic}: the broker has not taken {left:,} records")


def read(bootstrap: str, topic: str, partitions: int, file: Path, stop: Event) -> None:
    """Read a topic from its beginning until `stop` is set; into `file` a READ of each record."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "soak", "fetch.wait.max.ms": 20})
    reader.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
    with file.open("ab") as out:
        while not stop.is_set():
            messages = [m for m in reader.consume(_CHUNK, 0.05) if m.error() is None]
            now = time.time()
            if rows := [(now, _last(m.key()), _last(m.value())) for m in messages]:
                out.write(np.array(rows, READ).tobytes())
                out.flush()
    reader.close()


def _last(document: bytes | None) -> int:
    """The number with which a document ends."""
    return 0 if document is None else int(document[document.rindex(b":") + 1 : -1])
