"""A process that makes no progress ends with 5 and says where; one that works or waits does not; a crash leaves
stacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SECONDS = 1.5
BEGIN = f"""
import ctypes, os, subprocess, sys, threading, time
from bridge.watchdog import armed, ends_with, mark, step, waiting, watch
def freeze():
    ctypes.PyDLL(None).sleep(60)  # keeps Python's lock
def pipeline(hang, seconds={SECONDS}):
    with watch("ingest orders", seconds), step("merging batch 7"):
        hang()
"""


def started(code: str, log: Path | None) -> subprocess.Popen[str]:
    environ = {k: v for k, v in os.environ.items() if k not in ("BRIDGE_LOG", "PYTHONFAULTHANDLER")}
    environ |= {"BRIDGE_LOG": str(log)} if log else {"PYSPARK_GATEWAY_PORT": "1"}
    command = [sys.executable, "-c", BEGIN + code]
    return subprocess.Popen(command, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(code: str, log: Path | None) -> tuple[int, str, str]:
    with started(code, log) as process:
        out, error = process.communicate(timeout=60)
    return process.returncode, out, error


@pytest.mark.parametrize(
    "code",
    [
        "with armed(): pipeline(lambda: time.sleep(60))",
        "with armed(): pipeline(freeze)",
        "with armed():\n"
        "    thread = threading.Thread(target=pipeline, args=(lambda: time.sleep(60),), name='pipeline')\n"
        "    thread.start(); thread.join()",
    ],
    ids=["hangs", "hangs with Python's lock", "hangs in another thread"],
)
def test_a_step_that_does_not_end_ends_the_process(code: str, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "bridge.log"
    begun = time.monotonic()
    status, out, error = ended(code, log)
    assert (status, out) == (5, "") and SECONDS <= time.monotonic() - begun < 30
    assert "stalled: ingest orders has not ended this step within 1.5 s: merging batch 7." in error
    assert str(log) in error and "raise run.step-timeout" in error and len(error.splitlines()) == 1
    written = log.read_text()
    assert "ERROR stalled: ingest orders has not ended this step within 1.5 s: merging batch 7." in written
    assert "most recent call first" in written and " in pipeline\n" in written


@pytest.mark.parametrize(
    "code",
    [
        "with armed(): pipeline(lambda: time.sleep(4), 0)",
        "pipeline(lambda: time.sleep(4))",
        "with armed(), watch('ingest orders', 1.5), waiting(): time.sleep(4)",
        "with armed(), watch('ingest orders', 1.5), step('maintaining', at_least=60): time.sleep(4)",
        "with armed(), watch('ingest orders', 1.5):\n"
        "    for n in range(8):\n        with step('merging'): time.sleep(0.5)",
        "with armed(), watch('ingest orders', 1.5), waiting():\n"
        "    for n in range(8): mark(f'read {n}' if n % 2 else None); time.sleep(0.5)",
    ],
    ids=["no bound", "as a library", "waits", "a longer bound", "many steps", "many marks"],
)
def test_nothing_ends_a_process_that_works_or_waits(code: str, tmp_path: Path) -> None:
    """The first two are the control, too: without the watchdog a step hangs on."""
    assert ended(code + "\nprint('done')", tmp_path / "bridge.log") == (0, "done\n", "")
    assert (tmp_path / "bridge.log").exists() is ("armed" in code)


def test_a_mark_that_stays_the_same_is_a_step(tmp_path: Path) -> None:
    code = (
        "with armed(), watch('ingest orders', 1.5), waiting():\n"
        "    while True: mark('Spark reads offsets'); time.sleep(0.1)"
    )
    status, _, error = ended(code, tmp_path / "bridge.log")
    assert status == 5 and "within 1.5 s: Spark reads offsets." in error


def test_a_stopped_process_is_left_alone(tmp_path: Path) -> None:
    """As by Ctrl-Z, or in a debugger: its run ends by itself when it continues, if another has taken over."""
    code = "with armed(), watch('ingest orders', 3), step('merging'): print(flush=True); time.sleep(1)\nprint('done')"
    with started(code, tmp_path / "bridge.log") as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(5)
        process.send_signal(signal.SIGCONT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (0, "done\n", "")


def test_the_jvm_ends_with_it_and_the_watching_process_too(tmp_path: Path) -> None:
    code = (
        "java = subprocess.Popen(['sleep', '120'])\n"
        "print(java.pid, flush=True)\n"
        "with armed():\n"
        "    ends_with(java.pid)\n"
        "    pipeline(freeze)"
    )
    status, out, _ = ended(code, tmp_path / "bridge.log")
    assert status == 5
    assert not alive(int(out))


def alive(process: int) -> bool:
    for _ in range(100):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return False
            os.kill(process, 0)
        except (OSError, ValueError):
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV], ids=lambda number: number.name)
@pytest.mark.parametrize("where", ["log", "stderr", "a log that cannot be written"])
def test_a_crash_leaves_its_stacks(number: signal.Signals, where: str, tmp_path: Path) -> None:
    log = {"log": tmp_path / "bridge.log", "stderr": None}.get(where, tmp_path / "file" / "bridge.log")
    (tmp_path / "file").touch()
    code = (
        "from bridge.cli.process import run_guarded\n"
        "def verb(): print(flush=True); time.sleep(60)\n"
        "run_guarded(verb)"
    )
    with started(code, log) as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    assert process.returncode == -number
    found = log.read_text() if where == "log" and log else error
    assert "Fatal Python error: " in found and " in verb\n" in found and "run_guarded" in found
    assert error == "" or where != "log"


def test_the_stacks_follow_a_log_that_was_renamed(tmp_path: Path) -> None:
    """Log4j renames a full log, and deletes it some files later."""
    log = tmp_path / "bridge.log"
    code = (
        "import bridge.watchdog as w\n"
        "w._LOOK_SECONDS = 0.0\n"
        f"import os; log = {str(log)!r}\n"
        "with armed(), watch('ingest orders', 60):\n"
        "    os.rename(log, log + '.1')\n"
        "    with step('merging'): os.abort()"
    )
    assert ended(code, log)[0] == -signal.SIGABRT
    assert "Aborted" in log.read_text() and "Aborted" not in (tmp_path / "bridge.log.1").read_text()
