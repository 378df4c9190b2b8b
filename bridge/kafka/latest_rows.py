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

from bridge.arrow_formats.base import ArrowDecoder, check_keys
from bridge.kafka.folded_changes import ChangeReading, FoldedChanges
from bridge.kafka.range_consumer import read_latest, read_ranges
from bridge.kafka.range_parts import LatestValues, PartitionRange
from bridge.kafka.read_counts import ReadCounts
from bridge.rows import RowKind
from bridge.ways import NotThisWay

__all__ = ["LatestChangesTask", "LatestRows", "LatestRowsTask"]

_KIND = "__kind"


@dataclass(frozen=True)
class LatestRows:
    """The rows of one partition: at most one for each key (by its bytes), in no order."""

    topic: str
    partition: int
    read: ReadCounts
    """Of the records in the range."""
    newest: int | None
    """The newest value of the watermark column in a change, in microseconds; None without one."""
    stream: bytes
    """An Arrow IPC stream: the table's columns and `__kind`, which is '+U' or '-D'."""

    @classmethod
    def of(cls, range: PartitionRange, read: ReadCounts, newest: int | None, rows: pa.Table) -> LatestRows:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return cls(range.topic, range.partition, read, newest, sink.getvalue().to_pybytes())

    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.stream).read_all()


@dataclass(frozen=True)
class LatestRowsTask:
    """Everything a task needs, as plain values."""

    settings: Mapping[str, Any]
    """librdkafka's; see `read_latest`."""
    key: ArrowDecoder
    value: ArrowDecoder
    key_columns: tuple[str, ...]
    """The columns of the key decoder's rows, in their order."""
    value_columns: tuple[str, ...]
    """The columns of the value decoder's rows, in their order."""
    columns: tuple[str, ...]
    """The columns to return, in their order: those of the key from the key document, as in docs/adr/002."""
    not_null: tuple[str, ...]
    """Columns that are declared NOT NULL."""
    watermark: str | None
    """The watermark column, a timestamp."""
    timeout: float
    limit_bytes: int
    """For all ranges of the task."""

    def run(self, ranges: Iterable[Sequence[PartitionRange]]) -> Iterator[LatestRows | NotThisWay]:
        """Yield the rows of each range, and end by yielding NotThisWay where Spark's path may decode a record
        otherwise, or the records are too large. Raises as `read_latest` does."""
        for task_ranges in ranges:
            parts = read_latest(
                self.settings, task_ranges, timeout=self.timeout, limit_bytes=self.limit_bytes
            )
            if parts is None:
                yield _too_large("the keys and values", self.limit_bytes)
                return
            try:
                for part in parts:
                    yield self._rows(part)
            except NotThisWay as reason:
                yield reason
                return

    def _rows(self, part: LatestValues) -> LatestRows:
        upserted = [(k, v) for k, v in part.values.items() if v is not None]
        deleted = [k for k, v in part.values.items() if v is None]
        upserts = self._upserts([k for k, _ in upserted], [v for _, v in upserted])
        newest = None if self.watermark is None else pc.max(upserts[self.watermark]).cast(pa.int64()).as_py()
        tables = [upserts]
        if deleted:
            tables.append(self._table(self._keys(deleted), len(deleted), RowKind.DELETE))
        rows = pa.concat_tables(tables, promote_options="default").combine_chunks()
        return LatestRows.of(part.range, part.read, newest, rows)

    def _keys(self, keys: Sequence[bytes | None]) -> dict[str, pa.ChunkedArray]:
        if None in keys:
            raise NotThisWay("a key is null")
        decoded = self.key.decode(pa.array(keys, pa.binary()))
        columns = dict(zip(self.key_columns, decoded.columns, strict=True))
        check_keys(columns)
        return columns

    def _upserts(self, keys: Sequence[bytes | None], values: Sequence[bytes]) -> pa.Table:
        decoded = self.value.decode(pa.array(values, pa.binary()))
        columns = dict(zip(self.value_columns, decoded.columns, strict=True)) | self._keys(keys)
        for name in self.not_null:
            if columns[name].null_count:
                raise NotThisWay(f"column {name!r} is NOT NULL, and a record has no value for it")
        return self._table(columns, len(keys), RowKind.UPDATE_AFTER)

    def _table(self, columns: Mapping[str, pa.ChunkedArray], rows: int, kind: RowKind) -> pa.Table:
        """The columns in their order, as far as there are, and the kind. `concat_tables` adds the others as nulls."""
        named = {name: columns[name] for name in self.columns if name in columns}
        return pa.table({**named, _KIND: pa.repeat(kind.value, rows)})


@dataclass(frozen=True)
class LatestChangesTask:
    """The same for a CDC topic: everything a task needs, as plain values."""

    settings: Mapping[str, Any]
    """librdkafka's; see `read_ranges`."""
    reading: ChangeReading
    timeout: float
    limit_bytes: int
    """For all ranges of the task."""

    def run(self, ranges: Iterable[Sequence[PartitionRange]]) -> Iterator[LatestRows | NotThisWay]:
        """See LatestRowsTask.run."""
        for task_ranges in ranges:
            parts = [FoldedChanges(r, self.reading) for r in task_ranges]
            try:
                if not read_ranges(self.settings, parts, timeout=self.timeout, limit_bytes=self.limit_bytes):
                    yield _too_large("the changes", self.limit_bytes)
                    return
                for part in parts:
                    rows = part.table()
                    yield LatestRows.of(part.range, part.read, part.newest, rows)
            except NotThisWay as reason:
                yield reason
                return


def _too_large(what: str, limit_bytes: int) -> NotThisWay:
    return NotThisWay(f"{what} take more than {limit_bytes >> 20:,} MiB a task")
