"""Decodes some records of a range at once, with Arrow: those of an upsert topic, or of a CDC topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from bridge.arrow_formats.base import ArrowChanges, ArrowDecoder, ChangeArrowDecoder, check_keys
from bridge.kafka.range_parts import CHUNK_BYTES, PartitionRange
from bridge.kafka.record_metadata import metadata_columns
from bridge.ways import NotThisWay


class RecordDecoder(Protocol):
    """Makes changes of records. It is sent to Python workers, so it is a plain value."""

    def changes(self, range: PartitionRange, messages: Sequence[Message]) -> ArrowChanges:
        """Return the changes of records of the range, in their order; retractions have the columns of the key and of
        the sequence. Raises NotThisWay where Spark's path may decode one otherwise."""
        ...


@dataclass(frozen=True)
class EventDecoder:
    """Of a CDC topic, see RecordDecoder."""

    decoder: ChangeArrowDecoder
    """Of the values, whose fields have the names of their columns; of before images it reads the sequence, too."""
    key: ArrowDecoder | None
    """Of the records' keys, which must be good, and from which no column is taken; None for keys that are not read."""

    def changes(self, range: PartitionRange, messages: Sequence[Message]) -> ArrowChanges:
        """See RecordDecoder.changes."""
        if self.key is not None:
            keys = {key for message in messages if (key := message.key()) is not None}
            if keys:
                self.key.decode(pa.array(list(keys), pa.binary()))
        return self.decoder.decode(pa.array([message.value() for message in messages], pa.binary()))


@dataclass(frozen=True)
class UpsertDecoder:
    """Of an upsert topic, see RecordDecoder."""

    key: ArrowDecoder
    value: ArrowDecoder
    key_columns: tuple[str, ...]
    """The columns of the key decoder's rows, in their order. They are those of the key document, as in docs/adr/002."""
    value_columns: tuple[str, ...]
    """The columns of the value decoder's rows, in their order."""
    metadata: Mapping[str, str]
    """The keys of METADATA columns by the columns' names."""
    sequence: tuple[str, ...] = ()
    """The columns that order changes; a tombstone has none but those of metadata."""

    def changes(self, range: PartitionRange, messages: Sequence[Message]) -> ArrowChanges:
        """See RecordDecoder.changes."""
        is_tombstone = np.fromiter((message.value() is None for message in messages), np.bool_, len(messages))
        upserts = [message for message in messages if message.value() is not None]
        tombstones = [message for message in messages if message.value() is None]
        if tombstones and (missing := [name for name in self.sequence if name not in self.metadata]):
            raise NotThisWay(f"a tombstone has no value of column {missing[0]!r}, which orders changes")
        columns = self.values([message.value() for message in upserts])
        columns |= self.keys([message.key() for message in upserts])
        columns |= metadata_columns(self.metadata, range, upserts)
        gone: dict[str, pa.ChunkedArray] = self.keys([message.key() for message in tombstones])
        of_record = {name: self.metadata[name] for name in self.sequence if name in self.metadata}
        gone |= metadata_columns(of_record, range, tombstones)
        if not tombstones:
            gone |= {name: columns[name].slice(0, 0) for name in self.sequence}
        return ArrowChanges(
            pa.table(columns),
            np.flatnonzero(~is_tombstone),
            pa.table(gone),
            np.flatnonzero(is_tombstone),
            np.ones(len(tombstones), np.bool_),
        )

    def keys(self, keys: Sequence[bytes | None]) -> dict[str, pa.ChunkedArray]:
        """Return the columns of the keys. Raises NotThisWay."""
        if None in keys:
            raise NotThisWay("a key is null")
        decoded = self.key.decode(pa.array(keys, pa.binary()))
        columns = dict(zip(self.key_columns, decoded.columns, strict=True))
        check_keys(columns)
        return columns

    def values(self, values: Sequence[bytes | None]) -> dict[str, pa.ChunkedArray]:
        """Return the columns of the values. Raises NotThisWay."""
        decoded = _decoded(self.value, values)
        return dict(zip(self.value_columns, decoded.columns, strict=True))


def _decoded(decoder: ArrowDecoder, payloads: Sequence[bytes | None]) -> pa.Table:
    """The rows of the payloads, decoded some at a time: a decoder copies what it is given several times."""
    times = 1 + sum(len(payload or b"") for payload in payloads) // CHUNK_BYTES
    step = 1 + len(payloads) // times
    parts = [payloads[at : at + step] for at in range(0, len(payloads), step)] or [payloads]
    return pa.concat_tables([decoder.decode(pa.array(part, pa.binary())) for part in parts])
