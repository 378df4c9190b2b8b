"""The Spark tasks of the reader `consumer`: they read ranges of a topic and return the last row of each key.

One job reads, compacts and decodes a batch: no shuffle, no cache. Keys are compared within their partition only, those
of an upsert topic by their bytes; the caller compares the decoded keys of all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message

from bridge.arrow_formats.base import ArrowDecoder, check_keys
from bridge.kafka.folded_changes import ChangeReading, FoldedChanges
from bridge.kafka.range_consumer import read_ranges
from bridge.kafka.range_parts import LatestValues, PartitionRange, RangePart
from bridge.kafka.read_counts import ReadCounts
from bridge.kafka.record_metadata import metadata_columns
from bridge.rows import RowKind
from bridge.ways import NotThisWay

__all__ = ["LatestChangesTask", "LatestRows", "LatestRowsTask"]

_KIND = "__kind"


@dataclass(frozen=True)
class LatestRows:
    """The rows of one partition: at most one for each key (by its bytes), in no order."""

    topic: str
    partition: int
    end: int
    """The offset after the records that were read."""
    read: ReadCounts
    """Of the records in the range."""
    newest: int | None
    """The newest value of the watermark column in a change, in microseconds; None without one."""
    stream: bytes
    """An Arrow IPC stream: the table's columns and `__kind`, which is '+U' or '-D'."""

    @classmethod
    def of(cls, part: RangePart, end: int, newest: int | None, rows: pa.Table) -> LatestRows:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return cls(
            part.range.topic, part.range.partition, end, part.read, newest, sink.getvalue().to_pybytes()
        )

    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.stream).read_all()


@dataclass(frozen=True)
class LatestRowsTask:
    """Everything a task needs, as plain values."""

    settings: Mapping[str, Any]
    """librdkafka's; see `read_ranges`."""
    key: ArrowDecoder
    value: ArrowDecoder
    key_columns: tuple[str, ...]
    """The columns of the key decoder's rows, in their order."""
    value_columns: tuple[str, ...]
    """The columns of the value decoder's rows, in their order."""
    columns: tuple[str, ...]
    """The columns to return, in their order: those of the key from the key document, as in docs/adr/002."""
    metadata: Mapping[str, str]
    """The keys of METADATA columns by the columns' names."""
    not_null: tuple[str, ...]
    """Columns that are declared NOT NULL."""
    watermark: str | None
    """The watermark column, a timestamp."""
    decodes_all: bool
    """Whether superseded values must be good, too, as an earlier record counts instead of a bad last one."""
    timeout: float
    limit_bytes: int
    """Of the keys and values that are kept for all ranges of the task, which end where they are more."""

    def run(self, ranges: Iterable[Sequence[PartitionRange]]) -> Iterator[LatestRows | NotThisWay]:
        """Yield the rows of each range, and end by yielding NotThisWay where Spark's path may decode a record
        otherwise. Raises as `read_ranges` does."""
        for task_ranges in ranges:
            folds = [_Fold(self, each) for each in task_ranges]
            parts = [fold.part for fold in folds]
            try:
                ends = read_ranges(self.settings, parts, timeout=self.timeout, limit_bytes=self.limit_bytes)
                for fold, end in zip(folds, ends, strict=True):
                    yield fold.rows(end)
            except NotThisWay as reason:
                yield reason
                return

    def table(self, columns: Mapping[str, pa.ChunkedArray], rows: int, kind: RowKind) -> pa.Table:
        """The columns in their order, as far as there are, and the kind. `concat_tables` adds the others as nulls."""
        named = {name: columns[name] for name in self.columns if name in columns}
        return pa.table({**named, _KIND: pa.repeat(kind.value, rows)})


class _Fold:
    """The rows of one range of an upsert topic."""

    def __init__(self, task: LatestRowsTask, range: PartitionRange) -> None:
        self._task, self._newest = task, list[int]()
        superseded = (lambda _, values: self._note(self._values(values))) if task.decodes_all else None
        self.part = LatestValues(range, superseded=superseded)

    def rows(self, end: int) -> LatestRows:
        """What is left of each key, with the `end` of the records. Raises NotThisWay where Spark's path may decode a
        record otherwise."""
        part, task = self.part, self._task
        part.pass_on()
        upserted = [(k, m) for k, m in part.records.items() if m.value() is not None]
        deleted = [k for k, m in part.records.items() if m.value() is None]
        tables = [self._upserts([k for k, _ in upserted], [m for _, m in upserted])]
        if deleted:
            tables.append(task.table(self._keys(deleted), len(deleted), RowKind.DELETE))
        rows = pa.concat_tables(tables, promote_options="default").combine_chunks()
        return LatestRows.of(part, end, max(self._newest, default=None), rows)

    def _keys(self, keys: Sequence[bytes | None]) -> dict[str, pa.ChunkedArray]:
        if None in keys:
            raise NotThisWay("a key is null")
        decoded = self._task.key.decode(pa.array(keys, pa.binary()))
        columns = dict(zip(self._task.key_columns, decoded.columns, strict=True))
        check_keys(columns)
        return columns

    def _values(self, values: Sequence[bytes | None]) -> dict[str, pa.ChunkedArray]:
        decoded = self._task.value.decode(pa.array(values, pa.binary()))
        columns = dict(zip(self._task.value_columns, decoded.columns, strict=True))
        self._refuse_nulls(columns)
        return columns

    def _upserts(self, keys: Sequence[bytes | None], messages: Sequence[Message]) -> pa.Table:
        columns = self._values([message.value() for message in messages]) | self._keys(keys)
        columns |= metadata_columns(self._task.metadata, self.part.range, messages)
        self._refuse_nulls(columns)
        self._note(columns)
        return self._task.table(columns, len(keys), RowKind.UPDATE_AFTER)

    def _refuse_nulls(self, columns: Mapping[str, pa.ChunkedArray]) -> None:
        for name in self._task.not_null:
            if name in columns and name not in self._task.key_columns and columns[name].null_count:
                raise NotThisWay(f"column {name!r} is NOT NULL, and a record has no value for it")

    def _note(self, columns: Mapping[str, pa.ChunkedArray]) -> None:
        """Note the newest event time."""
        if self._task.watermark is not None and self._task.watermark in columns:
            newest = pc.max(columns[self._task.watermark]).cast(pa.int64()).as_py()
            self._newest += [] if newest is None else [newest]


@dataclass(frozen=True)
class LatestChangesTask:
    """The same for a CDC topic: everything a task needs, as plain values."""

    settings: Mapping[str, Any]
    """librdkafka's; see `read_ranges`."""
    reading: ChangeReading
    timeout: float
    limit_bytes: int
    """Of the changes that are kept for all ranges of the task, which end where they are more."""

    def run(self, ranges: Iterable[Sequence[PartitionRange]]) -> Iterator[LatestRows | NotThisWay]:
        """See LatestRowsTask.run."""
        for task_ranges in ranges:
            parts = [FoldedChanges(r, self.reading) for r in task_ranges]
            try:
                ends = read_ranges(self.settings, parts, timeout=self.timeout, limit_bytes=self.limit_bytes)
                for part, end in zip(parts, ends, strict=True):
                    rows = part.table()  # decodes what is not decoded yet, and notes its event times
                    yield LatestRows.of(part, end, part.newest, rows)
            except NotThisWay as reason:
                yield reason
                return
