"""Looks at many pipelines at once, each again and again, so that none waits for a slow one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from queue import PriorityQueue

from bridge.errors import BridgeError
from bridge.metrics import now_ms
from bridge.pages.pipeline_line import Line, Look, Watched

_MOST_THREADS = 16
_PATIENCE_SECONDS = 10.0
_NO_FILE = -1


@dataclass(frozen=True)
class File:
    """A pipeline file, script or job; `load` reads it, and raises BridgeError for one that is refused."""

    name: str
    load: Callable[[], Sequence[Watched]]


class Watch:
    """The pipelines of some files. Close it at the end. A thread that a disk or a store keeps waiting ends later, or
    with the process."""

    def __init__(
        self,
        files: Sequence[File],
        every_seconds: float | None,
        *,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        """With None each file is looked at once."""
        self._files, self._every, self._patience = files, every_seconds, patience_seconds
        self._looks: dict[str, list[Look]] = {}
        self._seen: dict[str, list[Line]] = {}
        self._begun: dict[str, float] = {}
        self._changed, self._closed = threading.Condition(), threading.Event()
        self._due: PriorityQueue[tuple[float, int]] = PriorityQueue()
        for number in range(len(files)):
            self._due.put((time.monotonic(), number))
        for _ in range(min(_MOST_THREADS, len(files))):
            # Shared by threads: `_seen` and `_begun`, under the lock of `_changed`. One at a time has a file and its
            # `Look`s: no object of Arrow, delta-rs or librdkafka is in two threads.
            threading.Thread(
                target=copy_context().run, args=(self._work,), daemon=True, name="bridge-top"
            ).start()

    def close(self) -> None:
        """Look at nothing any more."""
        self._closed.set()
        for _ in range(min(_MOST_THREADS, len(self._files))):
            self._due.put((0.0, _NO_FILE))

    def lines(self) -> list[Line]:
        """What was seen last, in the order of the files. What is not answered for long is said so."""
        at = time.monotonic()
        with self._changed:
            return [line for file in self._files for line in self._lines_of(file.name, at)]

    def wait(self, seconds: float) -> bool:
        """Wait until each file was looked at; False where some were not within `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._seen) == len(self._files), seconds)

    def _lines_of(self, name: str, at: float) -> list[Line]:
        seen = self._seen.get(name) or [_unread(name)]
        waited = at - self._begun.get(name, at)
        if waited < self._patience:
            return seen
        reason = f"no answer for {waited:.0f} s" + ("; this was seen before" if name in self._seen else "")
        return [replace(line, reason="; ".join(filter(None, (reason, line.reason)))) for line in seen]

    def _work(self) -> None:
        while True:
            due, number = self._due.get()
            if number == _NO_FILE or self._closed.wait(max(0.0, due - time.monotonic())):
                return
            file = self._files[number]
            with self._changed:
                self._begun[file.name] = time.monotonic()
            lines = self._look(file)
            with self._changed:
                self._seen[file.name] = lines
                del self._begun[file.name]
                self._changed.notify_all()
            if self._every is not None:
                self._due.put((time.monotonic() + self._every, number))

    def _look(self, file: File) -> list[Line]:
        try:
            if file.name not in self._looks:
                self._looks[file.name] = [Look(file.name, watched) for watched in file.load()]
            return [line for look in self._looks[file.name] for line in look.lines(now_ms())]
        except BridgeError as error:
            return [replace(_unread(file.name), reason=str(error))]
        except Exception as error:  # its text may hold anything
            return [replace(_unread(file.name), reason=type(error).__name__)]


def _unread(name: str) -> Line:
    return Line(name, PurePosixPath(name).stem)
