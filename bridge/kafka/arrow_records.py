"""Converts Arrow batches to records for a producer, in the tasks of all sinks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bridge.arrow_formats.record_encoder import RETRACTS, RecordEncoder
from bridge.definition import Topic
from bridge.errors import KafkaError
from bridge.kafka.records import Records

_DOCUMENTS = ("key", "value")
_METADATA = ("timestamp", "headers", "topic")
"""What a record may have besides its documents."""


@dataclass(frozen=True)
class ArrowRecords:
    """The legal topics of records and how their documents are made, as plain values that can be sent to executors."""

    topics: tuple[str, ...]
    pattern: str | None = None
    timestamp: str | None = None
    """The table's column of record timestamps; for messages."""
    keyed: bool = True
    """Whether the table has a PRIMARY KEY; for messages."""
    encoder: RecordEncoder | None = field(default=None, compare=False)
    """What makes keys and values of the table's columns; None where a batch has the columns `key` and `value`. A
    producer, which is reused for an equal value of this class, does not depend on it."""

    @classmethod
    def of(cls, topic: Topic, encoder: RecordEncoder | None = None) -> ArrowRecords:
        """Return the conversion for records of `topic`."""
        columns = [c.name for c in topic.schema.metadata if c.key == "timestamp" and not c.virtual]
        return cls(topic.names, topic.pattern, columns[0] if columns else None, not topic.appends, encoder)

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return those of a frame's columns (`names`) that `records` takes."""
        encoder = self.encoder
        documents = _DOCUMENTS if encoder is None else (*encoder.sources.values(), RETRACTS)
        return [*documents, *(name for name in _METADATA if name in names)]

    def records(self, batch: pa.RecordBatch) -> Records:
        """Return the batch's rows in their order.

        Null headers and headers without a name are omitted, as in Flink; a header with a null value stays. Raises
        KafkaError for a row whose topic is not legal, with Flink's message, and for a timestamp that cannot be sent.
        """
        columns: Mapping[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self.encoder is None:
            keys, values = columns["key"], columns["value"]
        else:
            keys, values = self.encoder.documents(batch)
        records = Records(
            topics=self._topics(columns.get("topic"), batch.num_rows),
            keys=keys.to_pylist(),
            values=values.to_pylist(),
            key_column=keys,
            counted_bytes=sum(pc.sum(pc.binary_length(part)).as_py() or 0 for part in (keys, values)),
        )
        if "timestamp" in columns:
            # Spark's timestamps arrive as microseconds since 1970, Kafka's are milliseconds.
            milliseconds = pc.divide(columns["timestamp"].cast(pa.int64()), 1000)
            records.timestamps = milliseconds.to_pylist()
            earliest = pc.min(milliseconds).as_py()
            if earliest is not None and earliest <= 0:
                raise self._unsendable(earliest, records.topics[records.timestamps.index(earliest)])
        if "headers" in columns:
            records.headers = [h and _named(h) for h in columns["headers"].to_pylist()]
        return records

    def _unsendable(self, milliseconds: int, topic: str) -> KafkaError:
        """Return the error for a timestamp before 1970, which Kafka does not store, or of 0.

        The C client replaces 0 by the current time, and no client in Spark's Python workers can send it.
        """
        name = self.timestamp or "timestamp"
        if milliseconds == 0:
            what = "1970-01-01T00:00:00Z, which Kafka's C client replaces by the current time"
        else:
            what = f"{-milliseconds} ms before 1970-01-01T00:00:00Z, and Kafka has no timestamp before that"
        if self.keyed:
            remedy = (
                "then `bridge resync FILE`: it sends the current rows and skips this version, at which a publish "
                "would fail each time. Or declare"
            )
        else:
            remedy = (
                "which helps with later versions; to skip this one, declare (with exactly-once also set "
                "'sink.delivery-guarantee' = 'at-least-once' until it is sent; some of its records may then be in "
                "the topic twice)"
            )
        return KafkaError(
            f"a record for '{topic}' cannot be sent: its timestamp (column '{name}', METADATA FROM 'timestamp') is "
            f"{what}. Set it to another value in the table (a millisecond after 1970 or later; NULL is the time of "
            f"sending), {remedy} '{name}' VIRTUAL in the DDL: then every record has the time of sending"
        )

    def _topics(self, column: pa.Array | None, rows: int) -> list[str]:
        """Return each row's topic. With one legal topic the column is ignored, as in Flink."""
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


def _named(entries: list[dict[str, Any] | None]) -> list[tuple[str, bytes | None]]:
    return [(x["key"], x["value"]) for x in entries if x is not None and x["key"] is not None]
