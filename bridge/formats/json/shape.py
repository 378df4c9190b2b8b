"""Patterns of dates and timestamps in JSON."""

from __future__ import annotations

from bridge.schema import DataType, ScalarType

# ISO_LOCAL_DATE: a year of more than four digits has a sign.
_DATE = "(?:-?[0-9]{4}|[+-][0-9]{5,7})-[0-9]{2}-[0-9]{2}"
_TIME = "[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]{0,9})?"
# ISO_LOCAL_TIME leaves the seconds out or gives at least one digit after the point.
_ISO_TIME = "[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,9})?)?"


def is_temporal(type: DataType) -> bool:
    """Return whether `type` is a date or a timestamp."""
    return isinstance(type, ScalarType) and type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")


def usual_temporal_pattern(type: ScalarType) -> str:
    """Return a cheap pattern of dates and timestamps whose year has four digits.

    A text that it matches and Spark can cast matches `moment_pattern` without ISO-8601, too: the cast demands digits
    everywhere but at the end."""
    if type.name == "DATE":
        return r"\A....-..-.[0-9]\z"
    zone = "Z" if type.name == "TIMESTAMP_LTZ" else ""
    return rf"\A....-..-.. ..:..:.[0-9](?:[.][0-9]{{0,9}})?{zone}\z"


def temporal_pattern(type: ScalarType, iso_8601: bool) -> str:
    """Return a pattern of the texts that Flink reads as `type` (flink-formats-common, TimeFormats)."""
    if type.name == "DATE":
        return f"^{_DATE}$"
    zone = "Z" if type.name == "TIMESTAMP_LTZ" else ""
    return f"^{_DATE}T{_ISO_TIME}{zone}$" if iso_8601 else f"^{_DATE} {_TIME}{zone}$"
