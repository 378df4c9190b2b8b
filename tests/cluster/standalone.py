"""A standalone cluster of Spark on this machine: a master and workers as processes of their own.

Each has its own working folder and an environment without the checkout: no PYTHONPATH, nothing of PYSPARK or BRIDGE.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from bridge import jars
from bridge.embedded.processes import HOST, free_port, start_watchdog, stop_process
from bridge.spark_versions import SCALA

SPARK_HOME = jars.pyspark_jars().parent
_DEPLOY = "org.apache.spark.deploy"
# Every JVM here lives for seconds, among four others on two cores.
_SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_SECONDS = 60.0
_CLEANUP = ["-Dspark.worker.cleanup.enabled=true", "-Dspark.worker.cleanup.interval=60"]
_KEEP = "spark.worker.cleanup.appDataTtl"


def bare_environment(**more: str) -> dict[str, str]:
    """This process's environment without what could lead to the checkout."""
    foreign = ("PYTHON", "PYSPARK", "SPARK", "BRIDGE", "VIRTUAL_ENV", "PYTEST")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    fixed = {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": HOST, "JDK_JAVA_OPTIONS": _SHORT_LIVED}
    return {**kept, **fixed, **more}


class Standalone:
    """A context manager. `cores` and `memory` are each worker's, `failpoints` is the folder of their tasks' ones.

    With `keep_seconds` a worker deletes the folders of executors that ended so long ago.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        cores: int = 1,
        memory: str = "1g",
        keep_seconds: int | None = None,
    ) -> None:
        self.folder = folder
        self._size = ["--cores", str(cores), "--memory", memory]
        self._java = [] if keep_seconds is None else [*_CLEANUP, f"-D{_KEEP}={keep_seconds}"]
        self.failpoints = folder / "failpoints"
        self._count = workers
        self._web = free_port()
        self._processes: list[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.url = f"spark://{HOST}:{free_port()}"

    def __enter__(self) -> Standalone:
        self.failpoints.mkdir(parents=True)
        port = self.url.rpartition(":")[2]
        arguments = ["--host", HOST, "--port", port, "--webui-port", str(self._web)]
        self._start("master", f"{_DEPLOY}.master.Master", arguments)
        for _ in range(self._count):
            self.add_worker()
        self.wait_for(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.executors():
            os.kill(pid, signal.SIGKILL)
        for process, watchdog in reversed(self._processes):
            stop_process(process, watchdog, 10)

    def add_worker(self, **more: str) -> None:
        """Start one more worker, which joins when it is up; its executors have `more` in their environment."""
        name = f"worker-{len(self.workers)}"
        arguments = ["--host", HOST, *self._size, "--webui-port", "0", self.url]
        arguments[:0] = ["--work-dir", str(self.folder / name / "work")]
        environ = {"BRIDGE_FAILPOINTS": str(self.failpoints), **more}
        self.workers.append(self._start(name, f"{_DEPLOY}.worker.Worker", arguments, environ))

    def wait_for(self, workers: int) -> None:
        """Wait until so many workers have joined."""
        deadline = time.monotonic() + _SECONDS
        while self._joined() < workers:
            assert time.monotonic() < deadline, f"no {workers} workers after {_SECONDS} s: {self.logs()}"
            time.sleep(0.2)

    def executors(self, worker: int | None = None) -> list[int]:
        """The executor processes, of one worker or of all."""
        below = self.folder if worker is None else self.folder / f"worker-{worker}"
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                started_there = Path(os.readlink(entry / "cwd")).is_relative_to(below.resolve())
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if started_there and b"CoarseGrainedExecutorBackend" in command:
                found.append(int(entry.name))
        return sorted(found)

    def logs(self) -> str:
        """The end of each log."""
        files = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("worker-*/work/*/*/stderr"))
        return "\n".join(f"== {file}\n{file.read_text(errors='replace')[-1500:]}" for file in files)

    def _joined(self) -> int:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._web}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except OSError:
            return 0

    def _start(
        self, name: str, main: str, arguments: list[str], more: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        home = self.folder / name
        home.mkdir()
        command = [
            jars.java(),
            "-Xmx256m",
            *self._java,
            "-cp",
            str(jars.pyspark_jars() / "*"),
            main,
            *arguments,
        ]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=home,
                # Spark's start scripts set it, too.
                env=bare_environment(SPARK_SCALA_VERSION=SCALA, **(more or {})),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append((process, start_watchdog(process.pid)))
        return process
