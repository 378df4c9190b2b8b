"""What is told of an error outside of the machine where it happened."""

from __future__ import annotations

from bridge.errors import AmbiguousKeyError, BadRecordError, BridgeError, DifferenceError, QualityError

__all__ = ["text_without_values"]

_NAME_KEYS = (AmbiguousKeyError, BadRecordError, DifferenceError, QualityError)


def text_without_values(error: BaseException) -> str:
    """Returns the message of an error of the bridge; of others, which may hold anything, and of those that name the key
    of a row only the class."""
    tells = isinstance(error, BridgeError) and not isinstance(error, _NAME_KEYS)
    return str(error) if tells else type(error).__name__
