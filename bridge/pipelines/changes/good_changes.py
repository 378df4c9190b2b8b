"""Which decoded changes count."""

from __future__ import annotations

from pyspark.sql import Column

from bridge.columns import BAD, KIND, col, retracts
from bridge.decode import NO_ROW


def is_good() -> Column:
    """True for changes that are applied to the table."""
    return col(BAD).isNull() & ~col(KIND).isin(*NO_ROW)


def sets_row() -> Column:
    """True for those of them that set a row."""
    return is_good() & ~retracts()
