"""The URLs at which runs show what they do: which are legal, their logins, and what may be shown of them."""

from __future__ import annotations

import logging
import re
import time
from urllib.parse import unquote, urlsplit

from bridge.errors import AmbiguousKeyError, BadRecordError, BridgeError, DifferenceError, QualityError
from bridge.metrics.reports import BatchReport

_CANNOT_WORK = (
    "not legal: a URL needs a host and, if it has a port, a number; write other characters than letters, digits and "
    "signs of ASCII as %20 and the like, also @, / and : of a password"
)
_NAME_KEYS = (AmbiguousKeyError, BadRecordError, DifferenceError, QualityError)
_AGAIN_SECONDS = 600.0
_log = logging.getLogger("bridge.metrics")
LOGGED: dict[str, float] = {}
"""time.monotonic() by text, as pipelines in rounds end again and again. Shared by threads, which set one value."""


def check_http_url(text: str, legal: str, *, has_query: bool = False) -> str:
    """Returns a URL that can be asked. Raises ValueError for others, with what is `legal`; it does not repeat them, as
    they may hold a password."""
    if not text.startswith(("http://", "https://")):
        raise ValueError(f"not legal; legal values are {legal}")
    try:
        parts = urlsplit(text)
        can_work = parts.port != 0 and is_host(parts.hostname or "") and re.fullmatch(r"[!-~]+", text)
    except ValueError:
        can_work = None
    if not can_work:
        raise ValueError(_CANNOT_WORK)
    if not has_query and ("?" in text or "#" in text):
        raise ValueError("not legal: this URL gets paths added, so that it cannot have a query")
    return text


def is_host(host: str) -> bool:
    """Returns whether a host can have this name."""
    try:
        return 0 < len(host.encode("idna")) <= 253
    except UnicodeError:
        return False


def split_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """Returns a URL without its login, and user and password."""
    login = urlsplit(url).netloc.rpartition("@")[0]
    if not login:
        return url, None
    user, _, password = login.partition(":")
    return url.replace(f"{login}@", "", 1), (unquote(user), unquote(password))


def without_login(target: str) -> str:
    """Returns a target as it may be shown: a URL without user and password, also where these have a / or an @."""
    scheme, found, rest = target.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else target


def host_of(url: str) -> str:
    """Returns the host of a URL, which may be shown; empty where it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


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
