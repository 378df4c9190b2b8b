"""How an engine that works in the driver refuses what only Spark handles, before it has written anything."""

from __future__ import annotations

from bridge.errors import BridgeError

__all__ = ["UnknownOutcome", "UnsupportedByEngine"]


class UnsupportedByEngine(Exception):
    """Why an engine does not merge this batch into this table: the end of a sentence."""


class UnknownOutcome(BridgeError):
    """Raised if a file may be written or not, so that nobody else may do its work: the next run finds out."""
