"""A stopped process is detected at once; a busy or waiting one is not."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import pytest

_PROGRAM = """
import sys, time
from bridge.errors import ConcurrentRunError
from bridge.kafka.sink import StallDetector
with StallDetector(patience=2.0) as detector:
    for _ in range(5):
        {work}
        detector.check()
    print("begun", flush=True)
    sys.stdin.readline()
    try:
        detector.check()
    except ConcurrentRunError as error:
        print(error)
"""


@pytest.mark.parametrize("work", ["time.sleep(0.1)", "sum(range(10**6))"])
@pytest.mark.parametrize("stopped", [True, False])
def test_only_a_stopped_process_is_detected(stopped: bool, work: str) -> None:
    command = [sys.executable, "-c", _PROGRAM.format(work=work)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        if stopped:
            process.send_signal(signal.SIGSTOP)
            time.sleep(2.1)
            process.send_signal(signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.close()
        output = process.stdout.read()
    assert bool(re.match(r"a task that sends records stood still for \d+ s", output)) == stopped, output


_MANY_THREADS = """
import sys, threading, time
from bridge.kafka.sink import StallDetector
until = time.monotonic() + float(sys.argv[1])
def work():
    while time.monotonic() < until:
        sum(range(10**4))
with StallDetector() as detector:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    checks = 0
    while time.monotonic() < until:
        detector.check()
        checks += 1
print("checked" if checks else "never checked")
"""


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_that_compute_are_no_stall(seconds: float) -> None:
    command = [sys.executable, "-c", _MANY_THREADS, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    assert (done.stdout, done.stderr) == ("checked\n", "")
