"""The Spark side of the formats that `options.formats` registers, by Flink's names."""

from __future__ import annotations

from bridge.errors import OptionError, UnsupportedError
from bridge.formats.base import Format
from bridge.options.formats import FORMATS, load


def available() -> tuple[str, ...]:
    """Return the names that `get` takes, sorted."""
    return tuple(sorted(name for name, declared in FORMATS.items() if declared.spark))


def get(name: str) -> Format:
    """Return a new object of the format's class.

    Raises UnsupportedError for a format that is declared and refused, OptionError for an unknown name.
    """
    declared = FORMATS.get(name)
    if declared is not None and declared.spark:
        made: Format = load(declared.spark)()
        return made
    names = ", ".join(available())
    if declared is not None:
        raise UnsupportedError(
            f"format '{name}' is not supported yet; available: {names}", what=f"format '{name}'"
        )
    raise OptionError(f"format '{name}' is unknown; available: {names}")
