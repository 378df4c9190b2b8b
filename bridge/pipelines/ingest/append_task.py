"""The Spark tasks of a batch that is appended: they read ranges of a topic, decode the records and write data files.

The files belong to no version of the table until the driver commits them, as those of Spark's own writers. Files that
are never committed (a task that is repeated, a run that is killed) are removed by VACUUM.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message

from bridge.arrow_formats.base import ArrowDecoder, check_keys
from bridge.kafka.range_consumer import read_ranges
from bridge.kafka.range_parts import Added, PartitionRange
from bridge.kafka.read_counts import ReadCounts
from bridge.kafka.record_metadata import metadata_columns
from bridge.lake.new_files import delete_data_files, write_data_file
from bridge.lake.store import Store
from bridge.offsets import TopicPartition
from bridge.ways import NotThisWay

_CHUNK_BYTES = 8 << 20
"""The records of so many bytes are decoded at once, if they are fewer than `chunk_records`."""
_NO_LIMIT = sys.maxsize


@dataclass(frozen=True)
class AppendedFiles:
    """What one task has written."""

    adds: tuple[dict[str, Any], ...]
    """The `add` actions of the files."""
    rows: int
    read: ReadCounts
    newest_event_ms: dict[TopicPartition, int]
    """The newest value of the watermark column in each partition with one, in epoch milliseconds."""


@dataclass(frozen=True)
class AppendTask:
    """Everything a task needs, as plain values. See `latest_rows.LatestRowsTask` for fields of the same names."""

    settings: Mapping[str, Any]
    value: ArrowDecoder
    value_columns: tuple[str, ...]
    key: ArrowDecoder | None
    key_columns: tuple[str, ...]
    metadata: Mapping[str, str]
    """The keys of METADATA columns by the columns' names."""
    not_null: tuple[str, ...]
    watermark: str | None
    schema: pa.Schema
    """All columns of the table, also those that the topic does not have: they are null."""
    store: Store
    """Of the table; a local one is on a disk that the driver and all executors see."""
    columns_with_statistics: int
    timeout: float
    null_is_row: bool = False
    """Whether a null value is a row without values; else the record has no row."""
    chunk_records: int = 20_000
    """So many records are decoded at once."""
    file_bytes: int = 128 << 20
    """Of rows in Arrow, from which on a file is written: what a task has in memory."""

    def run(self, ranges: Iterable[Sequence[PartitionRange]]) -> Iterator[AppendedFiles | NotThisWay]:
        """Yield what was written for the ranges of each element; end by yielding NotThisWay, with no file of theirs
        left, where Spark's path may decode a record otherwise. Raises as `read_ranges` does."""
        for task_ranges in ranges:
            files = _Files(self)
            parts = [_Rows(each, self, files) for each in task_ranges]
            try:
                read_ranges(self.settings, parts, timeout=self.timeout, limit_bytes=_NO_LIMIT)
                for part in parts:
                    part.decode()
            except NotThisWay as reason:
                files.remove()
                yield reason
                return
            files.write()
            yield AppendedFiles(
                tuple(files.adds),
                files.rows,
                ReadCounts.sum(part.read for part in parts),
                {(p.range.topic, p.range.partition): p.newest // 1000 for p in parts if p.newest is not None},
            )


@dataclass
class _Files:
    """Collects rows and writes them into data files."""

    task: AppendTask
    adds: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0
    _tables: list[pa.Table] = field(default_factory=list)
    _bytes: int = 0

    def add(self, rows: pa.Table) -> None:
        self._tables.append(rows)
        self._bytes += int(rows.nbytes)
        self.rows += rows.num_rows
        if self._bytes >= self.task.file_bytes:
            self.write()

    def write(self) -> None:
        rows = pa.concat_tables(self._tables) if self._tables else None
        if rows is not None and rows.num_rows:
            self.adds.append(write_data_file(self.task.store, rows, self.task.columns_with_statistics))
        self._tables, self._bytes = [], 0

    def remove(self) -> None:
        """Delete the files that were written."""
        delete_data_files(self.task.store, self.adds)
        self.adds = []


@dataclass
class _Rows:
    """A RangePart whose records become rows as they come. Adding raises NotThisWay as the decoders do."""

    range: PartitionRange
    task: AppendTask
    files: _Files
    read: ReadCounts = field(default_factory=ReadCounts)
    newest: int | None = None
    """The newest value of the watermark column so far, in microseconds."""
    _messages: list[Message] = field(default_factory=list)
    _bytes: int = 0

    def add(self, messages: Sequence[Message]) -> Added:
        """See RangePart.add. What is decoded counts as kept no more: `_Files` limits it."""
        before = self._bytes
        self._messages += messages
        size = sum(len(m.value() or b"") + len(m.key() or b"") for m in messages)
        self._bytes += size
        if len(self._messages) >= self.task.chunk_records or self._bytes >= _CHUNK_BYTES:
            self.decode()
        return Added(size, self._bytes - before)

    def size(self) -> int:
        """See RangePart.size."""
        return self._bytes

    def decode(self) -> None:
        """Decode the records that are not decoded yet."""
        messages, self._messages, self._bytes = self._messages, [], 0
        if not messages:
            return
        given_keys = [message.key() for message in messages]
        needed = set(self.task.key_columns) - set(self.task.value_columns)
        keys = _decoded(self.task.key, self.task.key_columns, given_keys, needed)
        values = [message.value() for message in messages]
        has_row = np.fromiter((value is not None for value in values), np.bool_, len(values))
        if not (has_row.all() or self.task.null_is_row):
            kept = pa.array(has_row)
            keys = {name: column.filter(kept) for name, column in keys.items()}
            messages = [m for m, is_kept in zip(messages, has_row.tolist(), strict=True) if is_kept]
            values = [value for value in values if value is not None]
        columns = keys | _decoded(self.task.value, self.task.value_columns, values)
        columns |= metadata_columns(self.task.metadata, self.range, messages)
        for name in self.task.not_null:
            if columns[name].null_count:
                raise NotThisWay(f"column {name!r} is NOT NULL, and a record has no value for it")
        self._note_event_time(columns)
        self.files.add(_typed(columns, self.task.schema, len(values)))

    def _note_event_time(self, columns: Mapping[str, pa.ChunkedArray]) -> None:
        if self.task.watermark is not None:
            newest = pc.max(columns[self.task.watermark]).cast(pa.int64()).as_py()
            if newest is not None:
                self.newest = newest if self.newest is None else max(self.newest, newest)


def _decoded(
    decoder: ArrowDecoder | None,
    columns: Sequence[str],
    payloads: Sequence[bytes | None],
    key: Collection[str] = (),
) -> dict[str, pa.ChunkedArray]:
    """The columns of documents; null where a payload is. Raises NotThisWay for one without values in `key`."""
    if decoder is None:
        return {}
    given = pa.array(payloads, pa.binary())
    decoded = decoder.decode(given.drop_null() if given.null_count else given)
    check_keys({name: values for name, values in zip(columns, decoded.columns, strict=True) if name in key})
    if given.null_count:
        is_valid = given.is_valid().to_numpy(zero_copy_only=False)
        decoded = decoded.take(pa.array(np.cumsum(is_valid) - 1, mask=~is_valid))
    return dict(zip(columns, decoded.columns, strict=True))


def _typed(columns: Mapping[str, pa.ChunkedArray], schema: pa.Schema, rows: int) -> pa.Table:
    """The columns of `schema`, in its types."""
    found = {
        f.name: columns[f.name].cast(f.type) if f.name in columns else pa.nulls(rows, f.type) for f in schema
    }
    return pa.table(found, schema=schema)
