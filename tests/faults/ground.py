"""Sets up an episode: lanes with their topics, tables and pipelines, a writer, and the two jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from bridge.embedded.broker import Broker
from bridge.embedded.schema_registry import SchemaRegistryServer
from tests.faults.derived_reading import DerivedObserver
from tests.faults.jobs import Job
from tests.faults.lane import Lane
from tests.faults.nodes import Nodes, nodes
from tests.faults.reading import (
    AppendObserver,
    CombinedObserver,
    IntervalObserver,
    Observer,
    Stall,
    ends,
    progress_of,
)
from tests.faults.zygote import Zygote

_Made = TypeVar("_Made")

PARTITIONS, GROWN = 3, 5
_RATE = 25
QUICK_RETURN = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "1000"}
"""A killed broker is registered again only when its former session has ended, after 9 s by default."""


@dataclass(frozen=True)
class World:
    """Resources that episodes share."""

    folder: Path
    broker: Broker
    registry: str
    """The schema registry's URL; none where no lane needs one."""
    spark: Any
    zygote: Zygote
    nodes: Nodes | None = None
    """The cluster that the jobs run on; without one they run on a local master."""

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})


class Ground:
    """The setup of an episode; see `ground`. One thread plays faults, and supervises the jobs while it waits."""

    def __init__(self, world: World, folder: Path, lanes: tuple[Lane, ...], seed: int) -> None:
        self.world, self.folder, self.lanes = world, folder, lanes
        self.stall = Stall()
        for lane in lanes:
            # Values that are combined need all records.
            keeps = not lane.is_upsert or lane.aggregates
            policy = {"cleanup.policy": "delete" if keeps else "compact"}
            for topic in lane.topics:
                world.broker.create_topic(topic, _partitions(lane), policy)
            for output in (output for outputs in lane.derived.values() for output in outputs):
                world.broker.create_topic(output.topic, PARTITIONS, {"cleanup.policy": "compact"})
        files: dict[str, dict[str, Path]] = {"ingest": {}, "publish": {}}
        for lane in lanes:
            for name, verb in lane.pipelines.items():
                files[verb][lane.pipeline(name)] = self._file(lane, name)
        self.jobs = {
            verb: Job(world.zygote, verb, files[verb], folder / "jobs", {}, world.nodes) for verb in files
        }
        self.observers = {lane.name: self._observer(lane) for lane in lanes}
        self.append_observers = {lane.name: self._append_observer(lane) for lane in lanes if lane.appends}
        self.interval_observers = {
            lane.name: self._interval_observer(lane) for lane in lanes if lane.keeps_history
        }
        self.combined_observers = {
            lane.name: self._observing(CombinedObserver, lane, lane.topics[:1], self.sums_table(lane))
            for lane in lanes
            if lane.aggregates
        }
        self.derived = [
            DerivedObserver(world.broker.bootstrap, self.observers[lane.name], lane, kind, folder / lane.name)
            for lane in lanes
            for kind in lane.derived
        ]
        self._writer = self._writing(seed)

    def table(self, lane: Lane) -> Path:
        return self.folder / lane.name / "table"

    def rows_table(self, lane: Lane) -> Path:
        """The table without a key of a lane that has one."""
        return self.folder / lane.name / "rows"

    def history_table(self, lane: Lane) -> Path:
        """The table with the history of the keys of a lane that has one."""
        return self.folder / lane.name / "history"

    def sums_table(self, lane: Lane) -> Path:
        """The table with the combined values of a lane that has one."""
        return self.folder / lane.name / "sums"

    def tables(self, lane: Lane) -> list[Path]:
        return [
            self.table(lane),
            *([self.rows_table(lane)] if lane.appends else []),
            *([self.history_table(lane)] if lane.keeps_history else []),
            *([self.sums_table(lane)] if lane.aggregates else []),
        ]

    def checkpoint(self, lane: Lane, verb: str) -> Path:
        return self.folder / lane.name / f"{verb}s"

    def checkpoints(self, lane: Lane, verb: str) -> dict[str, Path]:
        """Returns the checkpoints of the lane's pipelines of a verb, by their names in its job. Scripts and jobs
        have no checkpoint that they could do without: their progress is in their tables."""
        found = {lane.name: self.checkpoint(lane, verb)}
        for table in self.tables(lane)[1:] if verb == "ingest" else ():
            found[lane.pipeline(f"{table.name}.yaml")] = self.folder / lane.name / f"{table.name}-ingests"
        return found

    def _file(self, lane: Lane, name: str) -> Path:
        file = self.folder / lane.name / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(lane.text(name, self.world.broker.bootstrap, self.world.registry))
        return file

    def _observer(self, lane: Lane) -> Observer:
        quarantine = self.folder / lane.name / "quarantine" if "quarantine" in lane.extras else None
        made = partial(Observer, quarantine=quarantine, by_sequence=lane.by_sequence)
        return self._observing(made, lane, lane.topics, self.table(lane))

    def _append_observer(self, lane: Lane) -> AppendObserver:
        return self._observing(AppendObserver, lane, lane.topics[:1], self.rows_table(lane))

    def _interval_observer(self, lane: Lane) -> IntervalObserver:
        made = partial(IntervalObserver, by_sequence=True)
        return self._observing(made, lane, lane.topics[:1], self.history_table(lane))

    def _observing(self, made: Callable[..., _Made], lane: Lane, topics: Sequence[str], table: Path) -> _Made:
        return made(
            self.world.broker.bootstrap,
            topics,
            table,
            self.folder / lane.name / "ledger.jsonl",
            key=lane.key,
            format=lane.format,
            registry=self.world.registry,
        )

    def _writing(self, seed: int) -> subprocess.Popen[bytes]:
        spec = [
            {
                "bootstrap": self.world.broker.bootstrap,
                "topic": lane.topics[0],
                "seed": seed,
                "ledger": str(self.folder / lane.name / "ledger.jsonl"),
                "key": lane.key,
                "format": lane.format,
                "registry": self.world.registry,
                "bad": 0.02 if "quarantine" in lane.extras else 0.0,
                "large": 0.1 if lane.delivery == "exactly-once by file" else 0.0,
                "late": 0.3 if lane.by_sequence else 0.0,
                "truncates": 0.003 if lane.truncates else 0.0,
                "more": lane.aggregates,
            }
            for lane in self.lanes
        ]
        file = self.folder / "writer.json"
        file.write_text(json.dumps(spec))
        with (self.folder / "writer.txt").open("wb") as out:
            command = [sys.executable, "-m", "tests.faults.writer", str(file), str(_RATE)]
            return subprocess.Popen(command, stdout=out, stderr=out)

    def begin(self, seconds: float) -> None:
        """Starts both jobs and waits for their first progress; publishes need the tables of the ingests."""
        for job in self.jobs.values():
            job.is_hit("first start", counts=False)
            job.running  # noqa: B018
            self.until(lambda job=job: not job.recovering, seconds, f"{job.verb} makes its first progress")  # type: ignore[misc]

    def grow(self) -> None:
        """Adds partitions in lanes whose configuration has this."""
        grown = [lane for lane in self.lanes if not lane.is_in_order]
        wanted = [NewPartitions(topic, GROWN) for lane in grown for topic in lane.topics]
        admin = self.world.admin  # a client without references ends, with its pending requests
        for made in admin.create_partitions(wanted).values() if wanted else ():
            made.result(30)

    def until(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Waits for a condition and supervises the jobs meanwhile. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                errors = [
                    f"{j.verb} waits for {sorted(j.hits)}: {j.process.errors[-3:] if j.process else 'down'}"
                    for j in self.jobs.values()
                ]
                for job in self.jobs.values():
                    if job.process is not None:
                        job.process.dump_stacks()
                time.sleep(2)
                raise TimeoutError(f"not within {seconds:.0f} s: {what}; {'; '.join(errors)}")
            if self._writer.poll():
                raise RuntimeError(f"the writer failed: {(self.folder / 'writer.txt').read_text()[-800:]}")
            for job in self.jobs.values():
                if job.process is not None or job.recovering:
                    job.tend()
            time.sleep(0.05)

    def rest(self, seconds: float) -> None:
        """Waits, and supervises the jobs."""
        until = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= until, seconds + 60, "time passes")

    def drain(self, seconds: float) -> None:
        """Ends the writer, and waits until the jobs have processed everything."""
        self._writer.send_signal(signal.SIGTERM)
        assert self._writer.wait(60) == 0, "the writer failed"
        for what, done in (("ingest", self._ingested), ("publish", self._published)):
            for lane in self.lanes:
                self.until(lambda d=done, x=lane: d(x), seconds, f"the {what} of {lane.name} catches up")  # type: ignore[misc]
        for observer in self.derived:
            self.until(observer.is_final, seconds, f"the {observer.kind} of {observer.lane.name} catches up")

    def _ingested(self, lane: Lane) -> bool:
        """Whether the logs of its tables have all offsets."""
        end = self._ends(lane, 0, IsolationLevel.READ_COMMITTED)
        return all(_reached(table, lane.topics[0]) == end for table in self.tables(lane))

    def _published(self, lane: Lane) -> bool:
        """Whether the publish's log has the newest version."""
        files = sorted((self.checkpoint(lane, "publish") / "publish").glob("*.json"))
        versions = sorted((self.table(lane) / "_delta_log").glob("*.json"))
        try:
            progress = json.loads(files[-1].read_text())["bridge"]
        except (IndexError, ValueError, OSError):
            return False
        return progress["open"] is None and bool(progress["version"] >= int(versions[-1].stem))

    def by_file(self, lane: Lane) -> int:
        """Returns how many ranges of the publish's log were sent file by file."""
        files = (self.checkpoint(lane, "publish") / "publish").glob("*.json")
        file_lists = [
            (json.loads(file.read_text())["bridge"].get("open") or {}).get("files") for file in files
        ]
        return sum(map(bool, file_lists))

    def _ends(self, lane: Lane, side: int, isolation: IsolationLevel, admin: Any = None) -> dict[int, int]:
        partitions = _partitions(lane) if lane.is_in_order else GROWN
        return ends(admin or self.world.admin, lane.topics[side], range(partitions), isolation)

    def watch(self, over: threading.Event) -> None:
        """Measures `stall` until the end of the episode, in a thread of its own."""
        admin = self.world.admin
        lanes = [lane for lane in self.lanes if lane.exactly_once and lane.is_in_order]
        stalls = {lane.name: Stall() for lane in lanes}
        while not over.wait(1):
            for lane in lanes:
                try:
                    seen = self._ends(lane, 1, IsolationLevel.READ_COMMITTED, admin)
                    there = self._ends(lane, 1, IsolationLevel.READ_UNCOMMITTED, admin)
                except Exception:  # the broker is down: readers keep waiting
                    continue
                stalls[lane.name].look(time.monotonic(), seen, there)
                self.stall.longest = max(self.stall.longest, stalls[lane.name].longest)

    def end(self) -> None:
        """Ends all processes."""
        for job in self.jobs.values():
            job.kill()
        self._writer.kill()
        self._writer.wait()


def _partitions(lane: Lane) -> int:
    """Of its topics in the beginning. A truncate is ordered beside the records of its own partition only."""
    return 1 if lane.truncates else PARTITIONS


def _reached(table: Path, topic: str) -> dict[int, int]:
    """The offsets of the newest commit of an ingest; none where the table has none."""
    for file in sorted((table / "_delta_log").glob("*.json"), reverse=True):
        progress = progress_of(json.loads(line) for line in file.read_text().splitlines())
        if progress is not None:
            return {int(p): offset for p, offset in progress["offsets"][topic].items()}
    return {}


@contextmanager
def world(folder: Path, *, cluster: bool = False) -> Iterator[World]:
    """Starts the resources that episodes share in an empty folder; ends all processes in every case."""
    os.environ["BRIDGE_LOG"] = str(folder / "bridge.log")
    from bridge.session import build_session

    with ExitStack() as stack:
        zygote = stack.enter_context(Zygote())
        broker = stack.enter_context(Broker(folder / "broker", settings=QUICK_RETURN))
        registry = stack.enter_context(SchemaRegistryServer(folder / "registry"))
        spark = build_session(
            "faults",
            master="local[1]",
            conf={
                "spark.driver.memory": "1g",
                "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM's tasks
            },
        )
        stack.callback(spark.sparkContext.stop)
        executors = stack.enter_context(nodes(folder / "cluster")) if cluster else None
        yield World(folder, broker, registry.url, spark, zygote, executors)


@contextmanager
def ground(world: World, folder: Path, lanes: tuple[Lane, ...], seed: int) -> Iterator[Ground]:
    """Sets up an episode; ends all of its processes in every case."""
    with ExitStack() as stack:
        made = Ground(world, folder, lanes, seed)
        stack.callback(made.end)
        over = threading.Event()
        watching = threading.Thread(target=made.watch, args=(over,), daemon=True)
        watching.start()
        stack.callback(watching.join, 60)
        stack.callback(over.set)
        yield made
