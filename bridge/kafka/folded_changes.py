"""The last change of each key among the records of a range, decoded and folded while they are read: by their places, or
by a sequence first, or column by column.

A batch is decoded whole, since only documents tell the keys of a CDC topic, or a sequence, and since Spark's path
refuses a bad document whether it is superseded or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message

from bridge.arrow_formats.base import ArrowChanges, Places
from bridge.kafka.partial_updates import PartialUpdates
from bridge.kafka.range_parts import CHUNK_BYTES, CHUNK_RECORDS, Added, PartitionRange
from bridge.kafka.read_counts import ReadCounts
from bridge.kafka.record_decoders import RecordDecoder
from bridge.rows import RowKind
from bridge.ways import NotThisWay

_KIND, _PLACE, _ORDER = "__kind", "__place", "__order"

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ChangeReading:
    """How records are read, as plain values."""

    decoder: RecordDecoder
    key: tuple[str, ...]
    """The table's key."""
    sequence: tuple[str, ...]
    """The columns that order changes before their places do."""
    not_null: tuple[str, ...]
    """Columns that are declared NOT NULL."""
    watermark: str | None = None
    """The watermark column, a timestamp."""
    returns_all: bool = False
    """Whether superseded rows are returned, too."""
    is_history: bool = False
    """Whether the last change of each key and sequence is kept, and not of each key alone."""
    partial: PartialUpdates | None = None
    """Which columns a change sets; None: all of them. There is no sequence then, and no superseded row is returned."""

    @property
    def fold(self) -> tuple[list[str], list[str]]:
        """The columns of which one change each is kept, and those that order these changes before their places do."""
        key, sequence = list(self.key), list(self.sequence)
        return ([*key, *sequence], []) if self.is_history else (key, sequence)


@dataclass
class FoldedChanges:
    """A RangePart: the last change of each key. Adding raises NotThisWay as the decoders do, for every record."""

    range: PartitionRange
    reading: ChangeReading
    read: ReadCounts = field(default_factory=ReadCounts)
    newest: int | None = None
    """The newest value of the watermark column in a change so far, superseded ones included, in microseconds."""
    _records: list[Message] = field(default_factory=list)
    """Those that are not decoded yet."""
    _bytes: int = 0
    """Of their keys and values."""
    _tables: list[pa.Table] = field(default_factory=list)
    """In order: the table's columns, `__kind` and `__place`."""
    _all: list[pa.Table] = field(default_factory=list)
    """Rows that were set, superseded ones included, where they are returned; the same columns."""
    _next_place: int = 0

    def add(self, messages: Sequence[Message]) -> Added:
        """See RangePart.add."""
        size = sum(len(message.value() or b"") + len(message.key() or b"") for message in messages)
        self._records.extend(messages)
        self._bytes += size
        grown = 0
        if len(self._records) >= CHUNK_RECORDS or self._bytes >= CHUNK_BYTES:
            grown = self._decode()
        return Added(size, size + grown)

    def size(self) -> int:
        """See RangePart.size."""
        return int(self._folded().nbytes) + sum(int(table.nbytes) for table in self._all)

    def table(self) -> pa.Table:
        """Return the last change of each key, in no order: the table's columns, and `__kind`, '+U' or '-D'.

        A retraction has values in the columns of the key and the sequence only.
        """
        return self._folded().drop_columns([_PLACE])

    def superseded(self) -> pa.Table | None:
        """Return the rows that were set and are not in `table`, with its columns; None where they are not asked for."""
        if not self.reading.returns_all:
            return None
        last, rows = self._folded(), pa.concat_tables(self._all)
        left = np.isin(rows[_PLACE].to_numpy(), last[_PLACE].to_numpy(), invert=True)
        return rows.filter(pa.array(left)).drop_columns([_PLACE])

    def _folded(self) -> pa.Table:
        self._decode()
        if len(self._tables) > 1:
            self._tables = [_folded(pa.concat_tables(self._tables), self.reading)]
        return self._tables[0]

    def _decode(self) -> int:
        """Decode and fold the records that are not decoded yet; returns how many bytes more are kept then."""
        if not self._records and self._tables:
            return 0
        reading = self.reading
        changes = self._checked(reading.decoder.changes(self.range, self._records))
        table = _fold(changes, reading, self._next_place)
        grown = int(table.nbytes) - self._bytes
        if reading.returns_all:
            places = changes.addition_places + self._next_place
            self._all.append(_placed(changes.additions, RowKind.UPDATE_AFTER, places))
            grown += int(self._all[-1].nbytes)
        self._next_place += 1 + max(
            (int(p[-1]) for p in (changes.addition_places, changes.retraction_places) if len(p)), default=0
        )
        self._tables.append(table)
        self._records, self._bytes = [], 0
        return grown

    def _checked(self, changes: ArrowChanges) -> ArrowChanges:
        """Return the changes without before images of no key or, where each change counts, of the key of their after
        image. Raises NotThisWay for a change that is bad."""
        rows, key, partial = changes.additions, self.reading.key, self.reading.partial
        for name in self.reading.not_null:
            if rows[name].null_count:
                raise NotThisWay(f"column {name!r} is NOT NULL, and a record has no value for it")
        if partial is not None:
            rows = partial.marked(rows)
        keyless = _has_no_key(changes.retractions, key)
        if _has_no_key(rows, key).any() or (keyless & changes.is_delete).any():
            raise NotThisWay("a change has no column of the PRIMARY KEY")
        counts_each = self.reading.sequence or partial is not None
        kept = ~(keyless | _are_paired(changes, key) if counts_each else keyless)
        changes = ArrowChanges(
            rows,
            changes.addition_places,
            changes.retractions if kept.all() else changes.retractions.filter(pa.array(kept)),
            changes.retraction_places[kept],
            changes.is_delete[kept],
        )
        for name in self.reading.sequence:
            if rows[name].null_count or changes.retractions[name].null_count:
                raise NotThisWay(f"a change has no value of column {name!r}, which orders changes")
        self._note_event_times(changes)
        return changes

    def _note_event_times(self, changes: ArrowChanges) -> None:
        name = self.reading.watermark
        for table in (changes.additions, changes.retractions):
            if name is not None and name in table.column_names:
                value = pc.max(table[name])
                if value.is_valid:
                    found: int = value.cast(pa.int64()).as_py()
                    self.newest = found if self.newest is None else max(self.newest, found)


def _has_no_key(table: pa.Table, key: Sequence[str]) -> _Flags:
    """Return for each row whether all columns of its key are null."""
    missing = np.ones(table.num_rows, np.bool_)
    for name in key:
        if not table[name].null_count:
            return np.zeros(table.num_rows, np.bool_)
        missing &= table[name].is_null().to_numpy()
    return missing


def _are_paired(changes: ArrowChanges, key: Sequence[str]) -> _Flags:
    """Return for each retraction whether it is the before image of an addition with the same key."""
    paired = ~changes.is_delete
    at = np.searchsorted(changes.addition_places, changes.retraction_places + 1)
    paired[at == len(changes.addition_places)] = False
    paired[paired] = changes.addition_places[at[paired]] == changes.retraction_places[paired] + 1
    chosen, others = pa.array(np.flatnonzero(paired)), pa.array(at[paired])
    same = np.ones(len(chosen), np.bool_)
    for name in key:
        one, other = changes.retractions[name].take(chosen), changes.additions[name].take(others)
        equal = pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null()))
        same &= equal.to_numpy()
    paired[paired] = same
    return paired


def _fold(changes: ArrowChanges, reading: ChangeReading, first_place: int) -> pa.Table:
    sides = (
        _placed(changes.additions, RowKind.UPDATE_AFTER, changes.addition_places + first_place),
        _placed(changes.retractions, RowKind.DELETE, changes.retraction_places + first_place),
    )
    return _folded(pa.concat_tables(sides, promote_options="default"), reading)


def _folded(table: pa.Table, reading: ChangeReading) -> pa.Table:
    """What is left of changes with their places: of each key one that does what all of them do."""
    places = table[_PLACE].to_numpy()
    if reading.partial is not None:
        retracts = pc.equal(table[_KIND], RowKind.DELETE.value).to_numpy()
        return reading.partial.folded(table.combine_chunks(), reading.key, places, retracts)
    last = _last_places(table, places, reading)
    # Superseded rows are left out first, so that only the others are copied.
    kept = table if len(last) == len(places) else table.filter(pa.array(np.isin(places, last)))
    return kept.combine_chunks()


def _placed(rows: pa.Table, kind: RowKind, places: Places) -> pa.Table:
    with_kind = rows.append_column(_KIND, pa.repeat(kind.value, rows.num_rows))
    return with_kind.append_column(_PLACE, pa.array(places, pa.int64()))


def _last_places(rows: pa.Table, places: Places, reading: ChangeReading) -> Places:
    """Return the place of the last change of each key, by the sequence and then the place, or in a history of each key
    and sequence; null is a value of a key like any other."""
    key, sequence = reading.fold
    placed = rows.select([*key, *sequence])
    placed = placed.append_column(_PLACE, pa.array(places, pa.int64()))
    if not sequence:
        return _greatest(placed, key, _PLACE)
    in_order = pc.sort_indices(placed, sort_keys=[(name, "ascending") for name in (*sequence, _PLACE)])
    ordered = placed.select([*key, _PLACE]).take(in_order)
    ordered = ordered.append_column(_ORDER, pa.array(np.arange(ordered.num_rows)))
    found: Places = ordered[_PLACE].to_numpy()[_greatest(ordered, key, _ORDER)]
    return found


def _greatest(rows: pa.Table, key: list[str], name: str) -> Places:
    grouped = rows.group_by(key, use_threads=False).aggregate([(name, "max")])
    greatest: Places = grouped[f"{name}_max"].to_numpy()
    return greatest
