"""Runs the job of a verb under a supervisor, which restarts it after every end and measures recovery times."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.faults.carrier import read_errors
from tests.faults.nodes import Nodes, kill
from tests.faults.zygote import Zygote
from tests.pipelines.processes import Process

_ORPHAN_SECONDS = 20.0
_END_SECONDS = 400.0
_QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m "
    "-Xms1200m -Xmn600m -XX:MetaspaceSize=400m"
)
"""Most JVMs are killed before Java's second compiler (C2) pays off. Without C2 a JVM has a code cache of 48 MB by
default, which a few pipelines fill; then it fails in various places. It begins with room for its classes and garbage:
a JVM of six ingests spent an eighth of its time on garbage, much of it on full collections while it grew."""

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A cold JVM compiles some 160 classes for a batch of Spark's MERGE (docs/adr/013), and uses them for a few rows."""

_AS_USERS_HAVE_IT = 6
"""Every n-th JVM runs with the second compiler and with generated code."""

_IN_PLACE = ("broker", "pause", "kill worker", "kill executor", "kill node", "failpoint: raise")
"""Kinds of faults that the process may survive."""


class _Forked:
    """The interface of a subprocess for a child of the zygote, as Process needs it."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid, self._code = pid, folder / "code"

    def poll(self) -> int | None:
        try:
            return int(self._code.read_text())
        except FileNotFoundError:
            return None

    def wait(self, timeout: float = 60.0) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline, f"{self.pid} has not ended"
            time.sleep(0.02)
        return code


class Carrier(Process):
    """A forked process that runs one verb of all lanes; see `carrier`."""

    def __init__(
        self,
        zygote: Zygote,
        verb: str,
        files: Mapping[str, Path],
        folder: Path,
        environ: Mapping[str, str],
        *,
        quick: bool = True,
        nodes: Nodes | None = None,
    ) -> None:
        self.verb, self.folder, self.files, self._nodes = verb, folder, files, nodes
        self.temporary, self._failpoints = folder / "tmp", folder / "failpoints"
        for made in (self.temporary, self._failpoints):
            made.mkdir(parents=True)
        self._output = folder / "said.txt"
        self._output.touch()
        # The JVM does not read TMPDIR.
        conf = {
            **(_INTERPRETED if quick else {}),
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={self.temporary} {_QUICK if quick else ''}".strip(),
            "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
        }
        if verb == "ingest":  # a MERGE writes a file for each task, so that there are file shards
            conf["spark.sql.adaptive.coalescePartitions.enabled"] = "false"
        else:  # with one task at a time the work of the cores is always even
            conf["spark.default.parallelism"] = "1"
        if nodes is not None:
            conf |= nodes.conf(self._failpoints)
            environ = {**environ, **nodes.environ}
        pid = zygote.child(
            verb=verb,
            files={lane: str(file) for lane, file in files.items()},
            folder=str(folder),
            environ={**environ, "BRIDGE_LOG": str(folder / "bridge.log")},
            conf=conf,
            master="local[2]" if nodes is None else nodes.cluster.url,
        )
        self._process = _Forked(pid, folder)  # type: ignore[assignment]

    def executors(self) -> list[int]:
        """Its executors on other nodes, which its end leaves to themselves; none on a local master."""
        return self._nodes.executors(self._failpoints) if self._nodes else []

    def workers(self) -> list[int]:
        return self._nodes.workers(self._failpoints) if self._nodes else super().workers()

    def progress(self, lane: str) -> int:
        """Returns how many batches of a lane's pipeline this process has committed."""
        try:
            return (self.folder / "progress" / lane).stat().st_size
        except OSError:
            return 0

    def dump_stacks(self) -> None:
        """Lets driver and JVM write what their threads do: `stacks.txt`, and the file of the JVM's output."""
        for pid, number in ((self.pid, signal.SIGUSR1), (self.jvm(), signal.SIGQUIT)):
            if pid is not None and self.code is None:
                os.kill(pid, number)

    def over(self, lane: str) -> bool:
        """Whether the lane's pipeline has ended in this process."""
        return (self.folder / "ended" / lane).exists()

    @property
    def errors(self) -> list[str]:
        """The errors by which its pipelines ended."""
        return [f"{e['lane']}: {e['kind']}: {e['message']}" for e in read_errors(self.folder)]


class _Hit(NamedTuple):
    kind: str
    since: float
    process: Carrier | None
    progress: int


class Job:
    """One verb of all lanes, with a supervisor that keeps it running."""

    def __init__(
        self,
        zygote: Zygote,
        verb: str,
        files: Mapping[str, Path],
        folder: Path,
        environ: Mapping[str, str],
        nodes: Nodes | None = None,
    ) -> None:
        self.verb, self.files, self.nodes = verb, files, nodes
        self._zygote, self._folder, self._environ = zygote, folder, environ
        self.recoveries: list[tuple[str, float]] = []
        """(kind of the fault, seconds until the next batch of a pipeline that it hit)"""
        self.rounds: Counter[tuple[str, str]] = Counter()
        """(lane, kind) of each fault that hit a pipeline."""
        self.unasked: list[str] = []
        """The errors of pipelines that ended without a fault."""
        self.leaks: list[str] = []
        self.files_left: list[str] = []
        """Temporary files left after a successful end."""
        self.starts = 0
        self.process: Carrier | None = None
        self.hits: dict[str, _Hit] = {}
        self.expecting = False
        """A pipeline is about to end with an error; it is not known yet which one."""
        self._heard = 0
        self._past: list[tuple[Carrier, float]] = []
        self._resting = 0.0

    def started(self) -> Carrier:
        """Starts a process; the supervisor does not watch it until it is `process`."""
        self.starts += 1
        folder = self._folder / f"{self.verb}-{self.starts}"
        quick = self.starts % _AS_USERS_HAVE_IT != 0
        return Carrier(
            self._zygote, self.verb, self.files, folder, self._environ, quick=quick, nodes=self.nodes
        )

    @property
    def running(self) -> Carrier:
        """The live process; starts one if there is none."""
        if self.process is None:
            self.process, self._heard = self.started(), 0
        return self.process

    @property
    def recovering(self) -> bool:
        return bool(self.hits)

    def is_hit(self, kind: str, lanes: Sequence[str] | None = None, *, counts: bool = True) -> None:
        """Marks these pipelines (default: all) as hit, and starts their recovery time. `counts`: it is a round."""
        process = self.process
        for lane in self.files if lanes is None else lanes:
            progress = process.progress(lane) if process else 0
            since = self.hits[lane].since if lane in self.hits else time.monotonic()
            self.hits[lane] = _Hit(kind, since, process, progress)
            self.rounds[lane, kind] += counts

    def tend(self) -> None:
        """Restarts what has ended, records progress, and checks that ended processes leave no children."""
        self._bury()
        process = self.process
        for lane, hit in list(self.hits.items()):
            if process is None or (process is hit.process and not hit.kind.startswith(_IN_PLACE)):
                continue
            if process.progress(lane) > (hit.progress if process is hit.process else 0):
                self.recoveries.append((hit.kind, time.monotonic() - hit.since))
                del self.hits[lane]
        if process is not None:
            self._listen(process)
        if process is not None and (process.code is not None or any(map(process.over, self.files))):
            if process.code is None:
                process.kill()
            self.process = None
            if not self.hits:
                self.unasked.append(f"{self.verb} ended with {process.code}: {process.output[-400:]}")
            self.is_hit("unasked", counts=False)
            self._resting = time.monotonic() + (0.0 if process.code == -signal.SIGKILL else 0.3)
            self.left(process)
        if self.process is None and time.monotonic() >= self._resting and (self.hits or self.starts):
            self.running  # noqa: B018

    def _listen(self, process: Carrier) -> None:
        """Records pipelines that have ended in a live process."""
        errors = process.errors
        for error in errors[self._heard :]:
            lane = error.partition(":")[0]
            if lane not in self.hits and not self.expecting:
                self.unasked.append(f"{self.verb} of {error[:600]}")
        self._heard = len(errors)

    def left(self, process: Carrier) -> None:
        """Its driver has ended: JVM, workers and executors must end within some seconds."""
        self._past.append((process, time.monotonic() + _ORPHAN_SECONDS))

    def _bury(self) -> None:
        for process, deadline in list(self._past):
            left = process.pids() + process.executors()
            if left and time.monotonic() < deadline:
                continue
            if left:
                self.leaks.append(
                    f"{self.verb}: processes {left} live on {_ORPHAN_SECONDS:.0f} s after their driver"
                )
                _end(process)
            shutil.rmtree(process.temporary, ignore_errors=True)
            self._past.remove((process, deadline))

    def must_end(self, process: Carrier, seconds: float = _END_SECONDS) -> Callable[[], bool]:
        """Returns a condition that is true once the process has ended; kills one that does not in time, a leak."""
        deadline = time.monotonic() + seconds

        def ended() -> bool:
            if process.code is None and time.monotonic() > deadline:
                alive = [lane for lane in self.files if not process.over(lane)]
                self.leaks.append(
                    f"{self.verb} did not end within {seconds:.0f} s: {alive}; {process.errors}; "
                    f"{process.output[-400:]}"
                )
                process.kill()
            return process.code is not None

        return ended

    def stop(self) -> None:
        """Ends it with SIGTERM, like a user. Remaining processes, and an end with an error, are leaks."""
        process, self.process = self.running, None
        os.kill(process.pid, signal.SIGTERM)
        condition = self.must_end(process)
        while not condition():
            time.sleep(0.1)
        if process.code != 0:
            self.leaks.append(
                f"{self.verb} ended with {process.code} when it was stopped: {process.output[-400:]}"
            )
        self.left(process)
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while process.pids() + process.executors() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.files_left += [str(path) for path in process.temporary.iterdir()]
        while self._past:
            self._bury()
            time.sleep(0.1)

    def kill(self) -> None:
        """Ends all processes, in any state."""
        for process in [*(p for p, _ in self._past), *([self.process] if self.process else [])]:
            _end(process)


def _end(process: Carrier) -> None:
    process.kill()
    for pid in process.executors():
        kill(pid)
