"""The executors' side of `make faults WHERE=cluster`: a standalone cluster of two workers, on which the jobs run.

A job's driver is a process of this machine. Its executors are processes of the workers, with a Python that has the
bridge and no checkout. A driver that is killed leaves executors, which work on until they notice that it is gone; they
must end by themselves.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bridge.embedded.processes import HOST
from tests.cluster.site import python_with_packages
from tests.cluster.standalone import Standalone
from tests.faults.zygote import SLOT_ROWS

_BRIDGE = Path(__file__).parents[2] / "bridge"
_CORES, _MEMORY = 8, "8g"
"""Of each worker. A job has one executor with one core on each of them, and a job that was started again, or started
twice, is there beside the one that it replaces."""


@dataclass(frozen=True)
class Nodes:
    """A running cluster, and the Python of its nodes."""

    cluster: Standalone
    python: Path

    @property
    def environ(self) -> dict[str, str]:
        """What the driver of a job has in its environment."""
        return {"PYSPARK_PYTHON": str(self.python), "SPARK_LOCAL_IP": HOST}

    def conf(self, failpoints: Path) -> dict[str, str]:
        """Spark's settings of a job, whose executors have its failpoints."""
        return {
            "spark.cores.max": "2",
            "spark.executor.cores": "1",
            "spark.executor.memory": "700m",
            # Of the defaults, 200 and 50 tasks, Delta's own jobs (VACUUM, the table's state) took minutes on two cores.
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.executorEnv.BRIDGE_FAILPOINTS": str(failpoints),
            "spark.executorEnv.BRIDGE_FILE_SLOT_ROWS": str(SLOT_ROWS),
        }

    def executors(self, failpoints: Path) -> list[int]:
        """The executors of a job."""
        return [pid for pid in self.cluster.executors() if failpoints_of(pid) == str(failpoints)]

    def workers(self, failpoints: Path) -> list[int]:
        """The Python processes of a job's executors."""
        return [pid for pid in self._processes() if _is_python(pid) and failpoints_of(pid) == str(failpoints)]

    def kill_node(self) -> None:
        """Kill the oldest worker and all executors on it; another one comes in its place."""
        number = next(n for n, worker in enumerate(self.cluster.workers) if worker.poll() is None)
        self.cluster.workers[number].kill()
        self.cluster.workers[number].wait()
        for pid in self.cluster.executors(number):
            kill(pid)
        self.cluster.add_worker()

    def _processes(self) -> Iterator[int]:
        """All processes that work in the folders of the nodes."""
        below = self.cluster.folder.resolve()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if Path(os.readlink(entry / "cwd")).is_relative_to(below):
                    yield int(entry.name)
            except OSError:
                continue


@contextmanager
def nodes(folder: Path) -> Iterator[Nodes]:
    """Start the cluster in a folder; ends all of its processes in every case."""
    python = python_with_packages(folder / "python")
    site = next((folder / "python").glob("lib/python*/site-packages"))
    shutil.copytree(_BRIDGE, site / "bridge", ignore=shutil.ignore_patterns("__pycache__"))
    with Standalone(folder / "nodes", cores=_CORES, memory=_MEMORY, keep_seconds=120) as cluster:
        yield Nodes(cluster, python)


def kill(pid: int) -> None:
    """Kill a process that may have ended meanwhile."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def failpoints_of(pid: int) -> str:
    """The folder of the failpoints of a process; empty if it has none or has ended."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    found = [entry.partition(b"=")[2] for entry in environ if entry.startswith(b"BRIDGE_FAILPOINTS=")]
    return found[0].decode() if found else ""


def _is_python(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("python")
    except OSError:
        return False
