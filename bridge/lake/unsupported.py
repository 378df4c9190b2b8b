"""How an engine that works in the driver refuses what only Spark handles, before it has written anything."""

from __future__ import annotations

__all__ = ["UnsupportedByEngine"]


class UnsupportedByEngine(Exception):
    """Why an engine does not merge this batch into this table: the end of a sentence."""
