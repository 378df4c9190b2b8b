"""records -> changes, decoded and compacted in the order that connector and `bad-records` ask for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge import compact
from bridge.columns import BAD, KIND, col
from bridge.decode import BAD_KEY_ID, DROPPED, SKIP, UNAVAILABLE, decode_events, decode_keys, decode_values
from bridge.definition import BadRecords, Definition
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.pipelines.changes import row_gate, unavailable_values

__all__ = [
    "Persist",
    "any_row",
    "compacts_first",
    "decode",
    "decode_with_fallback",
    "fill_unavailable",
    "fold",
    "is_good",
    "persist_within",
    "resolve_unavailable",
]

Persist = Callable[[DataFrame], DataFrame]
"""Persists a frame for as long as it is used, and gives it back."""


def persist_within(stack: ExitStack) -> Persist:
    """Frames are let go with `stack`."""

    def held(frame: DataFrame) -> DataFrame:
        stack.callback(frame.unpersist)
        return frame.persist()

    return held


def compacts_first(definition: Definition) -> bool:
    """True where only the last record of a key need be decoded: the record's key names the row, and under
    `bad-records: fail` no bad record may be in the fold anyway. Where a gate puts rows aside the one before counts."""
    fails = definition.bad_records is BadRecords.FAIL
    return definition.topic.is_upsert and fails and not definition.quarantines_rows


def is_good() -> Column:
    """True for rows that change the table."""
    return col(BAD).isNull() & ~col(KIND).isin(SKIP, DROPPED)


def decode(records: DataFrame, definition: Definition, *, fast: bool = False) -> DataFrame:
    """Changes with `__bad`, as the module `decode` and the gate give them; nothing bad is dropped.

    Where `compacts_first`: one row per key, the last one, and superseded values are never looked at. Otherwise all.
    With `fast` a record may be DOUBTFUL instead: then the frame is good for nothing but to be made again without.
    """
    if not definition.topic.is_upsert:
        return row_gate.divert_unexpected(decode_events(records, definition.topic, fast=fast), definition)
    keyed = decode_keys(records, definition.topic, fast=fast)
    if compacts_first(definition):
        keyed = compact.latest_by_offset(keyed, [*definition.primary_key, BAD_KEY_ID])
    return row_gate.divert_unexpected(decode_values(keyed, definition.topic, fast=fast), definition)


def fill_unavailable(changes: DataFrame, table: DataFrame, definition: Definition) -> DataFrame:
    """keep.filled of `decoded` changes, for all columns that are told; what was filled in the gate judges now."""
    key = definition.primary_key
    told = [c.name for c in definition.topic.schema.physical if c.name not in key]
    return row_gate.divert_unexpected(
        unavailable_values.fill_unavailable_values(changes, table, key=key, columns=told), definition
    )


def decode_with_fallback(records: DataFrame, definition: Definition, held: Persist) -> DataFrame:
    """`decoded` records, at a glance where that will do; `held` keeps a frame for as long as it is used."""
    changes = held(decode(records, definition, fast=True))
    if any_row(changes, col(BAD) == NEEDS_FULL_DECODE):
        return held(decode(records, definition))
    return changes


def fold(changes: DataFrame, definition: Definition) -> DataFrame:
    """The good ones among `decoded` changes: the last one per key, or all of a table without a key."""
    good = changes.where(is_good())
    if definition.topic.appends or compacts_first(definition):
        return good
    return compact.latest_by_offset(good, list(definition.primary_key))


def resolve_unavailable(
    changes: DataFrame,
    definition: Definition,
    held: Persist,
    table: DataFrame | None = None,
) -> DataFrame:
    """`settled` changes of topics from their beginning, with a value for every column that an update leaves out: the
    key's own earlier one, else that of its row in `table`. Where neither tells it, the change is bad and says so."""
    if UNAVAILABLE not in changes.columns or not any_row(changes, F.size(UNAVAILABLE) > 0):
        return changes
    rows = changes.limit(0) if table is None else table
    present = rows.select(*[col(c.name) for c in definition.topic.schema.physical])
    return held(fill_unavailable(changes, present, definition))


def any_row(frame: DataFrame, condition: Column) -> bool:
    """Whether it holds for a row. Spark's isEmpty would look at one partition, then at four, ... as there is none."""
    row = frame.agg(F.bool_or(condition)).first()
    return row is not None and bool(row[0])
