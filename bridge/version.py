"""Which bridge this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["own_version"]


def own_version() -> str:
    """The installed version; `(not installed)` for code that is run from a zip by --py-files."""
    try:
        return version("changelog-bridge")
    except PackageNotFoundError:
        return "(not installed)"
