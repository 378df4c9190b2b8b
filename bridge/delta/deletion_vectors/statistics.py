"""The statistics of a new data file, as an `add` action carries them.

Format: "Per-file Statistics" in the Delta protocol (PROTOCOL.md). Bounds are left out where no text of them is right:
of floating point (Spark orders NaN after every number), of a DECIMAL of more digits than a double has, of binary and
boolean values, and of times that have no text of four digits of a year.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EXACT_DIGITS", "columns_with_statistics", "file_statistics"]

EXACT_DIGITS = 15
"""The most digits of a decimal number that survive a conversion to double and back."""

_CHARACTERS = 32
_LAST = "\U0010ffff"
_MILLIS = 1000


def columns_with_statistics(properties: Mapping[str, str], columns: int) -> int:
    """Return of how many of its first `columns` columns a table with these properties has statistics."""
    given = int(properties.get("delta.dataSkippingNumIndexedCols", 32))
    return columns if given < 0 else given


def file_statistics(rows: pa.Table, columns: int) -> str:
    """Return the statistics of a file with these rows, with bounds of the first `columns` columns.

    Texts are cut to 32 characters, and times to milliseconds: then `tightBounds` is false.
    """
    low, high, nulls, tight = {}, {}, {}, True
    for name in rows.column_names[:columns]:
        nulls[name] = rows[name].null_count
        bounds = _bounds(rows[name])
        if bounds is not None:
            low[name], high[name], exact = bounds
            tight = tight and exact
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": low,
            "maxValues": high,
            "nullCount": nulls,
            "tightBounds": tight,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any, bool] | None:
    """Minimum, maximum, and whether they are exact; None where there are none to give."""
    import pyarrow.compute as pc
    import pyarrow.types as is_

    type = column.type
    if column.null_count == len(column):
        return None
    if is_.is_timestamp(type):
        ends = pc.min_max(column.cast("int64"))
        return _times(ends["min"].as_py(), ends["max"].as_py(), "" if type.tz is None else "Z")
    if is_.is_decimal(type) and type.precision <= EXACT_DIGITS:
        ends = pc.min_max(column)
        return float(ends["min"].as_py()), float(ends["max"].as_py()), True
    if not (is_.is_integer(type) or is_.is_string(type) or is_.is_date32(type)):
        return None
    ends = pc.min_max(column)
    try:
        low, high = ends["min"].as_py(), ends["max"].as_py()
    except (ValueError, OverflowError):  # Python has no such date
        return None
    if is_.is_string(type):
        return _texts(low, high)
    if is_.is_date32(type):
        return low.isoformat(), high.isoformat(), True
    return low, high, True


def _texts(low: str, high: str) -> tuple[str, str, bool] | None:
    if len(high) > _CHARACTERS:
        if high[_CHARACTERS] == _LAST:
            return None
        return low[:_CHARACTERS], high[:_CHARACTERS] + _LAST, False
    return low[:_CHARACTERS], high, len(low) <= _CHARACTERS


def _times(low: int, high: int, zone: str) -> tuple[str, str, bool] | None:
    first, last = low // _MILLIS, -(-high // _MILLIS)
    try:
        texts = [_time(at, zone) for at in (first, last)]
    except OverflowError:  # Python has no such time
        return None
    return texts[0], texts[1], first * _MILLIS == low and last * _MILLIS == high


def _time(millis: int, zone: str) -> str:
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)
    return at.isoformat(timespec="milliseconds") + zone
