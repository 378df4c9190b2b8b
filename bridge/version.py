"""Determines the installed version of the bridge."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """Returns the installed version, or `(not installed)` for code that runs from a zip given with --py-files."""
    try:
        return version("changelog-bridge")
    except PackageNotFoundError:
        return "(not installed)"
