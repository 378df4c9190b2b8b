"""changes of keys -timeline-> changes of the intervals of a history (`delta.history`), before the engines.

A history has a row for each interval in which a key had the same values. So one change of a key may end one row and
begin another, but it is at most one change for each key and start, which is what identifies a row. Engines merge these
as they merge changes of keys (docs/adr/078). The engine `driver` makes them itself (`driver_merge.timeline`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.backend import persist, unpersist
from bridge.columns import KIND, col, comparable, retracts, same_key
from bridge.delta import system_time
from bridge.delta.file_pruning import key_predicate
from bridge.delta.table import Table
from bridge.history_columns import History
from bridge.rows import RowKind

_AT, _TO, _ROW, _STORED, _BEFORE = "__at", "__to", "__row", "__stored", "__before"
_IS_NEW, _SETS, _EFFECTIVE, _CHANGES, _LEAST = "__new", "__sets", "__effective", "__changes", "__least"
_EVENT, _STARTS = "__event", "__starts"


@dataclass(frozen=True)
class Timeline:
    """All that is known to have happened to some keys: a row for each key and sequence, in no order."""

    table: Table
    """With `target.history`; `target.sequence_by` is one column."""
    key: tuple[str, ...]
    frame: DataFrame
    at: int | None = None
    """The system time of `changes` (`delta.history: bitemporal`)."""

    @classmethod
    def of(
        cls,
        table: Table,
        changes: DataFrame,
        key: Sequence[str],
        rows: DataFrame,
        deletions: DataFrame | None = None,
        at: int | None = None,
    ) -> Timeline:
        """The timeline of the keys of `changes`, which have one change for each key and sequence: of these, of `rows`
        of the table, and of `deletions` of rows that are not among them (the key and the sequence). Where it has system
        times, `rows` are those that it knows now, and what it learns is of the time `at`.

        What has the same sequence and key takes the place of what was before: a change that of a row or a deletion, and
        a row that of a deletion. So a batch may be applied again, and a deletion may be known before it is applied.
        """
        history, (sequence,) = _history(table), table.target.sequence_by
        keys, of_row = list(map(col, key)), table.change_fields
        row = F.struct(*(col(f.name) for f in of_row))
        new = F.when(~retracts(), row).alias(_ROW), F.lit(True).alias(_IS_NEW)
        found = [changes.select(*keys, col(sequence).alias(_AT), *new)]
        found.append(_starts_and_ends(rows, keys, history, F.struct(*map(col, table.columns))))
        if deletions is not None:
            found.append(deletions.select(*keys, col(sequence).alias(_AT)))
        union = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), found)
        frame = union.groupBy(*keys, _AT).agg(
            F.first(_ROW, ignorenulls=True).alias(_ROW),
            F.first(_STORED, ignorenulls=True).alias(_STORED),
            F.coalesce(F.bool_or(_IS_NEW), F.lit(False)).alias(_IS_NEW),
        )
        stored = col(_STORED)
        known = F.when(stored.isNotNull(), F.struct(*(stored.getField(f.name).alias(f.name) for f in of_row)))
        sets = ~_same(col(_ROW), known, of_row)
        frame = frame.withColumns({_ROW: F.when(col(_IS_NEW), col(_ROW)).otherwise(known), _SETS: sets})
        of_key = Window.partitionBy(*keys).orderBy(col(_AT).asc_nulls_first())
        end = F.struct(stored.getField(history.valid_to).alias(_TO))
        frame = frame.withColumns(
            {_TO: F.lead(_AT).over(of_key), _BEFORE: F.lag(F.when(_has_row(), end)).over(of_key)}
        )
        return cls(table, tuple(key), frame, at)._judged()

    @classmethod
    def of_batch(
        cls,
        table: Table,
        changes: DataFrame,
        key: Sequence[str],
        deletions: DataFrame | None = None,
    ) -> Timeline:
        """The same of the persisted `changes`, with the rows that the table has now. Rows that end before the first
        change of their key are left out, as they stay as they are."""
        history, (sequence,) = _history(table), table.target.sequence_by
        whole, at = table.delta().toDF().select(*map(col, table.columns)).alias("t"), None
        if history.system_to is not None:
            at = system_time.after(system_time.newest_of_rows(whole, history))
            whole = whole.where(col(history.system_to).isNull())
        predicate = key_predicate(changes, key, "t").condition
        whole = whole if predicate is None else whole.where(predicate)
        first = changes.groupBy(*map(col, key)).agg(F.min(col(sequence)).alias(_LEAST)).alias("c")
        ends = col(history.valid_to, "t")
        touched = same_key(key, "t", "c") & (ends.isNull() | (ends >= col(_LEAST, "c")))
        return cls.of(table, changes, key, whole.join(first, touched, "left_semi"), deletions, at)

    def persist(self) -> Timeline:
        """The same, persisted; `unpersist` ends that."""
        return replace(self, frame=persist(self.frame))

    def unpersist(self) -> None:
        unpersist(self.frame)

    def counts(self) -> tuple[int, int, int]:
        """How many rows `changes` sets, and how many changes of the batch delete and have no effect. Runs a job."""
        row = self.frame.agg(
            F.count_if(col(_CHANGES) & _has_row()),
            F.count_if(col(_IS_NEW) & ~_has_row()),
            F.count_if(col(_IS_NEW) & ~col(_EFFECTIVE)),
        ).first()
        assert row is not None
        return row[0], row[1], row[2]

    def changes(self) -> DataFrame:
        """The rows that are new, or end elsewhere, and the starts at which there is no row any more: the table's
        columns and `__kind`, at most one change for each `row_key` of the target. A deletion has only this key.

        Where the table has system times, a row that it had is no longer known, as it is, and a new one takes its place.
        """
        changed, system_to = self.frame.where(col(_CHANGES)), _history(self.table).system_to
        kind = F.when(_has_row(), RowKind.UPDATE_AFTER.value).otherwise(RowKind.DELETE.value)
        if system_to is None:
            return changed.select(*self._columns(), kind.alias(KIND))
        stored, known_to = col(_STORED), self._time().alias(system_to)
        former = [
            known_to if name == system_to else stored.getField(name).alias(name)
            for name in self.table.columns
        ]
        both = (
            F.when(stored.isNotNull(), F.struct(*former)),
            F.when(_has_row(), F.struct(*self._columns())),
        )
        rows = changed.select(F.explode(F.array_compact(F.array(*both))).alias(_ROW))
        columns = (col(_ROW).getField(name).alias(name) for name in self.table.columns)
        return rows.select(*columns, F.lit(RowKind.UPDATE_AFTER.value).alias(KIND))

    def rows(self) -> DataFrame:
        """The rows of the history, in the table's columns."""
        return self.frame.where(_has_row()).select(*self._columns())

    def _judged(self) -> Timeline:
        """Say which starts differ from the table, and which changes of the batch have an effect: a row that the table
        does not have at this start, a row there that is deleted, or one before it that ends elsewhere or not at all."""
        stored, before = col(_STORED), col(_BEFORE)
        fields = [f for f in self.table.fields if f.name not in _history(self.table).system_columns]
        columns = dict(zip(self.table.columns, self._columns(), strict=True))
        whole = F.when(_has_row(), F.struct(*(columns[f.name] for f in fields)))
        known = F.when(stored.isNotNull(), F.struct(*(stored.getField(f.name).alias(f.name) for f in fields)))
        ends_another = before.isNotNull() & ~before.getField(_TO).eqNullSafe(col(_AT))
        frame = self.frame.withColumns(
            {
                _CHANGES: ~_same(whole, known, fields),
                _EFFECTIVE: F.when(_has_row(), col(_SETS)).otherwise(stored.isNotNull() | ends_another),
            }
        )
        return replace(self, frame=frame)

    def _columns(self) -> list[Column]:
        """The table's columns of a row; where there is none, those of its key."""
        history = _history(self.table)
        values = {
            **{f.name: col(_ROW).getField(f.name) for f in self.table.change_fields},
            **{name: col(name) for name in self.key},
            history.valid_from: col(_AT),
            history.valid_to: F.when(_has_row(), col(_TO)),
            history.current: F.when(_has_row(), col(_TO).isNull()),
        }
        system = dict(
            zip(history.system_columns, (self._time(), F.lit(None).cast("timestamp")), strict=False)
        )
        return [(values | system)[name].alias(name) for name in self.table.columns]

    def _time(self) -> Column:
        return F.timestamp_micros(F.lit(self.at).cast("bigint"))


def history_fields(fields: Sequence[T.StructField], history: History, sequence: str) -> list[T.StructField]:
    """The columns that a history has beside `fields`, those of the DDL, of which `sequence` orders the changes."""
    type = next(f.dataType for f in fields if f.name == sequence)
    types = (type, type, T.BooleanType(), T.TimestampType(), T.TimestampType())
    return [T.StructField(name, type) for name, type in zip(history.columns, types, strict=False)]


def _starts_and_ends(rows: DataFrame, keys: Sequence[Column], history: History, row: Column) -> DataFrame:
    """What happened at the start of each row, with the row, and at its end: a deletion, if no row starts there."""
    start = F.struct(col(history.valid_from).alias(_AT), F.lit(True).alias(_STARTS))
    end = F.struct(col(history.valid_to).alias(_AT), F.lit(False).alias(_STARTS))
    both = rows.select(*keys, row.alias(_STORED), F.explode(F.array(start, end)).alias(_EVENT))
    at, starts = (col(_EVENT).getField(name) for name in (_AT, _STARTS))
    stored = F.when(starts, col(_STORED)).alias(_STORED)
    return both.where(starts | at.isNotNull()).select(*keys, at.alias(_AT), stored)


def _history(table: Table) -> History:
    assert table.target.history is not None
    return table.target.history


def _has_row() -> Column:
    return col(_ROW).isNotNull()


def _same(one: Column, other: Column, fields: Sequence[T.StructField]) -> Column:
    type = T.StructType(list(fields))
    return comparable(one, type).eqNullSafe(comparable(other, type))
