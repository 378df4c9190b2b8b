"""A job and its supervisor: whatever ends it, it is started again; how long it was away is measured."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.pipelines.processes import CONF, Process

__all__ = ["Job", "Mark"]

_ORPHAN_SECONDS = 10.0
_END_SECONDS = 60.0
_CONF = (*CONF, "spark.driver.memory=1g", "spark.sql.shuffle.partitions=2")


class Mark(NamedTuple):
    """How far a verb has got: the run that wrote its newest progress, the version, and whether that is all there is."""

    run: str | None = None
    version: int = -1
    caught_up: bool = False


@dataclass
class Job:
    """One verb that is to run all the time."""

    verb: str
    file: Path
    folder: Path
    mark: Callable[[], Mark]
    recoveries: list[tuple[str, float]] = field(default_factory=list)
    """(kind of the fault, seconds until the next progress)"""
    unasked: list[str] = field(default_factory=list)
    """Last words of those that ended though nobody had hit them."""
    leaks: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Temporary files that were there after a good end."""
    java: str = ""
    """More options for its JVM."""
    starts: int = 0
    process: Process | None = None
    _hit: tuple[str, float, Mark] | None = None
    _past: list[tuple[Process, float]] = field(default_factory=list)
    _resting: float = 0.0

    def started(self) -> Process:
        """One more process; the supervisor knows nothing of it until it is `process`."""
        self.starts += 1
        made = Process(
            self.verb,
            self.file,
            self.folder / f"{self.verb}-{self.starts}",
            master="local[1]",
            conf=_CONF,
            java=self.java,
        )
        return made.__enter__()

    @property
    def running(self) -> Process:
        """The one that is alive; starts one if need be."""
        if self.process is None:
            self.process = self.started()
        return self.process

    @property
    def recovering(self) -> bool:
        return self._hit is not None

    def is_hit(self, kind: str) -> None:
        """From now on it is late."""
        self._hit = (kind, time.monotonic(), self.mark())

    def tend(self) -> None:
        """Start what has ended, look whether there is progress, and that those who are gone are gone."""
        self._bury()
        if self._hit is not None:
            kind, since, before = self._hit
            now = self.mark()
            moved = now.version > before.version or now.caught_up
            if (now.run != before.run and moved) or (
                kind in ("broker", "pause") and now.version > before.version
            ):
                self.recoveries.append((kind, time.monotonic() - since))
                self._hit = None
        if self.process is not None and self.process.code is not None:
            ended, self.process = self.process, None
            if self._hit is None:
                self.unasked.append(f"{self.verb} ended with {ended.code}: {ended.said[-400:]}")
                self.is_hit("unasked")
            elif ended.code != -signal.SIGKILL:
                self._resting = time.monotonic() + 0.5
            self.left(ended)
        if self.process is None and time.monotonic() >= self._resting:
            self.process = self.started()

    def left(self, process: Process) -> None:
        """Its driver has ended: the JVM and the workers have ten seconds to follow."""
        self._past.append((process, time.monotonic() + _ORPHAN_SECONDS))

    def _bury(self) -> None:
        for process, deadline in list(self._past):
            left = process.pids()
            if left and time.monotonic() < deadline:
                continue
            if left:
                self.leaks.append(
                    f"{self.verb}: processes {left} live on {_ORPHAN_SECONDS:.0f} s after their driver"
                )
                process.kill()
            shutil.rmtree(process.temporary, ignore_errors=True)
            self._past.remove((process, deadline))

    def must_end(self, process: Process, seconds: float = _END_SECONDS) -> Callable[[], bool]:
        """A condition that is true once the process has ended; one that does not in time is a leak, and killed."""
        deadline = time.monotonic() + seconds

        def ended() -> bool:
            if process.code is None and time.monotonic() > deadline:
                self.leaks.append(f"{self.verb} did not end within {seconds:.0f} s: {process.said[-400:]}")
                process.kill()
            return process.code is not None

        return ended

    def stop(self) -> None:
        """End it as its user does. What is left of it, or ends with an error, is a leak."""
        process, self.process = self.running, None
        os.kill(process.pid, signal.SIGTERM)
        condition = self.must_end(process)
        while not condition():
            time.sleep(0.1)
        if process.code != 0:
            self.leaks.append(
                f"{self.verb} ended with {process.code} when it was stopped: {process.said[-400:]}"
            )
        self.left(process)
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while process.pids() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.files += [str(path) for path in process.temporary.iterdir()]
        while self._past:
            self._bury()
            time.sleep(0.1)

    def kill(self) -> None:
        """Leave nothing, in whatever state this is."""
        for process in [*(p for p, _ in self._past), *([self.process] if self.process else [])]:
            process.kill()
