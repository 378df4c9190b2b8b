"""What readers of documents share: their type, their error, and JSON text of values."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any


class Undecodable(ValueError):
    """Bytes are no document of the format; the message is the reason, without any of the bytes."""


Reader = Callable[[bytes], str]
"""Turns bytes into one line of JSON text. Raises Undecodable."""


def as_json(value: Any) -> str:
    """Return a decoded value as JSON text: bytes in base64, decimals and times as text."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
