"""The system time of a batch (`delta.history: bitemporal`), in microseconds of the epoch: when the table learnt it.

It is that of the clock, but later than all system times that the table has: a clock may go back, and other writers have
their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import col
from bridge.history_columns import History
from bridge.lake.snapshot import stats_of
from bridge.ways import NotThisWay

_CUT = 999
"""Statistics have milliseconds: the greatest value may be so many microseconds later."""


def after(newest: int | None) -> int:
    """The time now, if it is later than `newest`, else the next one."""
    now = time.time_ns() // 1000
    return now if newest is None else max(now, newest + 1)


def newest_of_rows(rows: DataFrame, history: History) -> int | None:
    """The newest system time of these rows; None without rows. Runs a job."""
    row = rows.agg(F.unix_micros(F.greatest(*(F.max(col(name)) for name in history.system_columns)))).first()
    return None if row is None else row[0]


def newest_of_files(files: Iterable[Mapping[str, Any]], history: History) -> int | None:
    """No earlier time than the newest one in these files, from their statistics; None without files. Raises NotThisWay
    where a file has none."""
    found = []
    for stats in map(stats_of, files):
        for name in history.system_columns:
            text = (stats.get("maxValues") or {}).get(name)
            if text is not None:
                found.append(round(datetime.fromisoformat(text).timestamp() * 1000) * 1000 + _CUT)
            elif (stats.get("nullCount") or {}).get(name) != stats.get("numRecords", -1):
                raise NotThisWay(f"a file of the table has no statistics of {name!r}, its system time")
    return max(found, default=None)
