"""Arrow batches to records for a producer: what a task of any sink does before it sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bridge.errors import KafkaError
from bridge.kafka.writer import Records

__all__ = ["SENT", "Packing"]

SENT = ("key", "value", "timestamp", "headers", "topic")
"""The columns that make a record; the first two must be there."""


@dataclass(frozen=True)
class Packing:
    """Which topics records may go to: plain values, so that it travels to executors."""

    topics: tuple[str, ...]
    pattern: str | None = None

    def records(self, batch: pa.RecordBatch) -> Records:
        """The batch's rows in their order. Raises KafkaError for a row whose topic is not legal, in Flink's words."""
        columns: Mapping[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        records = Records(
            topics=self._topics(columns.get("topic"), batch.num_rows),
            keys=columns["key"].to_pylist(),
            values=columns["value"].to_pylist(),
        )
        if "timestamp" in columns:
            # Spark's timestamps arrive as microseconds since 1970, Kafka's are milliseconds.
            records.timestamps = pc.divide(columns["timestamp"].cast(pa.int64()), 1000).to_pylist()
        if "headers" in columns:
            headers = columns["headers"].to_pylist()
            records.headers = [h and [(x["key"], x["value"]) for x in h] for h in headers]
        return records

    def _topics(self, column: pa.Array | None, rows: int) -> list[str]:
        """Each row's topic. Where there is only one, rows need not name it (Flink: the column is not looked at)."""
        if column is None or (len(self.topics) == 1 and self.pattern is None):
            return [self.topics[0]] * rows
        for name in column.unique().to_pylist():
            if self.pattern is not None:
                legal, expected = name and re.fullmatch(self.pattern, name), f"to match: {self.pattern}"
            else:
                legal, expected = name in self.topics, f"to be in: [{', '.join(self.topics)}]"
            if not legal:
                raise KafkaError(
                    "The topic of the sink record is not valid. Expected topic "
                    f"{expected} but was: {'null' if name is None else name}"
                )
        names: list[str] = column.to_pylist()
        return names
