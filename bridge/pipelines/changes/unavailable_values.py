"""changes -fill-> changes: unavailable values are replaced by those that the row has.

Databases leave large values out of an update that did not touch them (PostgreSQL's TOAST; Debezium writes its
unavailable-value placeholder). The row keeps the value of its previous change, else the one in the table (ADR 028,
rule 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, POSITION, col, same_key
from bridge.decode import DROPPED, SKIP, UNAVAILABLE
from bridge.delta.merge_semantics import KEPT
from bridge.rows import RowKind

__all__ = ["fill_unavailable_values"]

_IN_TABLE = "__in_table"
_RETRACTS = [kind.value for kind in RowKind if kind.retracts]


def fill_unavailable_values(
    changes: DataFrame, table: DataFrame, *, key: Sequence[str], columns: Sequence[str]
) -> DataFrame:
    """Fill the unavailable values of `changes` (see decode.decode_events) in the physical `columns` outside the key.

    A value is taken from the last earlier change of the same key in this frame that sets a row and has the column,
    else from the key's row in `table`. Where neither exists, the change becomes bad, and `__bad` gives the reason.
    `__unavailable` is null in the result. KEPT names the columns whose values are those of `table`, so that a MERGE
    does not undo what another writer has changed since then.
    """
    from_frame = _fill_from_earlier_changes(changes, key, columns)
    table_rows = table.select(*[col(name) for name in (*key, *columns)], F.lit(True).alias(_IN_TABLE))
    is_open = F.size(col(UNAVAILABLE, "c")) > 0
    joined = (
        from_frame.withColumn(KEPT, col(UNAVAILABLE))
        .alias("c")
        .join(table_rows.alias("t"), is_open & same_key(key, "c", "t"), "left")
    )
    unresolved = F.coalesce(is_open & col(_IN_TABLE, "t").isNull(), F.lit(False))
    reason = F.concat(
        F.lit("value: it leaves out "),
        F.array_join(col(UNAVAILABLE, "c"), ", "),
        F.lit(", and there is no row of this key whose value could be kept"),
    )
    good = col(BAD, "c").isNull() & ~unresolved
    values = {
        name: F.when(_is_unavailable(name, "c"), col(name, "t")).otherwise(col(name, "c")) for name in columns
    } | {
        KIND: F.when(good, col(KIND, "c")),
        BAD: F.when(unresolved, reason).otherwise(col(BAD, "c")),
        UNAVAILABLE: F.lit(None).cast("array<string>"),
    }
    names = [*changes.columns, KEPT]
    return joined.select(*[values.get(name, col(name, "c")).alias(name) for name in names])


def _fill_from_earlier_changes(changes: DataFrame, key: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Fill values from earlier changes in the frame; `__unavailable` then names the columns that are still open."""
    order = [col(POSITION).getField(part) for part in ("topic", "partition", "offset", "row")]
    earlier = (
        Window.partitionBy(*[col(name) for name in key])
        .orderBy(*order)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
    )
    sets_row = col(BAD).isNull() & ~col(KIND).isin([SKIP, DROPPED, *_RETRACTS])
    last_values = {
        name: F.last(
            F.when(sets_row & ~_is_unavailable(name), F.struct(col(name).alias("value"))), ignorenulls=True
        ).over(earlier)
        for name in columns
    }
    aliases = {name: f"__earlier_{n}" for n, name in enumerate(columns)}
    with_earlier = changes.select("*", *[last_values[name].alias(aliases[name]) for name in columns])
    values = {
        name: F.when(_is_unavailable(name), col(aliases[name]).getField("value")).otherwise(col(name))
        for name in columns
    }
    open_columns = F.filter(
        F.array(
            *[F.when(_is_unavailable(name) & col(aliases[name]).isNull(), F.lit(name)) for name in columns]
        ),
        lambda name: name.isNotNull(),
    )
    values[UNAVAILABLE] = F.when(F.size(open_columns) > 0, open_columns)
    return with_earlier.select(*[values.get(name, col(name)).alias(name) for name in changes.columns])


def _is_unavailable(name: str, frame: str | None = None) -> Column:
    return F.coalesce(F.array_contains(col(UNAVAILABLE, frame), name), F.lit(False))
