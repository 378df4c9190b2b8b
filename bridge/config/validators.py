"""Legal values of the pipeline file's keys, where a type does not say it all."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from bridge.options.kinds import duration_ms, size_bytes

__all__ = [
    "check_cluster_columns",
    "check_interval",
    "check_publish_start",
    "check_retention",
    "check_size",
    "check_trigger",
    "digits_as_int",
    "off_as_text",
    "scalars_as_text",
]


def check_trigger(text: str) -> str:
    """`available-now`, or an interval with a unit. These raise ValueError saying what is legal."""
    if text != "available-now":
        if text.strip().isdigit():
            raise ValueError("it has no unit; legal are available-now and intervals like '10 s'")
        if not _duration(text):
            raise ValueError("not legal; legal are available-now and intervals like '10 s'")
    return text


def check_interval(text: str) -> str:
    """A time with a unit that is not 0."""
    if not _duration(text):
        raise ValueError("not legal; legal are intervals with a unit, like '1 d' or '6 h'")
    return text


def check_retention(text: str) -> str:
    """A time with a unit; 0 is legal."""
    if _duration(text) is None:
        raise ValueError("not legal; legal are times with a unit, like '7 d' or '36 h'")
    return text


def _duration(text: str) -> int | None:
    """Milliseconds; None for what is none, or has no unit."""
    try:
        return None if text.strip().isdigit() else duration_ms(text)
    except ValueError:
        return None


def check_cluster_columns(columns: list[str]) -> list[str]:
    """Columns for Delta's CLUSTER BY: 1 to 4 of them, each once."""
    if not 1 <= len(columns) <= 4 or len({name.lower() for name in columns}) < len(columns):
        raise ValueError("not legal; legal are 1 to 4 columns, each once")
    return columns


def check_size(text: str) -> str:
    """A size with a unit."""
    try:
        size_bytes(text)
    except ValueError:
        raise ValueError("not legal; legal are sizes with a unit, like '256 mb' or '1 gb'") from None
    return text


def check_publish_start(text: str) -> str:
    """Where a publish starts."""
    mode, _, value = text.partition(":")
    if text in ("snapshot", "latest") or (mode == "version" and value.isdigit()):
        return text
    if mode == "timestamp":
        try:
            datetime.fromisoformat(re.sub("[zZ]$", "+00:00", value))
            return text
        except ValueError:
            pass
    raise ValueError("not legal; legal are snapshot, latest, version:N, timestamp:2024-12-31T23:59:59Z")


def off_as_text(value: Any) -> Any:
    """YAML reads a bare off as false."""
    return "off" if value is False else value


def digits_as_int(value: Any) -> Any:
    """A number that a substitution left as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def scalars_as_text(value: Any) -> Any:
    """YAML's own true, false and numbers as the text Delta wants for a table property."""
    if not isinstance(value, dict):
        return value
    return {
        k: str(v).lower() if isinstance(v, bool) else str(v) if isinstance(v, int | float) else v
        for k, v in value.items()
    }
