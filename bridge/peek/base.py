"""What a reader of documents is, and how it shows what it read."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

__all__ = ["Reader", "Undecodable", "as_json"]


class Undecodable(ValueError):
    """Bytes that are no document of the format; the message is the reason and holds nothing of them."""


Reader = Callable[[bytes], str]
"""Bytes to JSON text in one line. Raises Undecodable."""


def as_json(value: Any) -> str:
    """A decoded value as JSON text: bytes in base64, decimals and times as text."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
