"""The last step of every way to decode: computed columns, NOT NULL, and nothing where nothing is known."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, POSITION, col
from bridge.definition import Topic
from bridge.schema import DataType, MetadataColumn, PhysicalColumn

__all__ = ["finished"]


def finished(
    judged: DataFrame,
    topic: Topic,
    *,
    adds: Column,
    told: Collection[str],
    added: Sequence[str],
    unknown: Column | None = None,
) -> DataFrame:
    """All table columns in DDL order, `__kind`, `__bad`, `__position` and the columns `added`.

    `adds` is true for rows that are to be there: computed columns are made for them, and a null in a column declared
    NOT NULL makes them bad (unless `unknown`, an array of names, has it). Of other good rows only the columns `told`
    are kept; of bad ones nothing is.
    """
    for column in topic.schema.computed:
        judged = judged.withColumn(column.name, F.when(adds, F.expr(column.spark)))
    bad = col(BAD)
    for name, type in _typed(topic):
        if not type.nullable:
            missing = F.lit(f"column {name!r} is NOT NULL, and the record has no value for it")
            lacks = adds & col(name).isNull()
            if unknown is not None:
                lacks = lacks & ~F.coalesce(F.array_contains(unknown, name), F.lit(False))
            bad = F.coalesce(bad, F.when(lacks, missing))
    good = col(BAD).isNull()
    blanked = [
        F.when(good & (adds | F.lit(name in told)), col(name)).alias(name) for name in topic.schema.names
    ]
    return judged.withColumn(BAD, bad).select(
        *blanked, F.when(good, col(KIND)).alias(KIND), col(BAD), col(POSITION), *(col(n) for n in added)
    )


def _typed(topic: Topic) -> list[tuple[str, DataType]]:
    return [(c.name, c.type) for c in topic.schema.columns if isinstance(c, PhysicalColumn | MetadataColumn)]
