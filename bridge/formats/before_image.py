"""What is read of a row's former state: with a key its fields alone.

What takes a row of a keyed table away is its key. To read the rest of `before` or `old` only to throw it away costs
as much as to read the new state, and a value that nobody needs cannot be a bad one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.formats.sql import literal, member, null
from bridge.schema import RowType

__all__ = ["as_row", "before_image_type", "padded"]


def before_image_type(row: RowType, key: Sequence[str]) -> RowType:
    """The fields of `row` that are read of a former state, in its order: those of `key`; all where it has none."""
    named = tuple(f for f in row.fields if f.name in key)
    return RowType(named) if named else row


def as_row(row: RowType, told: RowType, state: str) -> str:
    """The row of a former state, null in what is not read; `state` is SQL of the fields `told`, not null."""
    return state if told == row else padded(row, {name: member(state, name) for name in told.names})


def padded(row: RowType, fields: Mapping[str, str]) -> str:
    """A row of SQL by field, null where there is none."""
    values = [f"{literal(f.name)}, {fields.get(f.name) or null(f.type.spark())}" for f in row.fields]
    return f"named_struct({', '.join(values)})"
