"""Whether this process stood still: stopped by a signal, swapped out, on a machine that slept.

What it had in hand may be older by now than what another run has sent, so it is to let go of it.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from bridge.errors import ConcurrentRunError

__all__ = ["StallDetector"]

_EVERY_SECONDS = 0.5
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux' other clocks stand still while the machine sleeps."""


class StallDetector:
    """A context manager with a thread that looks at the clock twice a second. Whoever is busy or waits does not stand
    still: the thread goes on."""

    def __init__(self, patience: float = 6.0) -> None:
        """`patience`: as many seconds as a lease on a local disk is left to whoever does not beat."""
        self._patience = patience
        self._longest = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def __enter__(self) -> StallDetector:
        self._last = time.clock_gettime(_CLOCK)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise ConcurrentRunError when the process has stood still for longer than its patience since it began."""
        stood = max(self._longest, time.clock_gettime(_CLOCK) - self._last)
        if stood > self._patience:
            raise ConcurrentRunError(
                f"a task that sends records stood still for {stood:.0f} s (a stopped process, a machine that slept): "
                "another run may have taken over, so it has thrown away what was not sent"
            )

    def _run(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            now = time.clock_gettime(_CLOCK)
            self._longest = max(self._longest, now - self._last)
            self._last = now
