"""Whole jobs as processes: how long they take, the memory they hold, and what their commits say."""

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

__all__ = ["Commit", "JobError", "Ran", "commits", "run"]

_EVERY_SECONDS = 0.2
_LIMIT_SECONDS = 3600.0
_COLD = 3
"""So many batches are not warm yet. The last one may be what was left over."""


class JobError(RuntimeError):
    """A job that did not end well; the message has its last words."""


@dataclass(frozen=True)
class Commit:
    """One commit of a batch to a table."""

    version: int
    at: float
    """In seconds of the epoch."""
    operation: str
    metrics: dict[str, float]
    engine: str
    """Who made it: spark or delta-rs."""


@dataclass(frozen=True)
class Ran:
    """One job, from its start to its end."""

    seconds: float
    batches: list[Commit]
    memory: list[tuple[float, float]] = field(repr=False)
    """(seconds since the start, MB held by all its processes); empty where there is no /proc."""
    events: Path | None = None
    """Spark's event log."""

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.memory), default=float("nan"))

    @property
    def engines(self) -> str:
        """Whose commits its batches are, and how many."""
        counted = Counter(batch.engine for batch in self.batches)
        return ", ".join(f"{count} by {engine}" for engine, count in sorted(counted.items()))

    @property
    def warm_batches(self) -> list[tuple[Commit, Commit]]:
        """Each batch after the third and before the last, and the one before it; of a few, all but the first."""
        pairs = list(zip(self.batches, self.batches[1:], strict=False))
        return pairs[_COLD - 1 : -1] or pairs

    @property
    def warm(self) -> float:
        """The median seconds from the commit before a warm batch to its own, reading and all pauses included."""
        found = [after.at - before.at for before, after in self.warm_batches]
        return statistics.median(found) if found else float("nan")


def run(command: Sequence[str], *, folder: Path, table: Path) -> Ran:
    """Run `command` as a session of its own to its end. What it prints and Spark's event log stay in `folder`, which is
    new. Raises JobError when it fails; leaves no process."""
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
    told = [x for key, value in conf.items() for x in ("--conf", f"{key}={value}")]
    environ = {**os.environ, "BRIDGE_LOG": str(folder / "spark.log")}
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
        watcher = threading.Thread(target=_watch, args=(process, started, memory), daemon=True)
        watcher.start()
        try:
            code = process.wait(_LIMIT_SECONDS)
            seconds = time.perf_counter() - started
        finally:
            for pid in _session(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait()
    watcher.join()
    if code:
        last = "\n".join(said.read_text(errors="replace").splitlines()[-12:])
        raise JobError(f"{' '.join(command)} ended with code {code}:\n{last}")
    new = [commit for commit in commits(table) if commit.version not in known]
    return Ran(seconds, new, memory, next(iter(sorted(events.iterdir())), None))


def commits(table: Path) -> list[Commit]:
    """The table's commits that apply a batch, oldest first: its MERGEs, and writes that carry a stream's number."""
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


def _watch(process: subprocess.Popen[bytes], started: float, memory: list[tuple[float, float]]) -> None:
    while process.poll() is None:
        held = _held(_session(process.pid))
        if held:
            memory.append((time.perf_counter() - started, held / 1e6))
        time.sleep(_EVERY_SECONDS)


def _session(leader: int) -> list[int]:
    """The processes of the session that `leader` has opened."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue  # ended meanwhile
        after_name = stat[stat.rindex(")") + 2 :].split()
        if int(after_name[3]) == leader and after_name[0] != "Z":
            found.append(int(folder.name))
    return found


def _held(pids: Sequence[int]) -> int:
    """Bytes. A child that has just been forked is its parent still: of those with the same address space one counts."""
    spaces: dict[int, int] = {}
    for pid in pids:
        try:
            size, resident = Path(f"/proc/{pid}/statm").read_text().split()[:2]
        except (OSError, ValueError):
            continue
        spaces[int(size)] = int(resident)
    return sum(spaces.values()) * os.sysconf("SC_PAGE_SIZE")
