"""What the conditions of `delta` make of decoded changes: `apply-as-delete`, `apply-as-truncate`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, col
from bridge.decode import SKIP, TRUNCATE, UNAVAILABLE
from bridge.decode.computed_columns import reads_any
from bridge.definition import Definition, Truncate
from bridge.delta.merge_semantics import KEPT
from bridge.pipelines.changes.good_changes import sets_row
from bridge.rows import RowKind
from bridge.schema import ComputedColumn


def truncates(definition: Definition) -> Column | None:
    """Whether `delta.apply-as-truncate` is true for the columns of an add; None without it."""
    return _is_true(definition.delta.apply_as_truncate)


def removes(definition: Definition) -> Column | None:
    """Whether that or `delta.apply-as-delete` is true; None without both."""
    deletes, all_rows = _is_true(definition.delta.apply_as_delete), truncates(definition)
    return deletes if all_rows is None else all_rows if deletes is None else deletes | all_rows


def with_deletions(changes: DataFrame, definition: Definition) -> DataFrame:
    """Make adds for which `delta.apply-as-delete` is true deletions; one for which it fails is bad. Adds that leave out
    a value that it reads are not judged, as they may be when it is filled."""
    condition = definition.delta.apply_as_delete
    if condition is None:
        return changes
    adds = sets_row()
    if UNAVAILABLE in changes.columns:
        adds = adds & ~reads_any(condition, col(UNAVAILABLE))
    kept = {*definition.primary_key, *definition.delta.sequence_by}
    nulled = [name for name in definition.topic.schema.names if name not in kept]
    return _turned(changes, condition, adds, RowKind.DELETE.value, nulled)


def with_truncates(changes: DataFrame, definition: Definition) -> DataFrame:
    """Make adds for which `delta.apply-as-truncate` is true truncates; one for which it fails, or that leaves out a
    value that it reads, is bad. Skip truncates under `truncate: ignore`."""
    condition = definition.delta.apply_as_truncate
    if condition is not None:
        adds = sets_row()
        if UNAVAILABLE in changes.columns:
            unknown = adds & reads_any(condition, col(UNAVAILABLE))
            why = F.lit(f"{condition.name}: the record leaves out a value that it reads")
            bad = F.coalesce(col(BAD), F.when(unknown, why))
            changes = changes.withColumns({KIND: F.when(bad.isNull(), col(KIND)), BAD: bad})
        nulled = [n for n in definition.topic.schema.names if n not in definition.delta.sequence_by]
        changes = _turned(changes, condition, adds, TRUNCATE, nulled)
    if definition.delta.truncate is not Truncate.IGNORE:
        return changes
    return changes.withColumn(KIND, F.when(col(KIND) == TRUNCATE, SKIP).otherwise(col(KIND)))


def _is_true(condition: ComputedColumn | None) -> Column | None:
    """Whether it is true for the columns of a change; false where it is null. None without a condition."""
    return None if condition is None else F.coalesce(F.expr(condition.spark), F.lit(False))


def _turned(
    changes: DataFrame, condition: ComputedColumn, adds: Column, kind: str, nulled: Sequence[str]
) -> DataFrame:
    """Make those of the `adds` for which the condition is true changes of `kind`, without values of the columns
    `nulled`. One for which it fails is bad."""
    why = F.lit(None).cast("string") if condition.failure is None else F.expr(condition.failure)
    bad = F.coalesce(col(BAD), F.when(adds, F.concat(F.lit(f"{condition.name}: "), why)))
    turned = F.coalesce(adds & F.expr(condition.spark), F.lit(False))
    new_kind = F.when(bad.isNull(), F.when(turned, kind).otherwise(col(KIND)))
    names = [name for name in (*nulled, UNAVAILABLE, KEPT) if name in changes.columns]
    values = {name: F.when(turned, None).otherwise(col(name)) for name in names}
    return changes.withColumns({**values, KIND: new_kind, BAD: bad})
