"""Runs `bridge ingest` like a user, and measures the memory of its Java processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.pipelines.processes import session_pids
from tests.pipelines.world import World


class MeasuredRun:
    """A run in a process session of its own; a context manager that ends all of its processes."""

    def __init__(self, world: World, *, master: str = "local[2]", **conf: str) -> None:
        self._output = world.folder / f"output-{time.monotonic_ns()}.txt"
        self._command = [sys.executable, "-m", "bridge", "ingest", str(world.folder / "orders.yaml")]
        self._command += ["--master", master]
        for name, setting in conf.items():
            self._command += ["--conf", f"spark.{name.replace('_', '.')}={setting}"]
        self._process: subprocess.Popen[bytes] | None = None
        self.peak_mb: dict[str, int] = {}
        """The maximum resident memory of each kind of Java process (driver, executor)."""

    def __enter__(self) -> MeasuredRun:
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
        with self._output.open("wb") as out:
            self._process = subprocess.Popen(
                self._command, stdout=out, stderr=out, env=environ, start_new_session=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        while left := self._pids():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.02)
        self._process.wait()

    @property
    def output(self) -> str:
        """Returns its output as one line."""
        return " ".join(self._output.read_text(errors="replace").split())

    def ended(self, seconds: float, each: Callable[[], None] = lambda: None) -> int:
        """Waits for the exit code, at most `seconds`; calls `each` about five times a second until then."""
        assert self._process is not None
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None:
            assert time.monotonic() < deadline, f"still there after {seconds} s: {self.output}"
            self._look()
            each()
            time.sleep(0.2)
        return code

    def executors(self) -> list[int]:
        """Returns the executor processes of a local-cluster."""
        return [pid for pid in self._pids() if _kind(pid) == "executor"]

    def _look(self) -> None:
        for pid in self._pids():
            kind = _kind(pid)
            try:
                match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
            except OSError:
                continue
            if kind and match:
                self.peak_mb[kind] = max(self.peak_mb.get(kind, 0), int(match[1]) // 1024)

    def _pids(self) -> list[int]:
        assert self._process is not None
        return session_pids(self._process.pid)


def _kind(pid: int) -> str | None:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return None
    if "CoarseGrainedExecutorBackend" in command:
        return "executor"
    return "driver" if "SparkSubmit" in command else None
