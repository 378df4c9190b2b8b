"""Makes the bounds of an expectation comparable with the values of its column.

Great Expectations reads `2024-01-01` as a date and `2024-01-01T12:00:00` as a point in time, and Python compares one
with the other not at all (TypeError), nor a point in time that has a zone with one that has none.
"""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from typing import TYPE_CHECKING

from pyspark.sql import types as T

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


_BOUNDS = ("min_value", "max_value")


def with_comparable_bounds(expectation: Expectation, schema: T.StructType) -> Expectation:
    """Returns the expectation with bounds in the type that Spark gives the column's values: a date is the beginning of
    its day, in UTC for a column with a zone. Other expectations and columns are returned as they are."""
    column = getattr(expectation, "column", None)
    type = next((f.dataType for f in schema if f.name == column), None)
    if not isinstance(type, T.TimestampType | T.TimestampNTZType | T.DateType):
        return expectation
    given = {name: getattr(expectation, name, None) for name in _BOUNDS}
    made = {name: _bound(value, type) for name, value in given.items() if isinstance(value, date)}
    return expectation.copy(update=made) if made else expectation


def _bound(value: date, type: T.DataType) -> date:
    if isinstance(type, T.DateType):
        if isinstance(value, datetime) and value.tzinfo is None and value.time() == time():
            return value.date()
        return value
    if not isinstance(value, datetime):
        value = datetime.combine(value, time(), timezone.utc)
        if isinstance(type, T.TimestampNTZType):
            return value.replace(tzinfo=None)
    if value.tzinfo is None:
        return value
    # Spark's Python has points in time without a zone: in that of the process, and in UTC for TIMESTAMP_NTZ.
    zone = timezone.utc if isinstance(type, T.TimestampNTZType) else None
    return value.astimezone(zone).replace(tzinfo=None)
