"""Detects that this process was suspended: stopped by a signal, swapped out, or on a machine that slept.

Records that it has not sent yet may then be older than those of another run, so it must discard them.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from bridge.errors import ConcurrentRunError

__all__ = ["StallDetector"]

_EVERY_SECONDS = 0.5
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's other clocks stop while the machine sleeps."""


class StallDetector:
    """A context manager with a thread that reads the clock twice a second.

    The thread runs on while the process computes or waits, so only a suspended process misses a beat."""

    def __init__(self, patience: float = 6.0) -> None:
        """`patience` is in seconds; the default is as long as a lease on a local disk survives without a heartbeat."""
        self._patience = patience
        self._longest = 0.0
        self._over = threading.Event()
        # Shared by threads: two numbers. The producer that it guards is its caller's alone.
        self._thread = threading.Thread(target=self._run, name="stall-detector", daemon=True)

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
        """Raise ConcurrentRunError when the process was suspended for longer than `patience` since the block began."""
        stalled = max(self._longest, time.clock_gettime(_CLOCK) - self._last)
        if stalled > self._patience:
            raise ConcurrentRunError(
                f"a task that sends records stood still for {stalled:.0f} s (a stopped process, a machine that slept): "
                "another run may have taken over, so the task has discarded the records that it had not sent"
            )

    def _run(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            now = time.clock_gettime(_CLOCK)
            self._longest = max(self._longest, now - self._last)
            self._last = now
