"""`bridge publish` as its user starts it: a session of processes that can be stopped and killed as one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.kafka.broker import Broker
from tests.ledger import Ledger
from tests.pipelines.world import World

__all__ = ["Run", "prepared"]

_SECONDS = 90.0
_CONF = (
    "spark.sql.execution.arrow.maxRecordsPerBatch=5",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)


def prepared(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], slots: int = 3
) -> tuple[World, Ledger]:
    """An exactly-once publish of several transactions a slot and several chunks a snapshot, and its ledger."""
    options = {
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": unique("tx"),
        "sink.parallelism": str(slots),
    }
    world = World.make(spark, broker, lake, unique, options=options)
    world.sections = "publish: {transaction-rows: 10, snapshot-chunk-rows: 40}\n"
    ledger = Ledger(spark, f"{lake}/table")
    ledger.create()
    return world, ledger


class Run:
    """One `bridge publish`, with failpoints of its own; a context manager that leaves no process behind."""

    def __init__(self, world: World, folder: Path) -> None:
        world.definition()
        self._failpoints = folder / "failpoints"
        self._failpoints.mkdir()
        self._said = folder / "said.txt"
        self._command = [sys.executable, "-m", "bridge", "publish", str(world.folder / "orders.yaml")]
        self._command += ["--master", "local[2]", *(x for pair in _CONF for x in ("--conf", pair))]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Run:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
        environ["BRIDGE_FAILPOINTS"] = str(self._failpoints)
        with self._said.open("wb") as out:
            self._process = subprocess.Popen(
                self._command, stdout=out, stderr=out, env=environ, start_new_session=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def said(self) -> str:
        """What it printed, in one line: a narrow screen breaks sentences."""
        return " ".join(self._said.read_text(errors="replace").replace("│", " ").split())

    def arm(self, name: str, action: str) -> Path:
        """As the fixture `arm`."""
        (self._failpoints / name).write_text(action)
        return self._failpoints / f"{name}.hit"

    def until(self, hit: Path) -> None:
        """Wait for a failpoint to fire."""
        deadline = time.monotonic() + _SECONDS
        while not hit.exists():
            assert self._started().poll() is None, self.said
            assert time.monotonic() < deadline, f"{hit.name} did not come; {self.said}"
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
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[3]) == self._started().pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
        return found

    def signal(self, number: int) -> None:
        """Send a signal to all of them."""
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def kill(self) -> None:
        """End all of them at once, as a power cut; returns when they are gone."""
        while self.pids():
            self.signal(signal.SIGKILL)
            time.sleep(0.02)
        self._started().wait()

    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not entered"
        return self._process
