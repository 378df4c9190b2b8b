"""Notices a pipeline that makes no progress, and leaves the stacks of a process that crashes in the log (ADR 048).

A thread says which step it is at, in memory that a second process reads: `watchdog_process` sees a step that does not
end even where a thread hangs in native code and keeps Python's lock, so that no other thread can run. It then ends this
process by a signal, whose handler is C: it writes all stacks to the log and exits with STALLED. The lease is no longer
renewed, and the next run takes it over.
"""

from __future__ import annotations

import ctypes
import faulthandler
import inspect
import itertools
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from bridge import jars, watchdog_process
from bridge.errors import STALLED
from bridge.watchdog_process import HEAD, SLOT, SLOT_BYTES

_SLOTS = 1024
"""The most threads that have pipelines at the same time."""
_BETWEEN, _WAITING = "what it does before, between and after its steps", "waiting"
_LOOK_SECONDS = 60.0
"""Log4j renames the log when it is full, so it is looked at so often whether the log is still the same file."""


class _State:
    """Of this process."""

    depth = 0
    """How many verbs run: several only where Python code calls the command line."""
    page: mmap.mmap | None = None
    process: subprocess.Popen[bytes] | None = None
    jvm = 0
    log: int | None = None
    """What the stacks are written to."""
    looked = 0.0


class _Step(NamedTuple):
    run: str
    what: str
    seconds: float
    bound: float
    """Of steps within it that name none."""


class _Thread(threading.local):
    """What a thread says: its slot, and the steps that it is in, the innermost last."""

    slot = -1
    steps: tuple[_Step, ...] = ()


_state, _thread, _lock = _State(), _Thread(), threading.Lock()
_numbers = itertools.count(1)
_free: list[int] = []
LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = {megabytes}MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = {kept}
"""
"""Settings of log4j for warnings in `file`; beside it are `kept` older files as large."""


def log_file() -> Path:
    """Return the file of the log when the bridge starts Spark: BRIDGE_LOG, or logs/bridge.log in BRIDGE_HOME."""
    return Path(os.environ.get("BRIDGE_LOG") or jars.home() / "logs" / "bridge.log").absolute()


@contextmanager
def armed() -> Iterator[None]:
    """Around a verb: a crash leaves its stacks in the log, and `watch` works. Nothing of both happens without it, so
    that the bridge ends no process of somebody who calls it as a library.

    The stacks go to standard error where there is no log: under spark-submit without BRIDGE_LOG, or if the file cannot
    be written. A faulthandler that the user has enabled is left alone.
    """
    if not _state.depth:
        _state.log = _open_log()
        if not faulthandler.is_enabled():
            faulthandler.enable(_state.log)
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1
        if not _state.depth:
            _end_process()


def ends_with(jvm: int) -> None:
    """Note the process of the JVM that this process has started: it is killed when this process is ended."""
    _state.jvm = jvm
    if _state.page is not None:
        HEAD.pack_into(_state.page, 0, jvm)


@contextmanager
def watch(name: str, seconds: float) -> Iterator[None]:
    """Around the run of a pipeline: from here on each step of this thread ends within `seconds`, or the process ends.

    `name` is the verb and the pipeline. Within another block of this thread it adds a name, with a bound of its own.
    Zero seconds are no bound.
    """
    if not _state.depth or not seconds:
        yield
        return
    is_first = _thread.slot < 0
    if is_first:
        with _lock:
            if _state.process is None:
                _start_process()
            _thread.slot = _free.pop()
    try:
        with _within(_Step(name, _BETWEEN, seconds, seconds)):
            yield
    finally:
        if is_first:
            with _lock:
                _free.append(_thread.slot)
            _thread.slot = -1


@contextmanager
def step(what: str, *, at_least: float = 0.0) -> Iterator[None]:
    """Around a step of the run that `watch` names: it has its own time, and what follows begins anew.

    `at_least` is the bound of a step that may take longer than others.
    """
    if not _thread.steps:
        yield
        return
    around = _thread.steps[-1]
    with _within(_Step(around.run, what, max(around.bound, at_least), around.bound)):
        yield


@contextmanager
def waiting() -> Iterator[None]:
    """Around a wait for something new, which has no bound."""
    if not _thread.steps:
        yield
        return
    with _within(_thread.steps[-1]._replace(what=_WAITING, seconds=0.0)):
        yield


def mark(what: str | None) -> None:
    """Say what happens elsewhere while this thread waits: the bound is that of a step as long as `what` is the same.
    None is a wait. For use directly in a block of `waiting`."""
    if _thread.steps:
        around = _thread.steps[-1]
        shown = around._replace(what=what or _WAITING, seconds=around.bound if what else 0.0)
        if shown != around:
            _thread.steps = (*_thread.steps[:-1], shown)
            _show()


@contextmanager
def _within(entered: _Step) -> Iterator[None]:
    before = _thread.steps
    _thread.steps = (*before, entered)
    _show()
    try:
        yield
    finally:
        _thread.steps = before
        _show()


def _show() -> None:
    """Write what this thread does to its slot; another number says that the time begins anew."""
    if _state.page is not None:
        shown = _thread.steps[-1] if _thread.steps else _Step("", "", 0.0, 0.0)
        text = f"{shown.run}: {shown.what}".encode()[: SLOT_BYTES - SLOT.size]
        written = SLOT.pack(next(_numbers), shown.seconds) + text.ljust(SLOT_BYTES - SLOT.size, b"\0")
        begin = (1 + _thread.slot) * SLOT_BYTES
        _state.page[begin : begin + SLOT_BYTES] = written
    _follow_log()


def _start_process() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate((1 + _SLOTS) * SLOT_BYTES)
        _state.page = mmap.mmap(file.fileno(), 0)
        _free[:] = reversed(range(_SLOTS))
        ends_with(_state.jvm)
        _exit_at_signal()
        # As text: a package that is in a zip file has no file that could be run.
        code = inspect.getsource(watchdog_process)
        log = "" if _state.log == 2 else str(log_file())
        _state.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code, str(os.getpid()), str(file.fileno()), log],
            pass_fds=(file.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )


def _end_process() -> None:
    process, _state.process, page, _state.page = _state.process, None, _state.page, None
    if process is not None and page is not None:
        process.kill()
        process.wait()
        page.close()
        faulthandler.unregister(STALLED)
        _set_handler(0)


def _exit_at_signal() -> None:
    """At the signal whose number is STALLED write all stacks to the log, then call the handler before: C's `_exit`.
    Its argument is the number of the signal, which becomes the exit code. No part of it needs Python's lock."""
    _set_handler(ctypes.cast(ctypes.CDLL(None)._exit, ctypes.c_void_p).value or 0)
    assert _state.log is not None
    faulthandler.register(STALLED, file=_state.log, all_threads=True, chain=True)


def _set_handler(address: int) -> None:
    signal = ctypes.CDLL(None).signal
    signal.argtypes, signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    signal(STALLED, address)


def _open_log() -> int:
    if "PYSPARK_GATEWAY_PORT" in os.environ and "BRIDGE_LOG" not in os.environ:
        return 2
    log = log_file()
    with suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        return os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    return 2


def _follow_log() -> None:
    """Write stacks to the file that has the log's name now."""
    now = time.monotonic()
    log = _state.log
    if log is None or log == 2 or now < _state.looked + _LOOK_SECONDS:
        return
    _state.looked = now
    with suppress(OSError):
        if os.stat(log_file()).st_ino == os.fstat(log).st_ino:
            return
    new = _open_log()
    if new != 2:
        os.dup2(new, log)  # the number that faulthandler knows
        os.close(new)
