"""The statistics of a new data file, as an `add` action carries them.

Format: "Per-file Statistics" in the Delta protocol (PROTOCOL.md). Bounds are left out where no text of them is right:
of floating point (Spark orders NaN after every number), of a DECIMAL of more digits than a double has, of binary and
boolean values, and of times that have no text of four digits of a year.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

EXACT_DIGITS = 15
"""The most digits of a decimal number that survive a conversion to double and back."""

_CHARACTERS = 32
_LAST = "\U0010ffff"
_MILLIS = 1000


def columns_with_statistics(properties: Mapping[str, str], columns: int) -> int:
    """Return of how many of its first `columns` columns a table with these properties has statistics."""
    given = int(properties.get("delta.dataSkippingNumIndexedCols", 32))
    return columns if given < 0 else given


class FileStatistics:
    """The statistics of a file whose rows come part by part, with bounds of these columns.

    Texts are cut to 32 characters, and times to milliseconds: then `tightBounds` is false.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self.rows = 0
        self._nulls = dict.fromkeys(self._columns, 0)
        self._ends: dict[str, tuple[Any, Any] | None] = {}
        """The least and the greatest value of a column with values; None where there is none to give."""
        self._types: dict[str, pa.DataType] = {}

    def counted(self, part: pa.Table) -> pa.Table:
        """Return the part, whose rows count from now on."""
        self.rows += part.num_rows
        for name in self._columns:
            column = part[name]
            self._types[name] = column.type
            self._nulls[name] += column.null_count
            if column.null_count < len(column):
                found, known = _ends(column), self._ends.get(name, ())
                if known is None or found is None:
                    self._ends[name] = None
                elif known:
                    self._ends[name] = (min(known[0], found[0]), max(known[1], found[1]))
                else:
                    self._ends[name] = found
        return part

    def text(self) -> str:
        """What `stats` of the `add` action says."""
        low, high, tight = {}, {}, True
        for name, ends in self._ends.items():
            bounds = None if ends is None else _bounds(self._types[name], *ends)
            if bounds is not None:
                low[name], high[name], exact = bounds
                tight = tight and exact
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": low,
                "maxValues": high,
                "nullCount": self._nulls,
                "tightBounds": tight,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """The least and the greatest value, times as microseconds; None for a type without bounds, and for a date that
    Python has not."""
    type = column.type
    has_bounds = is_.is_integer(type) or is_.is_string(type) or is_.is_date32(type) or is_.is_timestamp(type)
    if not has_bounds and not (is_.is_decimal(type) and type.precision <= EXACT_DIGITS):
        return None
    ends = pc.min_max(column.cast("int64") if is_.is_timestamp(type) else column)
    try:
        return ends["min"].as_py(), ends["max"].as_py()
    except (ValueError, OverflowError):
        return None


def _bounds(type: pa.DataType, low: Any, high: Any) -> tuple[Any, Any, bool] | None:
    """Both ends as the statistics say them, and whether they are exact; None where there are none to give."""
    if is_.is_timestamp(type):
        return _times(low, high, "" if type.tz is None else "Z")
    if is_.is_decimal(type):
        return float(low), float(high), True
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
