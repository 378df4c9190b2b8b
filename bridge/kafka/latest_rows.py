"""The Spark tasks of the reader `consumer`: they read ranges of a topic and return the last row of each key.

One job reads, compacts and decodes a batch: no shuffle, no cache. Keys are compared within their partition only, those
of an upsert topic without a sequence by their bytes; the caller compares the decoded keys of all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message

from bridge.kafka.folded_changes import ChangeReading, FoldedChanges
from bridge.kafka.range_consumer import read_ranges
from bridge.kafka.range_parts import LatestValues, PartitionRange, RangePart
from bridge.kafka.read_counts import ReadCounts
from bridge.kafka.record_decoders import UpsertDecoder
from bridge.kafka.record_metadata import metadata_columns
from bridge.offsets import TopicPartition
from bridge.rows import RowKind
from bridge.ways import NotThisWay

_KIND = "__kind"
_DECODED_RECORDS = 20_000


@dataclass(frozen=True)
class LatestRows:
    """The rows of some partitions: at most one for each key (by its bytes) of a partition, in no order."""

    ends: Mapping[TopicPartition, int]
    """The offset after the records that were read of each."""
    read: ReadCounts
    """Of these records."""
    newest: Mapping[TopicPartition, int]
    """The newest value of the watermark column in each partition with such a row, in microseconds."""
    stream: bytes
    """An Arrow IPC stream: the table's columns and `__kind`, which is '+U' or '-D'."""
    superseded_stream: bytes | None
    """The same of all rows that are not the last ones, where they are asked for."""

    @classmethod
    def of(
        cls,
        parts: Sequence[tuple[RangePart, int]],
        newest: Mapping[TopicPartition, int],
        rows: pa.Table,
        superseded: pa.Table | None,
    ) -> LatestRows:
        """Of parts with the offsets after their records."""
        ends = {_name(part.range): end for part, end in parts}
        read = sum((part.read for part, _ in parts), ReadCounts())
        return cls(ends, read, newest, _stream(rows), None if superseded is None else _stream(superseded))

    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.stream).read_all()

    def superseded(self) -> pa.Table | None:
        """The rows of `superseded_stream`."""
        return (
            None if self.superseded_stream is None else pa.ipc.open_stream(self.superseded_stream).read_all()
        )


def _stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


@dataclass(frozen=True)
class LatestRowsTask:
    """Everything a task needs, as plain values."""

    settings: Mapping[str, Any]
    """librdkafka's; see `read_ranges`."""
    decoder: UpsertDecoder
    columns: tuple[str, ...]
    """The columns to return, in their order."""
    not_null: tuple[str, ...]
    """Columns that are declared NOT NULL."""
    watermark: str | None
    """The watermark column, a timestamp."""
    decodes_all: bool
    """Whether superseded values must be good, too, as an earlier record counts instead of a bad last one."""
    returns_all: bool
    """Whether superseded rows are returned, too."""
    timeout: float
    limit_bytes: int
    """Of the keys and values that are kept for all ranges of the task, which end where they are more."""

    def run(self, ranges: Iterable[Sequence[PartitionRange]]) -> Iterator[LatestRows | NotThisWay]:
        """Yield the rows of each range, and end by yielding NotThisWay where Spark's path may decode a record
        otherwise. Raises as `read_ranges` does."""
        for task_ranges in ranges:
            folds = [_Fold(self, each) for each in task_ranges]
            try:
                parts = [fold.part for fold in folds]
                ends = read_ranges(self.settings, parts, timeout=self.timeout, limit_bytes=self.limit_bytes)
                for some in _groups([*zip(folds, ends, strict=True)]):
                    yield self._rows(some)
            except NotThisWay as reason:
                yield reason
                return

    def _rows(self, folds: Sequence[tuple[_Fold, int]]) -> LatestRows:
        """What is left of each key, decoded at once. Raises NotThisWay where Spark's path may decode a record
        otherwise."""
        for fold, _ in folds:
            fold.part.pass_on()
        records = [[*fold.part.records.items()] for fold, _ in folds]
        upserted = [[(key, m) for key, m in some if m.value() is not None] for some in records]
        deleted = [key for some in records for key, m in some if m.value() is None]
        tables = [self.upserts([fold for fold, _ in folds], upserted)]
        if deleted:
            tables.append(self._table(self.decoder.keys(deleted), len(deleted), RowKind.DELETE))
        rows = pa.concat_tables(tables, promote_options="default").combine_chunks()
        newest = {_name(fold.part.range): max(fold.newest) for fold, _ in folds if fold.newest}
        superseded = [table for fold, _ in folds for table in fold.superseded]
        return LatestRows.of(
            [(fold.part, end) for fold, end in folds],
            newest,
            rows,
            pa.concat_tables([tables[0].slice(0, 0), *superseded]) if self.returns_all else None,
        )

    def upserts(
        self, folds: Sequence[_Fold], records: Sequence[Sequence[tuple[bytes | None, Message]]]
    ) -> pa.Table:
        """The rows of records of these folds. Raises NotThisWay, for nulls where a column is NOT NULL, too."""
        columns = self.values([message.value() for some in records for _, message in some])
        columns |= self.decoder.keys([key for some in records for key, _ in some])
        if metadata := self.decoder.metadata:
            found = [
                metadata_columns(metadata, fold.part.range, [message for _, message in some])
                for fold, some in zip(folds, records, strict=True)
            ]
            columns |= {name: pa.chunked_array([each[name] for each in found]) for name in metadata}
        self._refuse_nulls(columns)
        begin = 0
        for fold, some in zip(folds, records, strict=True):
            fold.note({name: column.slice(begin, len(some)) for name, column in columns.items()})
            begin += len(some)
        return self._table(columns, begin, RowKind.UPDATE_AFTER)

    def values(self, values: Sequence[bytes | None]) -> dict[str, pa.ChunkedArray]:
        """The columns of the values. Raises NotThisWay, for nulls where a column is NOT NULL, too."""
        columns = self.decoder.values(values)
        self._refuse_nulls(columns)
        return columns

    def _refuse_nulls(self, columns: Mapping[str, pa.ChunkedArray]) -> None:
        for name in self.not_null:
            if name in columns and name not in self.decoder.key_columns and columns[name].null_count:
                raise NotThisWay(f"column {name!r} is NOT NULL, and a record has no value for it")

    def _table(self, columns: Mapping[str, pa.ChunkedArray], rows: int, kind: RowKind) -> pa.Table:
        """The columns in their order, as far as there are, and the kind. `concat_tables` adds the others as nulls."""
        named = {name: columns[name] for name in self.columns if name in columns}
        return pa.table({**named, _KIND: pa.repeat(kind.value, rows)})


class _Fold:
    """What is kept of one range of an upsert topic."""

    def __init__(self, task: LatestRowsTask, range: PartitionRange) -> None:
        self._task = task
        self.newest: list[int] = []
        """Newest event times, in microseconds."""
        self.superseded: list[pa.Table] = []
        """Rows that are not the last ones, where the task returns them."""
        self.part = LatestValues(range, superseded=self._decode if task.decodes_all else None)

    def _decode(self, part: LatestValues, messages: Sequence[Message]) -> None:
        if not self._task.returns_all:
            self.note(self._task.values([message.value() for message in messages]))
            return
        self.superseded.append(self._task.upserts([self], [[(m.key(), m) for m in messages]]))
        part.superseded_bytes += self.superseded[-1].nbytes

    def note(self, columns: Mapping[str, pa.ChunkedArray]) -> None:
        """Note the newest event time of rows."""
        watermark = self._task.watermark
        if watermark is not None and watermark in columns:
            newest = pc.max(columns[watermark]).cast(pa.int64()).as_py()
            self.newest += [] if newest is None else [newest]


def _groups(folds: Sequence[tuple[_Fold, int]]) -> Iterator[list[tuple[_Fold, int]]]:
    """Folds whose records are decoded at once: one of many records alone, many of a few together, since to decode
    costs something for each call, too."""
    group: list[tuple[_Fold, int]] = []
    left = _DECODED_RECORDS
    for fold, end in folds:
        group.append((fold, end))
        left -= len(fold.part.records)
        if left <= 0:
            yield group
            group, left = [], _DECODED_RECORDS
    if group:
        yield group


def _name(range: PartitionRange) -> TopicPartition:
    return range.topic, range.partition


@dataclass(frozen=True)
class LatestChangesTask:
    """The same for a CDC topic, and for changes with a sequence: everything a task needs, as plain values."""

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
                    newest = {} if part.newest is None else {_name(part.range): part.newest}
                    yield LatestRows.of([(part, end)], newest, rows, part.superseded())
            except NotThisWay as reason:
                yield reason
                return
