"""What is told of an error outside of the machine where it happened, or of one whose text may hold a URL."""

from __future__ import annotations

from bridge.errors import AmbiguousKeyError, BadRecordError, BridgeError, DifferenceError, QualityError

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
