"""Reads a Delta table from its log and its Parquet files, without the bridge, Spark and statistics.

It reads every row of every file in the log, so it finds a key that a reader with a filter would miss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from tests.faults.vectors import deleted_rows


class Log:
    """Follows a table's log from version 0 commit by commit, without checkpoints."""

    def __init__(self, table: Path) -> None:
        self.table, self.version = table, -1
        self._live: dict[str, Mapping[str, Any]] = {}

    def commits(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yields new commits as (version, actions)."""
        while (file := self.table / "_delta_log" / f"{self.version + 1:020}.json").exists():
            self.version += 1
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            # A commit may remove and add the same path, with another deletion vector.
            for action in (a["remove"] for a in actions if "remove" in a):
                self._live.pop(_named(action), None)
            for action in (a["add"] for a in actions if "add" in a):
                self._live[_named(action)] = action
            yield self.version, actions

    def rows(self, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Returns the rows of the version that was read last."""
        return [row for add in self._live.values() for row in rows(self.table, add, columns)]

    @property
    def files(self) -> set[str]:
        """Returns the names of the live files."""
        return {unquote(add["path"]) for add in self._live.values()}


def rows(table: Path, add: Mapping[str, Any], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Returns the rows of a file that are not deleted."""
    gone = deleted_rows(table, add.get("deletionVector"))
    found = pq.ParquetFile(table / unquote(add["path"])).read(columns=list(columns))
    lists = [found.column(name).to_pylist() for name in columns]
    for number, row in enumerate(zip(*lists, strict=True)):
        if number not in gone:
            yield row


def _named(action: Mapping[str, Any]) -> str:
    vector = action.get("deletionVector") or {}
    return " ".join(str(x) for x in (action["path"], *(vector.get(n) for n in ("pathOrInlineDv", "offset"))))
