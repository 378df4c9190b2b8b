"""Measures the speed-up by all cores of this machine; virtual cores may share hardware."""

from __future__ import annotations

import os
import subprocess
import sys

_COUNT = """\
import sys, time
sys.stdin.read(1)
end, done = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    sum(range(10_000))
    done += 1
print(done)
"""


def gain(seconds: float = 2.0) -> float:
    """Returns the throughput of one process per core in relation to that of a single process."""
    alone = max(_work(1, seconds), 1)
    return _work(os.cpu_count() or 1, seconds) / alone


def _work(processes: int, seconds: float) -> int:
    """Returns the total rounds of `processes` processes that start at the same time."""
    command = [sys.executable, "-c", _COUNT, str(seconds)]
    pipe = subprocess.PIPE
    workers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(processes)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(".")
        worker.stdin.flush()
    return sum(int(worker.communicate()[0]) for worker in workers)
