"""Starts the Python workers of the tests' Spark session, with less to do between two tasks than Spark gives them.

Workers keep consumers open for their next task, and each asks its broker 33 times a second whether there is more. A
pipeline that follows a topic needs them. Tests that have ended leave up to sixteen in every worker, and most of the
brokers' CPU time in a run was spent on those: here, a worker that has no task for a second closes them.

After each task a worker collects garbage, which takes longer than most tasks of tests, as it looks at all modules.
Here it leaves out what was there when modules were imported last.
"""

from __future__ import annotations

import gc
import select
import sys
from collections.abc import Callable
from typing import BinaryIO

import confluent_kafka  # noqa: F401  imported once, before workers are forked
import pyarrow.compute
import pyarrow.json  # noqa: F401
from pyspark import daemon, worker

_IDLE_SECONDS = 1.0


class _Tasks:
    """Runs the tasks of one worker, one after the other."""

    def __init__(self, run: Callable[[BinaryIO, BinaryIO], None]) -> None:
        self._run, self._modules = run, 0

    def run(self, infile: BinaryIO, outfile: BinaryIO) -> None:
        """Wait for a task, without consumers if that takes long, and run it."""
        readers = sys.modules.get("bridge.kafka.range_consumer")
        if readers is not None and not select.select([infile], [], [], _IDLE_SECONDS)[0]:
            readers.close_consumers()
        self._run(infile, outfile)
        if len(sys.modules) > self._modules:
            self._modules = len(sys.modules)
            gc.collect()
            gc.freeze()


if __name__ == "__main__":
    # Where a worker's process looks for it: its module, or before Spark 4.2 the daemon's.
    worker.main = _Tasks(worker.main).run
    vars(daemon)["worker_main"] = worker.main
    daemon.manager()
