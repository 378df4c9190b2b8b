"""The last step of decoding: computed columns, NOT NULL checks, and null in the columns that a change does not have.

What is computed of unavailable values is null, and is computed when these are filled.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, POSITION, col
from bridge.definition import Topic
from bridge.schema import ComputedColumn, MetadataColumn, PhysicalColumn


def with_computed_columns(
    changes: DataFrame,
    topic: Topic,
    *,
    adds: Column,
    retraction_columns: Collection[str],
    added: Sequence[str],
    unavailable: Column | None = None,
    required: Column | None = None,
    removes: Column | None = None,
    truncates: Column | None = None,
) -> DataFrame:
    """Return all table columns in DDL order, `__kind`, `__bad`, `__position` and the columns `added`.

    `adds` is true for changes that add a row: computed columns are evaluated for them, except those of columns in
    `unavailable`, an array of names. An expression that fails for its row makes a change bad, and so does a null in a
    column declared NOT NULL, unless `unavailable` contains it, `required` is false or, over the columns of the record,
    `truncates` is true or outside the key `removes`. Other good changes have values in
    `retraction_columns` only; bad ones have their key where it is known.
    """
    bad = col(BAD)
    for column in topic.schema.computed:
        known = adds if unavailable is None else adds & ~reads_any(column, unavailable)
        bad = F.coalesce(bad, F.when(known, _failure(column)))
        changes = changes.withColumn(column.name, F.when(known, F.expr(column.spark)))
    for name, type in [
        (c.name, c.type) for c in topic.schema.columns if isinstance(c, PhysicalColumn | MetadataColumn)
    ]:
        if not type.nullable:
            missing = F.lit(f"column {name!r} is NOT NULL, and the record has no value for it")
            lacks = (adds if required is None else required) & col(name).isNull()
            if unavailable is not None:
                lacks = lacks & ~F.coalesce(F.array_contains(unavailable, name), F.lit(False))
            spared = truncates if name in topic.identity else removes
            if spared is not None:
                lacks = lacks & ~spared
            bad = F.coalesce(bad, F.when(lacks, missing))
    good = col(BAD).isNull()
    columns = [
        F.when(
            (good | F.lit(name in topic.identity)) & (adds | F.lit(name in retraction_columns)),
            col(name),
        ).alias(name)
        for name in topic.schema.names
    ]
    return changes.withColumn(BAD, bad).select(
        *columns, F.when(good, col(KIND)).alias(KIND), col(BAD), col(POSITION), *(col(n) for n in added)
    )


def with_filled(changes: DataFrame, topic: Topic, filled: Column) -> DataFrame:
    """Evaluate the computed columns of the columns in `filled`, an array of names that is null where there are none.

    An expression that fails makes a good change bad.
    """
    bad, values = col(BAD), {}
    for column in topic.schema.computed:
        known = col(BAD).isNull() & reads_any(column, filled)
        bad = F.coalesce(bad, F.when(known, _failure(column)))
        values[column.name] = F.when(known, F.expr(column.spark)).otherwise(col(column.name))
    return changes.withColumns({**values, KIND: F.when(bad.isNull(), col(KIND)), BAD: bad})


def reads_any(column: ComputedColumn, names: Column) -> Column:
    """True where `names`, an array or null, contains a column of which `column` is computed; else false."""
    read = F.array(*map(F.lit, column.reads)).cast("array<string>")
    return F.coalesce(F.arrays_overlap(names, read), F.lit(False))


def _failure(column: ComputedColumn) -> Column:
    if column.failure is None:
        return F.lit(None).cast("string")
    return F.concat(F.lit(f"computed column {column.name!r}: "), F.expr(column.failure))
