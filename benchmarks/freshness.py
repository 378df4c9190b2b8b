"""How old a record is when a reader of the table can see it, while a writer sends records all the time.

The writer sends records of random keys at a fixed rate into a topic; each carries the time at which it was sent as its
timestamp. A reader can see a record from the moment at which the version of the table that holds it is there: a thread
looks for the next version's file (Delta's commit, Paimon's snapshot) every five milliseconds and notes the time. After
the run the tables' own records say which rows each version has written: Delta's change data feed, and the data files
that Paimon's manifests list for each snapshot. A record that was overwritten before it was committed is seen with its
successor. Both sides have a table with rows, and start before the writer does; the first seconds, in which a JVM
compiles its code, do not count on either side. The topic has no tombstones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession

from benchmarks import flink, paimon, visible
from benchmarks.goals import Outcome, faster
from benchmarks.ground import Ground, Read
from benchmarks.jobs import Job, JobError, started
from benchmarks.results import PAIMON, Entry
from benchmarks.rounds import compared, in_turn
from benchmarks.scale import SEED
from benchmarks.topics import Load, producer, records
from bridge.embedded.broker import Broker

TRIGGER = "100 ms"
"""The bridge's: a batch begins as soon as the one before has ended."""
CHECKPOINT = "1 s"
_STEP_SECONDS = 0.01
_READY_SECONDS = 120.0
"""For the first commit."""
_SETTLE_SECONDS = 120.0
"""For the last commit."""
_SILENT_SECONDS = 6.0
"""After the last commit, until it counts as the last."""


@dataclass(frozen=True)
class Stream:
    """What the writer sends, and the table that it meets."""

    rate: int
    """Records a second."""
    seconds: int
    warm_seconds: int
    """The first of them, which do not count."""
    rows: int

    @property
    def what(self) -> str:
        return (
            f"{self.rate:,} records a second for {self.seconds - self.warm_seconds} s into {self.rows:,} rows"
        )


class Writer:
    """Sends a load at a fixed rate, and keeps the time at which each record was sent."""

    def __init__(self, broker: Broker, topic: str, load: Load, rate: int) -> None:
        self.sent: npt.NDArray[np.float64] = np.full(len(load), np.nan)
        """In epoch seconds."""
        self._producer = producer(broker, linger_ms=5)
        self._topic, self._load, self._rate = topic, load, rate

    def send(self, first: int, end: int) -> None:
        """The records from index `first` to `end`, at once."""
        now = time.time()
        self.sent[first:end] = now
        for record in records(self._load, first, end):
            self._producer.produce(self._topic, record["value"], record["key"], timestamp=int(now * 1000))
        self._producer.poll(0)

    def stream(self, first: int) -> None:
        """The records from index `first` to the last, at the rate; returns when the broker has all."""
        started, at = time.monotonic(), first
        while at < len(self._load):
            time.sleep(_STEP_SECONDS)
            due = min(first + int((time.monotonic() - started) * self._rate), len(self._load))
            self.send(at, due)
            at = due
        self.flush()

    def flush(self) -> None:
        if left := self._producer.flush(60):
            raise RuntimeError(f"topic {self._topic}: the broker has not taken {left:,} records")


def outcomes(ground: Ground, stream: Stream, rounds: int) -> list[Outcome]:
    """The bridge beside Flink → Paimon with a checkpoint every second."""
    bridge, flink = in_turn(rounds, [partial(_bridge, ground, stream), partial(_paimon, ground, stream)])
    assert bridge is not None
    what = f"freshness: {stream.what}"
    return [
        compared(
            f"{what}, {name}, beside {PAIMON}", "s", partial(_number, name), goal, flink, bridge, by=faster
        )
        for name, goal in (("p99", 1.0), ("p50", 0.0))
    ]


def _bridge(ground: Ground, stream: Stream) -> Entry:
    place = ground.place()
    table = ground.tables.delta(stream.rows, "bridge", place)
    topic = _topic(ground, stream, place)
    command = ground.ingest(place, topic, table, run=f", trigger: {TRIGGER}")
    delta = _Table(table, visible.delta_version, visible.delta_changes)
    return _played(ground, stream, "bridge", command, topic, delta, table, None)


def _paimon(ground: Ground, stream: Stream) -> Entry | None:
    peer = flink.found()
    if peer is None:
        return None
    place = ground.place()
    warehouse = ground.tables.paimon(stream.rows, peer, place)
    topic = _topic(ground, stream, place)
    statements = paimon.follow(ground.broker.bootstrap, topic, warehouse)
    command = peer.command(place / "ingest", statements, paimon.settings(CHECKPOINT))
    snapshots = _Table(paimon.folder(warehouse), visible.paimon_version, visible.paimon_changes)
    read = ground.reading(warehouse, place)
    return _played(ground, stream, PAIMON, command, topic, snapshots, warehouse, read)


@dataclass(frozen=True)
class _Table:
    folder: Path
    version: Callable[[Path, int], Path]
    changes: Callable[[SparkSession, Path, Mapping[int, float]], DataFrame]


def _played(
    ground: Ground,
    stream: Stream,
    system: str,
    command: list[str],
    topic: str,
    table: _Table,
    root: Path,
    read: Read | None,
) -> Entry:
    load = ground.load(topic)
    writer = Writer(ground.broker, topic, load, stream.rate)
    with started(command, folder=root.parent / "run", beside=ground.serving) as job:
        watch = visible.Watch(lambda version: table.version(table.folder, version).exists())
        try:
            writer.send(0, 1)
            writer.flush()
            _until(job, lambda: bool(watch.times), "has committed nothing", _READY_SECONDS)
            writer.stream(1)
            _until(job, lambda: _settled(watch), "goes on committing", _SETTLE_SECONDS)
        except JobError as error:
            ground.say(str(error))
            return ground.added(Entry(stream.what, system, len(load), None, str(error).splitlines()[-1]))
        finally:
            watch.stop()
        ran = job.stop()
    written = table.changes(ground.spark, table.folder, watch.times).toArrow()
    waits = visible.seen_at(load.keys, written, watch.times) - writer.sent
    unseen = int(np.count_nonzero(np.isnan(waits)))
    flaw = f"{unseen:,} of {len(load):,} records are in no version" if unseen else None
    counted = waits[1 + stream.rate * stream.warm_seconds :]
    measured = {name: float(np.percentile(counted, at)) for name, at in (("p50", 50), ("p99", 99))}
    return ground.judged(stream.what, system, ran, topic, root, stream.rows, read, measured, flaw)


def _topic(ground: Ground, stream: Stream, place: Path) -> str:
    """A topic of its own for a job, still without records."""
    load = Load.random(1 + stream.rate * stream.seconds, stream.rows, SEED, tombstones=0.0)
    return ground.topic(f"stream-{place.name}", load, part=range(0))


def _until(job: Job, done: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait for something. Raises JobError when the job ends before it, or it does not come."""
    deadline = time.monotonic() + seconds
    while not done():
        if not job.running:
            raise job.failed("has ended")
        if time.monotonic() > deadline:
            raise job.failed(f"{what} for {seconds:.0f} s")
        time.sleep(0.1)


def _settled(watch: visible.Watch) -> bool:
    """Whether no version has come for a while, as all records are in."""
    return time.time() - max(watch.times.values()) > _SILENT_SECONDS


def _number(name: str, entry: Entry) -> float:
    return entry.number(name)
