"""A failure of what watches a run: its text, which may hold a URL, and the warning of the next batch that tells it."""

from __future__ import annotations

import logging
import time

from bridge.errors import AmbiguousKeyError, BadRecordError, BridgeError, DifferenceError, QualityError
from bridge.metrics.reports import BatchReport

_NAME_KEYS = (AmbiguousKeyError, BadRecordError, DifferenceError, QualityError)


def text_without_values(error: BaseException) -> str:
    """Returns the message of an error of the bridge; of others, which may hold anything, and of those that name the key
    of a row only the class."""
    tells = isinstance(error, BridgeError) and not isinstance(error, _NAME_KEYS)
    return str(error) if tells else type(error).__name__


def text_without_url(error: BaseException) -> str:
    """Returns what the system says of an error, or what was the cause of it; of others, whose text may hold a URL and
    with it a password, only the class and the status that a server answered."""
    cause = getattr(error, "reason", None)
    if isinstance(cause, OSError):
        return text_without_url(cause)
    if isinstance(error, OSError) and isinstance(error.strerror, str):
        return f"[Errno {error.errno}] {error.strerror}"
    status = getattr(error, "code", None) or getattr(getattr(error, "response", None), "status_code", None)
    return " ".join(filter(None, (type(error).__name__, str(status or ""))))


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
