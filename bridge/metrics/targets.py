"""The places at which runs show what they do: runs of a process that have the same place share it.

Whatever fails there is a warning of the next batch, or is logged at the end, and never stops a pipeline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from bridge.metrics.observed import Observed
from bridge.metrics.reports import BatchReport, Listener, RunName, now_ms
from bridge.metrics.target_urls import NextWarning, text_without_url, without_login

TIMEOUT_SECONDS = 5.0
"""For how long the end of a run waits until the last values have been sent."""
Warn = Callable[[Exception], None]
OpenWay = Callable[[str, Callable[[], list[Observed]], Warn], "Way"]
"""Makes a way to a place, which asks at any time for what was observed. It may raise anything."""


class Way(Protocol):
    """How what was observed leaves the process. Each method may raise anything, as libraries do."""

    def after_batch(self, report: BatchReport) -> None:
        """Show what is new."""
        ...

    def after_run(self, run: RunName, began_ms: int, error: BaseException | None) -> None:
        """Show that a run has ended, with an error or well."""
        ...

    def close(self) -> None:
        """Show the last values, where that is not done on demand."""
        ...


@contextmanager
def exporting(
    target: str | None,
    open_way: OpenWay,
    listener: Listener,
    run: RunName | None = None,
    owner: str = "",
) -> Iterator[Listener]:
    """Around a run: yields a listener that shows each report at `target`, then calls `listener`.

    The counters of `run` are there from the beginning: a first value that is not 0 is no increase for Prometheus.

    Runs of this process that have the same target share it, and the counters go on as long as one of them is there.
    """
    if target is None:
        yield listener
        return
    at = open_way, target
    with _lock:
        shared = _targets.get(at) or _targets.setdefault(at, _Target(target, open_way))
        shared.users += 1
    began_ms, error = now_ms(), None
    try:
        if run is not None:
            shared.observed(*run, owner)
        yield shared.listen(listener)
    except BaseException as failed:
        error = failed
        raise
    finally:
        if run is not None:
            shared.after_run(run, began_ms, error)
        with _lock:
            shared.users -= 1
            if not shared.users:
                del _targets[at]
        if not shared.users:
            shared.close()


class Again:
    """Sends every few seconds and at the end, in a thread of its own, which calls `end` then."""

    def __init__(
        self, seconds: float, send: Callable[[], None], warn: Warn, end: Callable[[], None] = lambda: None
    ) -> None:
        self._seconds, self._send, self._warn, self._end = seconds, send, warn, end
        self._ended = threading.Event()
        # Shared by threads: what was observed, of which each takes its own lock; the warning, which is one assignment.
        self._thread = threading.Thread(target=self._send_again, daemon=True, name="bridge-metrics")
        self._thread.start()

    def close(self) -> None:
        """Send what is left. Raises NotTaken where that takes too long; then the thread ends with the process."""
        self._ended.set()
        self._thread.join(TIMEOUT_SECONDS)
        if self._thread.is_alive():
            raise NotTaken(f"it takes longer than {TIMEOUT_SECONDS:g} s")

    def _send_again(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._ended.wait(self._seconds)
            try:
                self._send()
            except Exception as error:  # a library may raise anything, and the next time it may work
                self._warn(error)
        self._end()


class _Target:
    """All pipelines of this process that have the same target."""

    def __init__(self, target: str, open_way: OpenWay) -> None:
        self.users = 0
        self._observed: dict[tuple[str, str], Observed] = {}
        self._lock = threading.Lock()
        self._warning = NextWarning()
        self._target = target
        self._way: Way = Silent()
        try:
            self._way = open_way(target, self._all, self._warn)
        except Exception as error:  # whatever a library raises here is not the pipeline's
            self._warn(error)

    def observed(self, pipeline: str, verb: str, topic: str, owner: str = "") -> Observed:
        """Return what is shown of a pipeline's verb, which has batches or begins to be shown now."""
        with self._lock:
            return self._observed.setdefault((pipeline, verb), Observed(pipeline, verb, topic, owner))

    def listen(self, listener: Listener) -> Listener:
        def heard(report: BatchReport) -> None:
            self.observed(report.pipeline, report.verb, report.topic).add(report)
            try:
                self._way.after_batch(report)
            except Exception as error:
                self._warn(error)
            listener(self._warning.onto(report))

        return heard

    def after_run(self, run: RunName, began_ms: int, error: BaseException | None) -> None:
        self._way.after_run(run, began_ms, error)

    def close(self) -> None:
        try:
            self._way.close()
        except Exception as error:
            self._warn(error)
        self._warning.close()

    def _all(self) -> list[Observed]:
        with self._lock:
            return list(self._observed.values())

    def _warn(self, error: Exception) -> None:
        self._warning.say(f"metrics are not shown at {without_login(self._target)}: {_reason(error)}")


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, NotTaken) else text_without_url(error)


class NotTaken(OSError):
    """Why what was sent did not arrive, in words that hold no URL."""


class Silent:
    """A way that does nothing: what others are made of, which do less than all."""

    def after_batch(self, report: BatchReport) -> None:
        """Show nothing."""

    def after_run(self, run: RunName, began_ms: int, error: BaseException | None) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Show nothing."""


_lock = threading.Lock()
_targets: dict[tuple[OpenWay, str], _Target] = {}
