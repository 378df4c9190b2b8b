"""A failure of what watches a run: a warning of the next batch, or in the log of the process where none comes."""

from __future__ import annotations

import logging
import time

from bridge.metrics.reports import BatchReport

_AGAIN_SECONDS = 600.0
_log = logging.getLogger("bridge.metrics")
LOGGED: dict[str, float] = {}
"""time.monotonic() by text, as pipelines in rounds end again and again. Shared by threads, which set one value."""


class NextWarning:
    """The newest warning that nobody has been told. Shared by threads: it is set in one assignment."""

    def __init__(self) -> None:
        self._text: str | None = None

    def say(self, text: str) -> None:
        """Give it to the next report."""
        self._text = text

    def onto(self, report: BatchReport) -> BatchReport:
        """Return a report with the warning, if there is one."""
        text, self._text = self._text, None
        return report if text is None else report.warned(text)

    def close(self) -> None:
        """Log a warning that no report had, unless it was logged within ten minutes."""
        text, self._text = self._text, None
        now = time.monotonic()
        if text is not None and now - LOGGED.get(text, -_AGAIN_SECONDS) >= _AGAIN_SECONDS:
            LOGGED[text] = now
            _log.warning("%s", text)
