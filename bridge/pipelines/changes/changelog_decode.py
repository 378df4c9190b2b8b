"""records -> changes: decodes, and compacts first where the connector and `bad-records` allow it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge import compact
from bridge.columns import BAD, KIND, col
from bridge.decode import BAD_KEY_ID, DROPPED, SKIP, UNAVAILABLE, decode_events, decode_keys, decode_values
from bridge.definition import Definition
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.pipelines.changes import row_gate, unavailable_values, unfit_rows

__all__ = [
    "Persist",
    "any_row",
    "decode",
    "decode_with_fallback",
    "fill_unavailable",
    "fold",
    "is_good",
    "persist_within",
    "resolve_unavailable",
]

Persist = Callable[[DataFrame], DataFrame]
"""Persists a frame for as long as it is used, and returns it."""


def persist_within(stack: ExitStack) -> Persist:
    """Return a function that persists frames until `stack` closes."""

    def persist(frame: DataFrame) -> DataFrame:
        stack.callback(frame.unpersist)
        return frame.persist()

    return persist


def is_good() -> Column:
    """True for changes that are applied to the table."""
    return col(BAD).isNull() & ~col(KIND).isin(SKIP, DROPPED)


def decode(records: DataFrame, definition: Definition, *, fast: bool = False) -> DataFrame:
    """Decode records into changes with `__bad`; drops no bad record. Rows that the table does not accept are bad, and
    rows that break the gate are diverted.

    Returns one change per key, the last one, where `definition.compacts_first`; otherwise all changes. With `fast`,
    `__bad` may be NEEDS_FULL_DECODE: the frame is then incomplete, and must be decoded again without `fast`.
    """
    if not definition.topic.is_upsert:
        return _judged(decode_events(records, definition.topic, fast=fast), definition)
    keyed = decode_keys(records, definition.topic, fast=fast)
    if definition.compacts_first:
        keyed = compact.latest_by_offset(keyed, [*definition.primary_key, BAD_KEY_ID])
    return _judged(decode_values(keyed, definition.topic, fast=fast), definition)


def decode_with_fallback(records: DataFrame, definition: Definition, persist: Persist) -> DataFrame:
    """Decode records by the fast path, or by the full decode if the fast path leaves a record open."""
    changes = persist(decode(records, definition, fast=True))
    if any_row(changes, col(BAD) == NEEDS_FULL_DECODE):
        return persist(decode(records, definition))
    return changes


def fill_unavailable(changes: DataFrame, table: DataFrame, definition: Definition) -> DataFrame:
    """Fill the unavailable values of decoded `changes`, then judge the rows of the changes that had some."""
    key = definition.primary_key
    columns = [c.name for c in definition.topic.schema.physical if c.name not in key]
    return _judged(
        unavailable_values.fill_unavailable_values(changes, table, key=key, columns=columns), definition
    )


def fold(changes: DataFrame, definition: Definition) -> DataFrame:
    """Leave out bad changes of decoded `changes` and keep the last change per key; all changes without a key."""
    good = changes.where(is_good())
    if definition.topic.appends or definition.compacts_first:
        return good
    return compact.latest_by_offset(good, list(definition.primary_key))


def resolve_unavailable(
    changes: DataFrame,
    definition: Definition,
    persist: Persist,
    table: DataFrame | None = None,
) -> DataFrame:
    """Fill the unavailable values of the changes of a whole topic: from earlier changes of the key, else from `table`.

    A change whose value is in neither becomes bad, and `__bad` gives the reason.
    """
    if UNAVAILABLE not in changes.columns or not any_row(changes, F.size(UNAVAILABLE) > 0):
        return changes
    rows = changes.limit(0) if table is None else table
    table_rows = rows.select(*[col(c.name) for c in definition.topic.schema.physical])
    return persist(fill_unavailable(changes, table_rows, definition))


def _judged(changes: DataFrame, definition: Definition) -> DataFrame:
    return row_gate.divert_unexpected(unfit_rows.mark_unfit(changes, definition), definition)


def any_row(frame: DataFrame, condition: Column) -> bool:
    """Whether the condition is true for a row, in one job: Spark's isEmpty reads one partition, then four, and so on
    while it finds none."""
    row = frame.agg(F.bool_or(condition)).first()
    return row is not None and bool(row[0])
