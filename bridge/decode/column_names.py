"""Names that the ways to decode share with whoever reads their frames."""

from __future__ import annotations

__all__ = ["BAD_KEY_ID", "DROPPED", "SKIP", "UNAVAILABLE"]

SKIP = "skip"
"""Kind of a record that says nothing: its document holds no row."""

DROPPED = "dropped"
"""Kind of a record that cannot be read and is left out because a format's ignore-parse-errors says so."""

BAD_KEY_ID = "__bad_key_id"
"""Null for a record whose key is known, else unlike any other record's: group by it, and nothing bad is lost."""

UNAVAILABLE = "__unavailable"
"""Names of columns whose present value an update keeps, because its document does not tell it; null for none."""
