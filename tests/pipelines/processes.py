"""A verb of `bridge` as its user starts it: a session of processes that can be stopped and killed as one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import TypeVar

from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.ledger import Ledger
from tests.pipelines.world import World

_SECONDS = 90.0
CONF = (
    "spark.sql.execution.arrow.maxRecordsPerBatch=5",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
)
JAVA = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


Arm = Callable[[str, str], Path]
"""The fixture `arm`."""
Prepare = Callable[..., tuple[World, Ledger]]
"""`prepared` with the fixtures of a test: the fixture `prepare`."""


def prepared(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], **options: str | None
) -> tuple[World, Ledger]:
    """An exactly-once publish of several transactions a shard and several chunks a snapshot, and its ledger."""
    defaults = {
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": unique("tx"),
        "sink.parallelism": "3",
    }
    world = World.make(spark, broker, lake, unique, options={**defaults, **options})
    world.sections = "publish: {transaction-rows: 10, snapshot-chunk-rows: 40}\n"
    ledger = Ledger(spark, f"{lake}/table")
    ledger.create()
    return world, ledger


def wait_beside(running: Thread, until: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that a thread is to bring about, as long as it lives."""
    deadline = time.monotonic() + seconds
    while not until():
        assert running.is_alive() and time.monotonic() < deadline
        time.sleep(0.05)


_P = TypeVar("_P", bound="Process")


class Process:
    """One `bridge` verb on a pipeline file, or `more` of them, with failpoints of its own; a context manager that
    leaves no process.

    `folder` contains its output, its failpoints, and the temporary files that it writes.
    """

    def __init__(
        self,
        verb: str,
        file: Path,
        folder: Path,
        *,
        master: str = "local[2]",
        conf: Sequence[str] = CONF,
        java: str = "",
        more: Sequence[Path] = (),
    ):
        self.verb = verb
        self.temporary = folder / "tmp"
        self._failpoints = folder / "failpoints"
        for made in (self.temporary, self._failpoints):
            made.mkdir(parents=True)
        self._output = folder / "output.txt"
        self._command = [sys.executable, "-m", "bridge", verb, *map(str, (file, *more)), "--master", master]
        # The JVM does not ask TMPDIR.
        options = f"{JAVA} -Djava.io.tmpdir={self.temporary} {java}".strip()
        self._command += [x for pair in (*conf, options) for x in ("--conf", pair)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self: _P) -> _P:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
        environ |= {"BRIDGE_FAILPOINTS": str(self._failpoints), "TMPDIR": str(self.temporary)}
        with self._output.open("wb") as out:
            self._process = subprocess.Popen(
                self._command, stdout=out, stderr=out, env=environ, start_new_session=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def output(self) -> str:
        """Its output in one line: a narrow terminal wraps sentences."""
        return " ".join(self._output.read_text(errors="replace").replace("│", " ").split())

    def arm(self, name: str, action: str) -> Path:
        """Arm a failpoint, like the fixture `arm`."""
        (self._failpoints / name).write_text(action)
        return self._failpoints / f"{name}.hit"

    def until(self, hit: Path) -> None:
        """Wait for a failpoint to fire."""
        deadline = time.monotonic() + _SECONDS
        while not hit.exists():
            assert self._started().poll() is None, self.output
            assert time.monotonic() < deadline, f"{hit.name} did not come; {self.output}"
            time.sleep(0.05)

    def ended(self, seconds: float) -> int:
        """The exit code, which must be there in time."""
        return self._started().wait(seconds)

    def alone(self, seconds: float) -> None:
        """The JVM and the workers follow their driver, in time."""
        deadline = time.monotonic() + seconds
        while left := self.pids():
            assert time.monotonic() < deadline, [Path(f"/proc/{pid}/cmdline").read_text() for pid in left]
            time.sleep(0.05)

    def pids(self) -> list[int]:
        """All processes of the session: Spark's Python workers have a group of their own."""
        return session_pids(self._started().pid)

    def signal(self, number: int) -> None:
        """Send a signal to all of them."""
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def signal_leader(self, number: int) -> None:
        """Send a signal to the driver's Python alone, as a service manager does."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End all of them at once, as a power cut; returns when they are gone."""
        while self.pids():
            self.signal(signal.SIGKILL)
            time.sleep(0.02)
        self._started().wait()

    @property
    def pid(self) -> int:
        """The driver's Python, which leads the session."""
        return self._started().pid

    @property
    def code(self) -> int | None:
        """The exit code of the driver's Python; None while it runs."""
        return self._started().poll()

    def jvm(self) -> int | None:
        """Spark's JVM; None while there is none."""
        return next((pid for pid in self.pids() if _name(pid) == "java"), None)

    def workers(self) -> list[int]:
        """Spark's Python workers and their daemon."""
        found = [pid for pid in self.pids() if pid != self.pid and _name(pid).startswith("python")]
        return [
            pid for pid in found if _parent(pid) != self.pid
        ]  # without the process that watches the driver

    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not entered"
        return self._process


class Run(Process):
    """The verb on a World's pipeline."""

    def __init__(self, world: World, folder: Path, verb: str = "publish") -> None:
        world.definition()
        super().__init__(verb, world.folder / "orders.yaml", folder)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def session_pids(leader: int) -> list[int]:
    """The living processes of the session that `leader` began."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found
