"""What must be in a topic, change by change, and what an independent reader of committed records finds there.

Shares no code with the bridge: a plain confluent-kafka consumer, and lists of values per key kept by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql import SparkSession

from tests.reader import messages

History = dict[int, list["str | None"]]


class Ledger:
    """A table (id BIGINT, name STRING, amount DECIMAL) and each key's history since it began, kept beside it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._table = spark, f"delta.`{path}`"
        self._present: dict[int, str] = {}
        self.expected: History = {}

    def create(self) -> None:
        self._spark.sql(
            f"CREATE TABLE {self._table} (id BIGINT, name STRING, amount DECIMAL(10,2)) USING delta "
            "TBLPROPERTIES ('delta.enableChangeDataFeed'='true')"
        )

    def insert(self, ids: Iterable[int], name: str) -> None:
        ids = list(ids)
        rows = ", ".join(f"({id}, '{name}', 1)" for id in ids)
        self._spark.sql(f"INSERT INTO {self._table} VALUES {rows}")
        for id in ids:
            self._set(id, name)

    def update(self, ids: range, name: str) -> None:
        self._spark.sql(
            f"UPDATE {self._table} SET name = '{name}' WHERE id >= {ids.start} AND id < {ids.stop}"
        )
        for id in ids:
            if id in self._present:
                self._set(id, name)

    def delete(self, ids: range) -> None:
        self._spark.sql(f"DELETE FROM {self._table} WHERE id >= {ids.start} AND id < {ids.stop}")
        for id in ids:
            if id in self._present:
                self._unset(id)

    def move(self, ids: range, by: int) -> None:
        """Change primary keys."""
        self._spark.sql(
            f"UPDATE {self._table} SET id = id + {by} WHERE id >= {ids.start} AND id < {ids.stop}"
        )
        moved = {id: self._present[id] for id in ids if id in self._present}
        for id in moved:
            self._unset(id)
        for id, name in moved.items():
            self._set(id + by, name)

    def check(self, bootstrap: str, topic: str) -> None:
        """Every change of every key once, in order, and nothing else; so the fold is the table, too."""
        found = committed(bootstrap, topic)
        assert found == self.expected
        last = {id: values[-1] for id, values in found.items() if values[-1] is not None}
        rows = self._spark.sql(f"SELECT id, name FROM {self._table}").collect()
        assert last == {row["id"]: row["name"] for row in rows}

    def _set(self, id: int, name: str) -> None:
        self._present[id] = name
        self.expected.setdefault(id, []).append(name)

    def _unset(self, id: int) -> None:
        del self._present[id]
        self.expected[id].append(None)


def committed(bootstrap: str, topic: str) -> History:
    """Each key's values in the order of its partition, None for a tombstone, of committed records alone."""
    found: History = {}
    for message in messages(bootstrap, topic):
        value, key = message.value(), message.key()
        assert key is not None
        found.setdefault(json.loads(key)["id"], []).append(
            None if value is None else json.loads(value)["name"]
        )
    return found
