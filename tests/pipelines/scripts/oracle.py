"""Computes a query by SQLite over plain rows: it shares no code with the bridge."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

Rows = Counter[tuple[Any, ...]]
"""Rows without an order, each with how often it is there."""


def computed(query: str, tables: Mapping[str, tuple[Sequence[str], Sequence[tuple[Any, ...]]]]) -> Rows:
    """The rows of a query; `tables` are the columns and rows by the name of each table."""
    with closing(sqlite3.connect(":memory:")) as database:
        for name, (columns, rows) in tables.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        return Counter(database.execute(query).fetchall())
