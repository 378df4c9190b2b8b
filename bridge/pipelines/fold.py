"""records -> changes, decoded and compacted in the order that `bad-records` asks for."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from bridge import compact
from bridge.columns import BAD, KIND, col
from bridge.decode import APART, SKIP, decode_keys, decode_values
from bridge.definition import BadRecords, Definition

__all__ = ["decoded", "folded", "is_good", "is_strict"]


def is_strict(definition: Definition) -> bool:
    """True under `bad-records: fail`: no bad record may be in the fold, so only last records need decoding."""
    return definition.bad_records is BadRecords.FAIL


def is_good() -> Column:
    """True for rows that change the table."""
    return col(BAD).isNull() & (col(KIND) != SKIP)


def decoded(records: DataFrame, definition: Definition, *, glance: bool = False) -> DataFrame:
    """Changes with `__bad`, as decode.decode_values gives them; nothing bad is dropped.

    Strict: one row per key, the last one, and superseded values are never looked at. Otherwise one per record.
    With `glance` a record may be DOUBTFUL instead: then the frame is good for nothing but to be made again without.
    """
    keyed = decode_keys(records, definition.topic, glance=glance)
    if is_strict(definition):
        keyed = compact.latest_by_offset(keyed, [*definition.primary_key, APART])
    return decode_values(keyed, definition.topic, glance=glance)


def folded(changes: DataFrame, definition: Definition) -> DataFrame:
    """The good ones among `decoded` changes, one per key: the last good one."""
    good = changes.where(is_good())
    return good if is_strict(definition) else compact.latest_by_offset(good, list(definition.primary_key))
