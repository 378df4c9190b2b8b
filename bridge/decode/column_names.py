"""Row kinds and columns of decoded frames besides those in `columns`."""

from __future__ import annotations

SKIP = "skip"
"""Kind of a record whose document has no row."""

DROPPED = "dropped"
"""Kind of a record that cannot be decoded and is dropped under a format's ignore-parse-errors."""

TRUNCATE = "truncate"
"""Kind of a record that deletes all rows of the records before it."""

NO_ROW = (SKIP, DROPPED, TRUNCATE)
"""The kinds of records that neither set nor delete the row of a key."""

BAD_KEY_ID = "__bad_key_id"
"""Null for a record with a good key, else different for every record, so that grouping by it loses no bad record."""

UNAVAILABLE = "__unavailable"
"""Names of columns whose values the database left out of an update, so that the row keeps them; null for none."""
