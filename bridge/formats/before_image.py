"""Rows of before images, of which only the key's fields are read (`change_documents.before_image_type`).

The row of a keyed table is deleted by its key. Reading the other fields of `before` or `old` would cost as much as
reading the after image, and errors in values that nobody needs would make the document bad.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.formats.sql import literal, member, null
from bridge.schema import RowType


def as_row(row: RowType, before_type: RowType, before: str) -> str:
    """Return the `before` image, SQL of fields `before_type` and not null, as a row; null in the other fields."""
    if before_type == row:
        return before
    return padded(row, {name: member(before, name) for name in before_type.names})


def padded(row: RowType, fields: Mapping[str, str]) -> str:
    """Return a row of the given SQL by field, null in the other fields."""
    values = [f"{literal(f.name)}, {fields.get(f.name) or null(f.type.spark())}" for f in row.fields]
    return f"named_struct({', '.join(values)})"
