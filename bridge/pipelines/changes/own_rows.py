"""Which rows of a table are those of the pipeline's topic: of a shared one (`delta.merge-columns`), and of one that
keeps deleted rows (`delta.soft-delete`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame

from bridge.columns import KIND, col, retracts
from bridge.definition import Definition


def own_rows(frame: DataFrame, definition: Definition) -> DataFrame:
    """Leave out the rows of which no column of the pipeline has a value: they are rows of other pipelines.

    So are rows of the topic without any value, which a shared table does not store (ADR 037). Where `frame` has
    `__kind`, retractions stay. Without `merge-columns` all rows are the pipeline's. Rows of the table that are marked
    as deleted are left out, too.
    """
    deleted_at = definition.delta.soft_delete
    if deleted_at is not None and deleted_at in frame.columns and KIND not in frame.columns:
        frame = frame.where(col(deleted_at).isNull())
    return rows_with_values(frame, definition.delta.merge_columns)


def rows_with_values(frame: DataFrame, own: Sequence[str]) -> DataFrame:
    """The same by the pipeline's columns; all rows if there are none."""
    if not own:
        return frame
    has_value = reduce(or_, (col(name).isNotNull() for name in own))
    return frame.where(retracts() | has_value if KIND in frame.columns else has_value)
