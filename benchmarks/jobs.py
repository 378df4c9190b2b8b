"""Runs whole jobs as processes, and measures their duration, memory and commits."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cpu import Cpu, busy, sessions

__all__ = ["Commit", "JobError", "Ran", "commits", "run"]

_EVERY_SECONDS = 0.2
_LIMIT_SECONDS = 3600.0
_COLD = 3
"""The number of first batches that are not warm. The last batch is excluded, too, since it may be smaller."""


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
    """The engine that wrote it: spark or delta-rs."""


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

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.memory), default=float("nan"))

    @property
    def engines(self) -> str:
        """The number of batches by engine, as text."""
        counted = Counter(batch.engine for batch in self.batches)
        return ", ".join(f"{count} by {engine}" for engine, count in sorted(counted.items()))

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


def run(
    command: Sequence[str], *, folder: Path, table: Path, spark: bool = True, beside: Sequence[int] = ()
) -> Ran:
    """Run `command` as a session of its own to its end. What it prints and, of a job of `spark`, the event log stay in
    `folder`, which is new. `beside`: leaders of the sessions that serve the job (the broker, this process), whose CPU
    is nobody else's. Raises JobError when it fails; leaves no process."""
    folder.mkdir(parents=True)
    events = folder / "events"
    events.mkdir()
    known = {commit.version for commit in commits(table)}
    said = folder / "said.txt"
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    told = [x for key, value in conf.items() for x in ("--conf", f"{key}={value}")] if spark else []
    environ = {**os.environ, "BRIDGE_LOG": str(folder / "spark.log")}
    own, others = Cpu(), Cpu()
    others.sample(sessions(beside))
    before, served = busy(), others.seconds
    started = time.perf_counter()
    with said.open("wb") as out:
        process = subprocess.Popen(
            [*command, *told],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environ,
            start_new_session=True,
        )
        memory: list[tuple[float, float]] = []
        watched = (process, started, memory, own)
        watcher = threading.Thread(target=_watch, args=watched, daemon=True)
        watcher.start()
        try:
            code = process.wait(_LIMIT_SECONDS)
            seconds = time.perf_counter() - started
        finally:
            for pid in sessions([process.pid]):
                os.kill(pid, signal.SIGKILL)
            process.wait()
    watcher.join()
    others.sample(sessions(beside))
    foreign = busy() - before - own.seconds - (others.seconds - served)
    if code:
        last = "\n".join(said.read_text(errors="replace").splitlines()[-12:])
        raise JobError(f"{' '.join(command)} ended with code {code}:\n{last}")
    new = [commit for commit in commits(table) if commit.version not in known]
    log = next(iter(sorted(events.iterdir())), None)
    return Ran(seconds, new, memory, log, own.seconds, max(0.0, foreign))


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
                    "delta-rs" if "delta-rs" in info.get("engineInfo", "") else "spark",
                )
            )
    return found


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _watch(
    process: subprocess.Popen[bytes], started: float, memory: list[tuple[float, float]], cpu: Cpu
) -> None:
    while process.poll() is None:
        pids = sessions([process.pid])
        cpu.sample(pids)
        held = _held(pids)
        if held:
            memory.append((time.perf_counter() - started, held / 1e6))
        time.sleep(_EVERY_SECONDS)


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
