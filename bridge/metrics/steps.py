"""The steps of batches: how long each took, and at which one a run is now.

They are the steps of `watchdog`, which ends a process at one that does not end, with a name that all batches share.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.metrics.reports import RunName, Step, now_ms
from bridge.watchdog import step as watched_step
from bridge.watchdog import watch

TRANSACTION = "transaction"
"""The step in which transactions are open."""
_MOST = 100
"""The most steps that wait for a report: a thread that reports nothing keeps no more."""


class _Thread(threading.local):
    run: RunName | None = None
    done: tuple[Step, ...] = ()


_thread = _Thread()
_running: dict[tuple[str, str], tuple[str, float]] = {}
"""The step of each pipeline and verb, and the time.monotonic() at which it began. Threads replace whole entries."""


@contextmanager
def watched(run: RunName, seconds: float) -> Iterator[None]:
    """Around a run, or a batch in another thread of it: its steps are those of `run`. See `watchdog.watch`."""
    before = _thread.run, _thread.done
    _thread.run, _thread.done = run, ()
    try:
        with watch(f"{run.verb} {run.pipeline}", seconds):
            yield
    finally:
        _thread.run, _thread.done = before


@contextmanager
def step(name: str, doing: str, *, at_least: float = 0.0) -> Iterator[None]:
    """Around a step of a batch; `doing` says in a message what `name` is of this one. See `watchdog.step`."""
    run = _thread.run
    if run is None:
        yield
        return
    began_ms, began = now_ms(), time.monotonic()
    _running[run.pipeline, run.verb] = name, began
    try:
        with watched_step(doing, at_least=at_least):
            yield
    finally:
        _running.pop((run.pipeline, run.verb), None)
        _thread.done = (*_thread.done, Step(name, began_ms, time.monotonic() - began))[-_MOST:]


def taken() -> tuple[Step, ...]:
    """Return the steps of this thread that have ended since the last call, in their order."""
    done, _thread.done = _thread.done, ()
    return done


def now_at(pipeline: str, verb: str) -> tuple[str, float] | None:
    """Return the name of the step that runs now, and for how many seconds it has; None between steps."""
    found = _running.get((pipeline, verb))
    return None if found is None else (found[0], time.monotonic() - found[1])
