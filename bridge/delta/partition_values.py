"""Stops a write of rows whose value a partition column cannot hold, which Delta would change without an error.

Rows of topics are judged before, as records (`row_constraints`); this is for those from elsewhere, such as the
result of a script.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import KIND, col, retracts
from bridge.delta.table import Table
from bridge.errors import TableError

_MARK = "bridge: partition value: "


def refuse_lost_values(table: Table, rows: DataFrame) -> DataFrame:
    """`rows` to be written; computing them fails at one that the table would not hold, see `lost_values`.

    Where they have `__kind`, retractions pass.
    """
    lost = [c for c in table.constraints if c.partition is not None and c.partition in rows.columns]
    if not lost:
        return rows
    reason = F.coalesce(*[F.when(~F.expr(c.condition), F.lit(c.broken)) for c in lost])
    if KIND in rows.columns:
        reason = F.when(~retracts(), reason)
    error = F.raise_error(F.concat(F.lit(_MARK), reason))
    names = {
        c.partition: F.when(reason.isNotNull(), error).otherwise(col(c.partition))
        for c in lost
        if c.partition
    }
    return rows.withColumns(names)


@contextmanager
def lost_values(table: Table) -> Iterator[None]:
    """Raise TableError for the failure that `refuse_lost_values` causes."""
    try:
        yield
    except Exception as error:
        _, mark, reason = str(error).partition(_MARK)
        if not mark:
            raise
        raise TableError(f"table {table}: a row was not written: {reason.splitlines()[0]}") from error
