"""Events of a run as JSON lines: started, each batch, failed, ended (docs/metrics.md has the fields)."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from bridge.metrics.reports import BatchReport, Listener, RunName
from bridge.metrics.target_urls import NextWarning, text_without_values

SCHEMA = "changelog-bridge/event/1"
"""Fields are added to a version; one that changes its meaning or goes makes a new version."""


def event(name: str, run: RunName, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a line says; now is when it happened."""
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return {"schema": SCHEMA, "at": at, "event": name, **run._asdict(), **fields}


class Events:
    """Writes to `stdout`, or appends lines to a file."""

    def __init__(self, target: str, run: RunName) -> None:
        self._target, self._run = target, run
        self._warning = NextWarning()

    def listen(self, listener: Listener) -> Listener:
        """Return a listener that writes each report, then calls `listener`; a failure is a warning of the report."""

        def heard(report: BatchReport) -> None:
            self.write("batch", asdict(report))
            listener(self._warning.onto(report))

        return heard

    def failed(self, error: BaseException) -> None:
        """Write the error that ended the run, without a message that may hold values."""
        name, text = type(error).__name__, text_without_values(error)
        self.write("failed", {"error": name, "message": None if text == name else text})

    def close(self) -> None:
        """Log a failure that no report has as its warning."""
        self._warning.close()

    def write(self, name: str, fields: dict[str, Any] | None = None) -> None:
        """Write a line with the names of the run. Raises nothing."""
        line = json.dumps(event(name, self._run, fields or {}), ensure_ascii=False, default=str) + "\n"
        try:
            if self._target == "stdout":
                sys.stdout.write(line)
                sys.stdout.flush()
                return
            append(self._target, line)
        except OSError as error:
            self._warning.say(f"events are not written to {self._target}: {error}")


def append(path: str, line: str) -> None:
    """Appends to a file in one write, so that several processes may share it. Raises OSError, also for a pipe that
    nobody reads: nothing waits for a reader."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
    try:
        data = line.encode()
        if os.write(file, data) < len(data):
            raise BlockingIOError(errno.EAGAIN, "there is room for only a part of a line")
    finally:
        os.close(file)
