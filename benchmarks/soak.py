"""Soaks an ingest and a publish: changes at a fixed rate for half an hour through both, as two processes with defaults.

    python -m benchmarks.soak [--minutes N] [--seed N] [--rate N] [--rows N] [--s3]

Prints, for each sixth of the time, how fresh table and topic were and what the processes held. Exit code 1 when a
process ended, when the last part is slower or larger than the second by more than a fifth, or when `bridge verify`
finds a difference. Records count from their sending to the first moment at which a reader sees them or a successor.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks import soak_kills, soak_sides
from benchmarks.cpu import Others, sessions
from benchmarks.jobs import Job, JobError, started
from benchmarks.topics import PARTITIONS, Load, section
from benchmarks.visible import Watch, seen_at
from bridge.embedded.broker import Broker
from bridge.embedded.processes import free_port
from bridge.ingest_progress import IngestProgress
from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.lake.snapshot import Snapshot
from bridge.lake.store import Store
from bridge.log_layout import commit_path
from tests.lossy_proxy import LossyProxy
from tests.object_store import ObjectStore

PARTS = 6
_TRIGGER, _TRIGGER_S3 = "200 ms", "1 s"
_S3_DELAY_SECONDS = 0.02
_MOST_GROWTH, _SLACK = 1.2, 0.05
"""Of latencies a twentieth of a second more is no growth: that is how often somebody looks."""
_JUDGED_SECONDS = 120
"""Of shorter parts the slowest hundredth is one or two batches: it is shown, not judged."""
_SAMPLE_SECONDS, _READY_SECONDS, _SILENT_SECONDS = 5.0, 600.0, 6.0
_TOPIC, _OUT = "changes", "published"


@dataclass(frozen=True)
class Held:
    """What the processes of a verb hold at one moment."""

    megabytes: float
    """Their proportional set size: shared memory is divided among those who share it."""
    threads: int
    files: int

    @staticmethod
    def of(leader: int) -> Held:
        pids = sessions([leader])
        return Held(
            sum(map(_pss_kb, pids)) / 1000, sum(map(_entries("task"), pids)), sum(map(_entries("fd"), pids))
        )


@dataclass
class Part:
    """What was measured in one part of the time."""

    rate: float = 0.0
    table: tuple[float, float] = (0.0, 0.0)
    """Seconds from topic to table, p50 and p99."""
    topic: tuple[float, float] = (0.0, 0.0)
    """Seconds from topic to table to topic, p50 and p99."""
    ingest: list[Held] = field(default_factory=list)
    publish: list[Held] = field(default_factory=list)
    active: int = 0
    removed: int = 0
    batch: tuple[float, float] = (0.0, 0.0)
    range: tuple[float, float] = (0.0, 0.0)
    others: float = 0.0
    """CPU seconds that others have used meanwhile."""

    def memory(self, verb: str) -> float:
        held: list[Held] = getattr(self, verb)
        return statistics.median(h.megabytes for h in held) if held else float("nan")


def grown(second: Part, last: Part, *, seconds: float) -> list[str]:
    """What has grown by more than a fifth between two parts of so many seconds each."""
    pairs: list[tuple[str, float, float, float, str]] = []
    for name in ("table", "topic"):
        shown = "topic → table" if name == "table" else "topic → table → topic"
        for at, percentile in enumerate(("p50", "p99")):
            if percentile == "p50" or seconds >= _JUDGED_SECONDS:
                before, after = getattr(second, name)[at], getattr(last, name)[at]
                pairs.append((f"{shown} {percentile}", before, after, _SLACK, "s"))
    pairs += [
        (f"memory of the {verb}", second.memory(verb), last.memory(verb), 0.0, "MB")
        for verb in ("ingest", "publish")
    ]
    return [
        f"{what} has grown from {before:,.2f} to {after:,.2f} {unit}"
        for what, before, after, slack, unit in pairs
        if not after <= _MOST_GROWTH * before + slack
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the soak and returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None, help="default: a drawn one")
    parser.add_argument("--rate", type=int, default=2_000, help="changes a second; default: %(default)s")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of the table; default: %(default)s")
    parser.add_argument(
        "--kills",
        action="store_true",
        help="kill both processes now and then, and judge alerts, not latencies",
    )
    parser.add_argument(
        "--s3",
        action="store_true",
        help=f"table and checkpoints on a local S3 server behind {_S3_DELAY_SECONDS * 1000:.0f} ms a request",
    )
    asked = parser.parse_args(arguments)
    # A terminated soak leaves no process.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    seed = int.from_bytes(os.urandom(2), "big") if asked.seed is None else asked.seed
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    with ExitStack() as stack:
        lake = _s3(stack, folder) if asked.s3 else _disk(folder)
        soak = Soak(folder, lake, asked.minutes * 60, seed, asked.rate, asked.rows, kills=asked.kills)
        failures = soak.run()
    soak.show()
    if failures:
        soak.say(f"failed, with SEED={seed}; what is left is in {folder}:\n- " + "\n- ".join(failures))
        return 1
    soak.say("both processes have ended well; table and topics are equal, row by row")
    shutil.rmtree(folder, ignore_errors=True)
    return 0


@dataclass(frozen=True)
class Lake:
    """Where the table and the checkpoints are."""

    root: str
    """As the pipelines name it."""
    trigger: str
    settings: tuple[str, ...]
    """Of Spark, by which the processes reach it: arguments of the commands."""
    table: Store
    """The table's folder, without the delay."""

    def has(self, version: int) -> bool:
        """Whether that version of the table is there."""
        return self.table.head(commit_path(version)) is not None


def _disk(folder: Path) -> Lake:
    return Lake(str(folder), _TRIGGER, (), LocalStore(str(folder / "table")))


def _s3(stack: ExitStack, folder: Path) -> Lake:
    store = stack.enter_context(ObjectStore(folder / "s3"))
    proxy = stack.enter_context(LossyProxy("127.0.0.1", store.port, delay=_S3_DELAY_SECONDS))
    settings = (f"spark.hadoop.{name}={value}" for name, value in store.settings(url=proxy.url).items())
    conf = tuple(part for setting in settings for part in ("--conf", setting))
    options = store.delta_rs_options()
    return Lake(store.root, _TRIGGER_S3, conf, RemoteStore(f"{store.root}/table", options))


class Soak:
    """One soak in a folder."""

    def __init__(
        self,
        folder: Path,
        lake: Lake,
        seconds: float,
        seed: int,
        rate: int,
        rows: int,
        *,
        kills: bool = False,
    ) -> None:
        self._folder, self._lake, self._rate, self._rows = folder, lake, rate, rows
        self._length = seconds / PARTS
        self._screen, self._began = Console(width=200, highlight=False), time.monotonic()
        self._load, what = soak_sides.drawn(seed, rows, int(rate * seconds))
        self.say(f"SEED={seed}: {what}")
        self._sent = np.memmap(folder / "sent", np.float64, "w+", shape=(len(self._load),))
        self._sent[:] = np.nan
        self._read = folder / "read"
        self._read.touch()
        self._parts = [Part() for _ in range(PARTS)]
        self._table = Snapshot(lake.table)
        self._removed = 0
        self._ends: dict[int, dict[int, int]] = {}
        """The offsets at which each version ends, by partition."""
        self._jobs: dict[str, Job] = {}
        self._faults = soak_kills.drawn(seed, seconds) if kills else []
        self._ports = {verb: free_port() for verb in soak_kills.VERBS} if kills else {}
        self._away: dict[str, float] = {}
        """The verbs that a fault has ended, and after how many seconds of the stream each is started again."""
        self._start = float("nan")
        self._runs = self._played = 0

    def say(self, text: str) -> None:
        self._screen.print(f"{time.monotonic() - self._began:5.0f} s  {text}", markup=False)

    def run(self) -> list[str]:
        """Play it; returns what went wrong."""
        with ExitStack() as stack:
            broker = stack.enter_context(Broker(self._folder / "broker"))
            for topic in (_TOPIC, _OUT):
                broker.create_topic(topic, PARTITIONS, {"cleanup.policy": "compact"})
            processes = multiprocessing.get_context("spawn")
            stop = processes.Event()
            read = (broker.bootstrap, _OUT, PARTITIONS, self._read, stop)
            reader = processes.Process(target=soak_sides.read, args=read, daemon=True)
            reader.start()
            stack.callback(reader.join, 20)
            stack.callback(stop.set)
            serving = [os.getsid(0), *([broker.pid] if broker.pid else [])]
            first = self._write(broker, self._load.first(self._rows), 0, rate=0)
            first.join()
            if first.exitcode:
                return [f"the writer of the first rows has ended with code {first.exitcode}"]
            watch: Watch | None = None
            prometheus = soak_kills.Prometheus(self._folder / "prometheus", self._ports)
            start = partial(self._begin, stack, broker, serving)
            try:
                for verb in ("ingest", "publish"):
                    start(verb)
                    if verb == "ingest":
                        self._until(lambda: self._lake.has(1), "no table")
                        watch = Watch(self._lake.has)
                        stack.callback(watch.stop)
                assert watch is not None
                self._until(lambda: self._is_quiet(self._rows), "the first rows are not published")
                self.say(f"{self._rows:,} rows are in table and topic; now {self._rate:,} changes a second")
                if self._ports:  # not before: the first rows are old when they come into the table
                    stack.enter_context(prometheus.running())
                self._stream(broker, watch, serving, start)
                self._until(lambda: self._is_quiet(len(self._load)), "the last changes are not published")
            except JobError as error:
                if watch is not None and not np.isnan(self._start):
                    self._measure(watch)
                return [str(error)]
            self._measure(watch)
            if self._ports:
                unlike = soak_kills.unlike(self._faults, prometheus.fired(), prometheus.resets())
                return [*self._ended(), *unlike, *self._verified()]
            return [*self._ended(), *self._judged(), *self._verified()]

    def _begin(self, stack: ExitStack, broker: Broker, serving: list[int], verb: str) -> None:
        file = str(self._pipeline(broker, verb))
        command = [sys.executable, "-m", "bridge", verb, file, *self._lake.settings]
        self._runs += 1
        place = self._folder / f"{verb}-{self._runs}"
        self._jobs[verb] = stack.enter_context(started(command, folder=place, beside=serving))

    def _stream(self, broker: Broker, watch: Watch, serving: list[int], start: Callable[[str], None]) -> None:
        writer = self._write(broker, self._load, self._rows, self._rate)
        self._start = time.time()
        for number, part in enumerate(self._parts):
            others = Others([*serving, *(job.pid for job in self._jobs.values())])
            end = self._start + (number + 1) * self._length
            while (left := end - time.time()) > 0:
                time.sleep(max(0.0, min(_SAMPLE_SECONDS, left)))
                self._play(broker, time.time() - self._start, start)
                for verb, job in self._jobs.items():
                    if verb in self._away:
                        continue
                    getattr(part, verb).append(Held.of(job.pid))
                    if not job.running:
                        raise job.failed(f"has ended with code {job.code} in part {number + 1}")
            part.others = others.seconds()
            self._follow()
            part.active, part.removed = len(self._table.files), self._removed
            self._measure(watch)
            self.say(
                f"part {number + 1}: topic → table p50 {part.table[0]:.2f} s, p99 {part.table[1]:.2f} s; "
                f"→ topic p50 {part.topic[0]:.2f} s, p99 {part.topic[1]:.2f} s; "
                f"range {part.range[0]:.2f} s; {part.removed:,} removed files"
            )
        writer.join()
        if writer.exitcode:
            raise JobError(f"the writer has ended with code {writer.exitcode}")

    def _play(self, broker: Broker, seconds: float, start: Callable[[str], None]) -> None:
        """Play the faults that are due, and start what was away for its time."""
        for verb, until in [*self._away.items()]:
            if seconds >= until:
                del self._away[verb]
                start(verb)
        for fault in self._faults[self._played :]:
            if fault.after > seconds:
                return
            self._played += 1
            self.say(f"fault: {fault.kind}, {fault.verb}")
            if fault.kind == "bad record":
                soak_kills.send_bad_record(broker.bootstrap, _TOPIC, self._rows + self._played)
                continue
            self._jobs[fault.verb].kill()
            self._away[fault.verb] = seconds + fault.away_seconds

    def _write(
        self, broker: Broker, load: Load, first: int, rate: int
    ) -> multiprocessing.process.BaseProcess:
        arguments = (broker.bootstrap, _TOPIC, load, first, rate, self._folder / "sent")
        writer = multiprocessing.get_context("spawn").Process(
            target=soak_sides.write, args=arguments, daemon=True
        )
        writer.start()
        return writer

    def _pipeline(self, broker: Broker, verb: str) -> Path:
        """Write the file of one direction: all defaults, but for the trigger, and with kills what shows metrics and
        goes on after bad records."""
        topic = _TOPIC if verb == "ingest" else _OUT
        shows = f", metrics: 127.0.0.1:{self._ports[verb]}" if self._ports else ""
        skips = "ingest: {bad-records: skip}\n" if self._ports and verb == "ingest" else ""
        file = self._folder / f"{verb}.yaml"
        file.write_text(
            section(broker, topic) + f"name: soak-{verb}\ndelta: {{path: '{self._lake.root}/table'}}\n"
            f"run: {{checkpoint: '{self._lake.root}/checkpoint-{verb}', trigger: {self._lake.trigger}{shows}}}\n"
            + skips
        )
        return file

    def _until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for something. Raises JobError when a process ends before it, or it does not come."""
        deadline = time.monotonic() + _READY_SECONDS
        while not done():
            for job in self._jobs.values():
                if not job.running:
                    raise job.failed(f"has ended with code {job.code}")
            if time.monotonic() > deadline:
                raise JobError(f"{what} after {_READY_SECONDS:.0f} s")
            time.sleep(0.2)

    def _is_quiet(self, records: int) -> bool:
        """Whether the first records are in the table, and nothing has been published for a while."""
        self._follow()
        ends = self._ends.get(max(self._ends, default=-1), {})
        read = self._read.stat()
        return (
            sum(ends.values()) >= records
            and read.st_size > 0
            and time.time() - read.st_mtime > _SILENT_SECONDS
        )

    def _follow(self) -> None:
        """Read the commits that have come: files, and how far each is in the topic."""
        while (commit := self._table.read_commit(self._table.version + 1)) is not None:
            self._table.apply(commit)
            self._table.version += 1
            self._removed += sum("remove" in action for action in commit)
            for action in commit:
                text = action.get("commitInfo", {}).get("userMetadata")
                if found := IngestProgress.from_json(text):
                    self._ends[self._table.version] = {p: offset for _, p, offset in found[0].offsets}

    def _measure(self, watch: Watch) -> None:
        """Take the latencies and durations of all parts so far."""
        table, topic = self._in_table(watch), self._in_topic()
        part_of = np.floor((self._sent - self._start) / self._length)
        seconds = {verb: _durations(job.said) for verb, job in self._jobs.items()}
        for number, part in enumerate(self._parts):
            mine = part_of == number
            part.rate = float(np.count_nonzero(mine)) / self._length
            part.table, part.topic = (_percentiles((seen - self._sent)[mine]) for seen in (table, topic))
            begin = self._start + number * self._length
            for verb, name in (("ingest", "batch"), ("publish", "range")):
                took = [
                    s
                    for v, s in seconds.get(verb, [])
                    if begin <= watch.times.get(v, 0.0) < begin + self._length
                ]
                setattr(part, name, _percentiles(np.array(took)))

    def _in_table(self, watch: Watch) -> npt.NDArray[np.float64]:
        """When each record was in the table."""
        self._follow()
        versions = [version for version in sorted(self._ends) if version in watch.times]
        at = np.array([*(watch.times[version] for version in versions), np.nan])
        seen = np.full(len(self._load), np.nan)
        for partition, indexes in soak_sides.by_partition(self._load).items():
            ends = [self._ends[version].get(partition, 0) for version in versions]
            seen[indexes] = at[np.searchsorted(ends, np.arange(len(indexes)), side="right")]
        return seen

    def _in_topic(self) -> npt.NDArray[np.float64]:
        """When each record, or a successor, was in the output topic; nan also for one that a deletion has followed
        before it was sent."""
        read = np.fromfile(self._read, soak_sides.READ)
        read = read[read["number"] > 0]
        times, poll = np.unique(read["at"], return_inverse=True)
        rows = pa.table({"version": poll, "id": read["id"], "number": read["number"]})
        if not len(times):
            return np.full(len(self._load), np.nan)
        seen = seen_at(self._load.keys, rows, dict(enumerate(times.tolist())))
        seen[self._load.deletes] = np.nan
        return seen

    def _ended(self) -> list[str]:
        """Ask both processes to end."""
        failures = []
        for job in self._jobs.values():
            job.stop()
            if job.code:
                failures.append(str(job.failed(f"ended with code {job.code} when it was asked to end")))
        return failures

    def _judged(self) -> list[str]:
        return grown(self._parts[1], self._parts[-1], seconds=self._length)

    def _verified(self) -> list[str]:
        failures = []
        for verb in self._jobs:
            command = [sys.executable, "-m", "bridge", "verify", str(self._folder / f"{verb}.yaml")]
            command += self._lake.settings
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.say(f"verify of the {verb}: code {done.returncode}")
            if done.returncode:
                failures.append(
                    f"verify of the {verb} ended with code {done.returncode}:\n{done.stdout}{done.stderr}"
                )
        return failures

    def show(self) -> None:
        """Print all parts."""
        self._screen.print(shown(self._parts, self._length))


def shown(parts: Sequence[Part], seconds: float) -> Table:
    """The parts as a table, one a column."""
    table = Table(box=None, title=f"Parts of {seconds / 60:.3g} minutes", title_justify="left")
    table.add_column("")
    for number in range(len(parts)):
        table.add_column(str(number + 1), justify="right")
    rows: list[tuple[str, Callable[[Part], str]]] = [
        ("changes a second", lambda p: f"{p.rate:,.0f}"),
        ("topic → table, p50 / p99, s", lambda p: _pair(p.table)),
        ("topic → table → topic, p50 / p99, s", lambda p: _pair(p.topic)),
        ("a batch, p50 / p99, s", lambda p: _pair(p.batch)),
        ("a range of the publish, p50 / p99, s", lambda p: _pair(p.range)),
        (
            "memory (PSS) of ingest / publish, MB",
            lambda p: f"{p.memory('ingest'):,.0f} / {p.memory('publish'):,.0f}",
        ),
        ("threads", lambda p: _most(p, "threads")),
        ("open files", lambda p: _most(p, "files")),
        ("active / removed files", lambda p: f"{p.active:,} / {p.removed:,}"),
        ("CPU seconds of others", lambda p: f"{p.others:,.0f}"),
    ]
    for name, text in rows:
        table.add_row(name, *map(text, parts))
    return table


def _pair(values: tuple[float, float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def _most(part: Part, name: str) -> str:
    held = (part.ingest, part.publish)
    return " / ".join(f"{max((getattr(h, name) for h in samples), default=0):,}" for samples in held)


def _percentiles(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    p50, p99 = np.percentile(known, (50, 99))
    return float(p50), float(p99)


def _durations(said: str) -> list[tuple[int, float]]:
    """The version and the seconds of each batch, from the lines that a verb prints."""
    found = []
    for line in said.splitlines():
        if line.startswith(("ingest ", "publish ")) and (version := re.search(r"  version (\d+)  ", line)):
            took = re.fullmatch(r"(?:(\d+) min )?([\d.]+) s", line.rsplit("  ", 1)[1].strip())
            if took:
                found.append((int(version[1]), 60 * int(took[1] or 0) + float(took[2])))
    return found


def _pss_kb(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has ended since it was listed
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) if found else 0


def _entries(folder: str) -> Callable[[int], int]:
    def count(pid: int) -> int:
        try:
            return len(os.listdir(f"/proc/{pid}/{folder}"))
        except OSError:
            return 0

    return count


if __name__ == "__main__":
    sys.exit(main())
