"""Runs the pipelines of several lanes in one process: a thread each, one Spark session, the public API.

A forked child runs `carry` (see `zygote`). Other processes watch its folder: `progress/LANE` grows by a byte with each
batch that a pipeline commits, `errors.jsonl` has the errors by which pipelines ended, and `ended/LANE` marks a pipeline
that will not be restarted. A pipeline that fails while Spark works is restarted, as by a supervisor.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_AGAIN_SECONDS = 0.3
_PAUSE_SECONDS = 15.0


def carry(verb: str, files: Mapping[str, str], folder: Path, conf: Mapping[str, str], master: str) -> int:
    """Runs `verb` on each pipeline file, by the lane's name, until SIGTERM; returns the exit code."""
    from bridge.session import build_session

    parent = os.getppid()
    stacks = (folder / "stacks.txt").open("w")
    faulthandler.register(signal.SIGUSR1, file=stacks)
    carrier = _Carrier(verb, folder)
    carrier.spark = build_session(f"faults {verb}", master=master, conf=conf)
    (folder / "started").touch()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: carrier.stop.set())
    threads = [
        threading.Thread(target=carrier.lane, args=(lane, file), name=lane) for lane, file in files.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # signals are handled between two short waits
            thread.join(0.2)
            if os.getppid() != parent:  # the parent has ended
                os._exit(1)
    return 1 if carrier.failed else 0


class _Carrier:
    spark: Any

    def __init__(self, verb: str, folder: Path) -> None:
        self.verb, self.folder = verb, folder
        self.stop = threading.Event()
        self.failed = False
        self._lock = threading.Lock()
        for name in ("progress", "ended"):
            (folder / name).mkdir(exist_ok=True)

    def lane(self, lane: str, file: str) -> None:
        while not self.stop.is_set():
            try:
                self._run(lane, Path(file))
                if self.stop.is_set():
                    break
                raise RuntimeError("ended though nobody has asked it to")
            except Exception as error:
                if self._ends(lane, error):
                    break
            self.stop.wait(_AGAIN_SECONDS)
        (self.folder / "ended" / lane).touch()

    def _run(self, lane: str, file: Path) -> None:
        """Runs a pipeline file, a script or a job until `stop`."""
        import bridge

        def paced(report: Any) -> None:
            """Scripts and jobs have no trigger: while there is something new, round follows round."""
            self._progress(lane)
            if report.verb == "publish":
                self.stop.wait(_PAUSE_SECONDS)

        if file.suffix == ".sql":
            from bridge.pipelines.scripts.run import run_script
            from bridge.sql import load_script

            run_script(self.spark, load_script(file), every_seconds=1, listener=paced, stop=self.stop)
        elif file.stem == "job":
            from bridge.cdc_jobs import load_job
            from bridge.pipelines.cdc_jobs.run import run_job

            run_job(self.spark, load_job(file), every_seconds=1, listener=paced, stop=self.stop)
        else:
            run = bridge.ingest if self.verb == "ingest" else bridge.publish
            run(self.spark, bridge.load(file), listener=lambda _: self._progress(lane), stop=self.stop)

    def _progress(self, lane: str) -> None:
        with (self.folder / "progress" / lane).open("ab") as out:
            out.write(b".")

    def _ends(self, lane: str, error: Exception) -> bool:
        """Records the failure; returns whether the pipeline ends in this process."""
        taken = type(error).__name__ == "ConcurrentRunError"
        failure = {
            "lane": lane,
            "kind": type(error).__name__,
            "message": str(error)[:2000],
            "time": time.time(),
        }
        with self._lock:
            with (self.folder / "errors.jsonl").open("a") as out:
                out.write(json.dumps(failure) + "\n")
            with (self.folder / "traces.txt").open("a") as out:
                traceback.print_exception(error, file=out)
        if not _java_lives(self.spark):
            os._exit(1)  # like the command line: without a JVM the process cannot continue
        self.failed = self.failed or taken
        return taken


def _java_lives(spark: Any) -> bool:
    """Whether Spark's JVM is alive, and its context not stopped."""
    try:
        return not spark._jsc.sc().isStopped()
    except Exception:
        return False


def read_errors(folder: Path) -> Sequence[dict[str, Any]]:
    """Reads the errors by which pipelines of a carrier ended."""
    file = folder / "errors.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
