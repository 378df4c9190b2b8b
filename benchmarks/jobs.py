"""Runs whole jobs as processes, and measures their duration, memory, CPU and commits."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.cpu import Cpu, Others, sessions

_EVERY_SECONDS = 0.2
_LIMIT_SECONDS = 3600.0
_COLD = 3
"""The number of first batches that are not warm. The last batch is excluded, too, since it may be smaller."""
_READER = re.compile(r"  read by (\w+)")
"""What read a batch, in the line that `bridge ingest` prints of it."""


class JobError(RuntimeError):
    """A failed job; the message has the end of its output."""


@dataclass(frozen=True)
class Commit:
    """One commit of a batch to a table."""

    version: int
    at: float
    """In epoch seconds."""
    operation: str
    metrics: dict[str, float]
    engine: str
    """The engine that wrote it: spark or driver."""


@dataclass(frozen=True)
class Ran:
    """A finished job."""

    seconds: float
    batches: list[Commit]
    memory: list[tuple[float, float]] = field(repr=False)
    """(seconds since the start, resident MB of all its processes); empty where there is no /proc."""
    events: Path | None = None
    """Spark's event log."""
    cpu: float = float("nan")
    """CPU seconds of all its processes."""
    foreign: float = 0.0
    """CPU seconds that neither the job nor those who serve it (`beside`) have spent meanwhile."""
    said: str = field(default="", repr=False)
    """What it printed."""

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.memory), default=float("nan"))

    @property
    def engines(self) -> str:
        """The number of batches by engine, and what read them where the job has printed that."""
        merged = _counted(batch.engine for batch in self.batches)
        read = _counted(_READER.findall(self.said))
        return ", ".join(filter(None, (merged, read and f"read {read}")))

    @property
    def warm_batches(self) -> list[tuple[Commit, Commit]]:
        """Each warm batch and its predecessor: after the third and before the last, or of few all but the first."""
        pairs = list(zip(self.batches, self.batches[1:], strict=False))
        return pairs[_COLD - 1 : -1] or pairs

    @property
    def warm(self) -> float:
        """The median seconds from the commit before a warm batch to its own, including reading and all pauses."""
        found = [after.at - before.at for before, after in self.warm_batches]
        return statistics.median(found) if found else float("nan")

    @property
    def warm_mean(self) -> float:
        """As `warm`, but the mean."""
        found = [after.at - before.at for before, after in self.warm_batches]
        return statistics.mean(found) if found else float("nan")


class Job:
    """A process that runs, as the leader of a session of its own; see `started`."""

    def __init__(self, command: Sequence[str], folder: Path, beside: Sequence[int]) -> None:
        self._command, self._said = command, folder / "said.txt"
        self._memory: list[tuple[float, float]] = []
        self._own, self._others = Cpu(), Others(beside)
        self._started = time.perf_counter()
        with self._said.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "BRIDGE_LOG": str(folder / "spark.log")},
                start_new_session=True,
            )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self._said.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the leader of its session."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def stop(self) -> Ran:
        """Ask the process to end (SIGTERM), and wait for that; its exit code does not matter."""
        self._process.terminate()
        self._process.wait(60)
        return self._ran()

    def ended(self) -> Ran:
        """Wait for the end of the process. Raises JobError when it fails."""
        code = self._process.wait(_LIMIT_SECONDS)
        ran = self._ran()
        if code:
            raise self.failed(f"ended with code {code}")
        return ran

    def failed(self, how: str) -> JobError:
        """The error of a process that failed somehow, with the last lines that it has printed."""
        last = "\n".join(self.said.splitlines()[-12:])
        return JobError(f"{' '.join(self._command)} {how}:\n{last}")

    def kill(self) -> None:
        """End all processes of the session that are left."""
        for pid in sessions([self._process.pid]):
            with suppress(ProcessLookupError):  # it has ended since it was listed
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._watcher.join()

    def _ran(self) -> Ran:
        seconds = time.perf_counter() - self._started
        self.kill()
        foreign = self._others.seconds(self._own.seconds)
        return Ran(seconds, [], self._memory, None, self._own.seconds, foreign, self.said)

    def _watch(self) -> None:
        while self.running:
            pids = sessions([self._process.pid])
            self._own.sample(pids)
            held = _held(pids)
            if held:
                self._memory.append((time.perf_counter() - self._started, held / 1e6))
            time.sleep(_EVERY_SECONDS)


@contextmanager
def started(command: Sequence[str], *, folder: Path, beside: Sequence[int] = ()) -> Iterator[Job]:
    """Start `command` in a session of its own, of which no process is left afterwards. What it prints stays in
    `folder`. `beside`: leaders of the sessions that serve the job (the broker, this process), whose CPU is nobody
    else's."""
    folder.mkdir(parents=True, exist_ok=True)
    job = Job(command, folder, beside)
    try:
        yield job
    finally:
        job.kill()


def run(
    command: Sequence[str], *, folder: Path, table: Path, spark: bool = True, beside: Sequence[int] = ()
) -> Ran:
    """Run `command` to its end (see `started`), and find its commits to `table`. The event log of a job of `spark`
    stays in `folder`, which is new. Raises JobError when the job fails."""
    folder.mkdir(parents=True)
    events = folder / "events"
    events.mkdir()
    known = {commit.version for commit in commits(table)}
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    told = [x for key, value in conf.items() for x in ("--conf", f"{key}={value}")] if spark else []
    with started([*command, *told], folder=folder, beside=beside) as job:
        ran = job.ended()
    new = [commit for commit in commits(table) if commit.version not in known]
    return replace(ran, batches=new, events=next(iter(sorted(events.iterdir())), None))


def commits(table: Path) -> list[Commit]:
    """Returns the table's commits that apply a batch, oldest first: MERGEs, and writes with a batch number."""
    found = []
    for file in sorted((table / "_delta_log").glob("*.json")):
        if not file.stem.isdigit():
            continue
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        info: dict[str, Any] = next(
            (action["commitInfo"] for action in actions if "commitInfo" in action), {}
        )
        if info.get("operation") == "MERGE" or any("txn" in action for action in actions):
            metrics = {k: float(v) for k, v in info.get("operationMetrics", {}).items() if _is_number(v)}
            found.append(
                Commit(
                    int(file.stem),
                    info["timestamp"] / 1000,
                    info.get("operation", ""),
                    metrics,
                    _engine(info.get("engineInfo", "")),
                )
            )
    return found


def _engine(info: str) -> str:
    return "driver" if info.startswith("changelog-bridge") else "spark"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} by {name}" for name, count in sorted(Counter(names).items()))


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _held(pids: Sequence[int]) -> int:
    """Returns the resident bytes. Of processes with the same address space (a new fork and its parent) one counts."""
    spaces: dict[int, int] = {}
    for pid in pids:
        try:
            size, resident = Path(f"/proc/{pid}/statm").read_text().split()[:2]
        except (OSError, ValueError):
            continue
        spaces[int(size)] = int(resident)
    return sum(spaces.values()) * os.sysconf("SC_PAGE_SIZE")
