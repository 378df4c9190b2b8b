"""Aggregates of groups of the corpus' rows: all NULL, one twice, sums that overflow, NaN, negative averages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from benchmarks.flink_vectors.corpus import COLUMNS, ROWS, documents

GROUPS = (
    tuple(range(ROWS)),
    (ROWS, ROWS),
    *(
        (0, 0),
        (5, 5),
        (3, 3, 4),
        (6, 7),
        (7, 8),
        (0, 1, 2),
        (4, 5, 6, 7),
        (8, 9, 10, 11),
        (2, 10, 11),
        (1, 1, 9),
    ),
    *((3, 4), (2, 2), (9, 10), (4, 4)),
)
"""The rows of each group; the one behind the last has NULL in each column."""
_NUMBERS = ("t", "h", "i", "l", "l2", "f", "d", "d2", "m", "m2", "n0")
_OTHERS = ("b", "text", "ch", "vc", "bytes", "day", "ts", "ts6", "lz")


def aggregates() -> list[str]:
    """The expressions over a group."""
    calls = [
        f"{name}({distinct}c_{column})"
        for column in (*_NUMBERS, *_OTHERS)
        for name in ("COUNT", "MIN", "MAX", *(("SUM", "AVG") if column in _NUMBERS else ()))
        for distinct in ("", "DISTINCT ")
    ]
    plain = [call for call in calls if "DISTINCT" not in call]
    return [
        *("COUNT(*)", "COUNT(*) FILTER (WHERE c_b)"),
        *calls,
        # Beside a SUM of the same, and without DISTINCT, Flink's batch mode divides that sum and not that of AVG alone.
        *(f"{call} FILTER (WHERE c_b)" for call in plain if not re.match(r"AVG\(c_[thil]", call)),
        *(
            "SUM(c_i * c_m)",
            "SUM(c_i) / COUNT(c_i)",
            "SUM(c_l) + 1",
            "AVG(c_i) + 1",
            "-SUM(c_t)",
            "AVG(c_m) * 2",
        ),
        *(
            f"CAST({call} AS STRING)"
            for call in ("SUM(c_m)", "AVG(c_m)", "AVG(c_m2)", "SUM(c_d2)", "AVG(c_l)")
        ),
        *(
            "COALESCE(SUM(c_l), 0)",
            "MAX(c_text) || 'x'",
            "MIN(UPPER(c_text))",
            "SUM(CASE WHEN c_b THEN 1 ELSE 0 END)",
        ),
        *("SUM(CAST(c_i AS BIGINT))", "MAX(c_m) - MIN(c_m)", "SUM(c_n0) / 2"),
    ]


def members() -> Iterator[str]:
    """The rows of all groups, whose `rid` is the number of their group."""
    rows = [json.loads(document) for document in documents()]
    rows.append(dict.fromkeys(rows[0]))
    for group, numbers in enumerate(GROUPS):
        yield from (json.dumps(rows[number] | {"rid": group}, ensure_ascii=False) for number in numbers)


assert all(column in COLUMNS for column in (*_NUMBERS, *_OTHERS))
