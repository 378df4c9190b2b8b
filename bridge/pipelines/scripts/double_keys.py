"""Rows of a result that share a key, of which it is not known which one counts."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import KIND
from bridge.errors import AmbiguousKeyError
from bridge.rows import RowKind
from bridge.sql import InsertPlan
from bridge.sql.settings import NOT_NULL

__all__ = ["checked_upserts"]


def checked_upserts(changes: DataFrame, plan: InsertPlan) -> int:
    """The number of rows that are not deletes. Raises AmbiguousKeyError if two of them have one key."""
    adds = F.col(KIND) != F.lit(RowKind.DELETE.value)
    if plan.has_one_row_a_key:
        return changes.where(adds).count()
    keys = F.struct(*(F.col(f"`{name}`") for name in plan.key))
    row = changes.agg(F.count_if(adds), F.count_distinct(F.when(adds, keys))).first()
    assert row is not None
    if row[0] != row[1]:
        twice = changes.where(adds).groupBy(keys.alias("key")).count().where("count > 1").first()
        values = dict(zip(plan.key, twice["key"] if twice is not None else (), strict=False))
        shown = ", ".join(f"{name}: {value}" for name, value in values.items())
        way = "" if plan.keeps_keys else "declare the query's type in the sink, which has fewer digits; "
        if None in values.values():
            way += f"leave out rows with NULL in the key, as Flink does with SET '{NOT_NULL}' = 'DROP'; "
        raise AmbiguousKeyError(
            f"INSERT {plan.name}: {row[0] - row[1]:,} rows of the query have a key ({', '.join(plan.key)}) that "
            f"another row has, too, such as ({shown}), so it is not known which one counts; nothing was written. To go "
            f"on, {way}group the rows, or keep one of each key with ROW_NUMBER()"
        )
    return int(row[0])
