"""Values that a partition column of a Delta table cannot hold.

The log has the value of a partition column as a text, of which an empty one means null ("Partition Value Serialization"
in PROTOCOL.md): an empty STRING or BINARY would come back as NULL. So does Spark's name of a folder for NULL, and a
BINARY that is no UTF-8 comes back as another one; a zero byte is in no folder's name. No such row is written
(docs/adr/052).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND, col, retracts
from bridge.delta.table import Table
from bridge.errors import TableError

__all__ = ["NULL_FOLDER", "lost_reason", "lost_values", "refuse_lost_values", "suspect_columns"]

_MARK = "bridge: partition value: "
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""Spark takes this text for NULL, too."""


def suspect_columns(fields: Sequence[T.StructField], partitioned_by: Sequence[str]) -> list[T.StructField]:
    """The partition columns among `fields` of a type of which they do not hold every value."""
    names = {name.lower() for name in partitioned_by}
    types = (T.StringType, T.BinaryType)
    return [f for f in fields if f.name.lower() in names and isinstance(f.dataType, types)]


def lost_reason(fields: Sequence[T.StructField], partitioned_by: Sequence[str]) -> Column | None:
    """Why the table would not hold a row: its column and the reason, no value; null for a row that it holds. None where
    it holds every row."""
    reasons = [part for f in suspect_columns(fields, partitioned_by) for part in _reasons(f)]
    return F.coalesce(*reasons) if reasons else None


def refuse_lost_values(table: Table, rows: DataFrame) -> DataFrame:
    """`rows` to be written; computing them fails at one that the table would not hold, see `lost_values`.

    Where they have `__kind`, retractions pass.
    """
    reason = lost_reason(rows.schema.fields, table.partitioned_by)
    if reason is None:
        return rows
    if KIND in rows.columns:
        reason = F.when(~retracts(), reason)
    columns = suspect_columns(rows.schema.fields, table.partitioned_by)
    error = F.raise_error(F.concat(F.lit(_MARK), reason))
    return rows.withColumns(
        {f.name: F.when(reason.isNotNull(), error).otherwise(col(f.name)) for f in columns}
    )


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


def _reasons(f: T.StructField) -> Iterator[Column]:
    text, type = col(f.name).cast("string"), f.dataType.typeName().upper()

    def when(is_lost: Column, why: str) -> Column:
        return F.when(
            is_lost,
            F.lit(
                f"column {f.name!r} is a partition column of the table, {why}; send another value, or let the table "
                "have no partitions (CLUSTER BY keeps every value)"
            ),
        )

    yield when(F.length(col(f.name)) == 0, f"where Delta takes an empty {type} for NULL")
    yield when(text == NULL_FOLDER, f"where {NULL_FOLDER} is NULL")
    yield when(F.contains(text, F.lit("\0")), f"where a {type} with a zero byte has no folder")
    if isinstance(f.dataType, T.BinaryType):
        yield when(~F.is_valid_utf8(text), "where Delta keeps only a BINARY that is UTF-8")
