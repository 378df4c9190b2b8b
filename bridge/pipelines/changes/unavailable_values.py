"""changes -keep-> changes: columns that a document does not tell get the value they have.

Databases leave large values out of an update that did not touch them (PostgreSQL's TOAST; Debezium writes its
unavailable-value placeholder). The value is then the one of the change before, or the table's (ADR 028, rule 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from bridge.columns import BAD, KIND, POSITION, col, same_key
from bridge.decode import DROPPED, SKIP, UNAVAILABLE
from bridge.rows import RowKind

__all__ = ["fill_unavailable_values"]

_THERE = "__there"
_RETRACTS = [kind.value for kind in RowKind if kind.retracts]


def fill_unavailable_values(
    changes: DataFrame, table: DataFrame, *, key: Sequence[str], columns: Sequence[str]
) -> DataFrame:
    """`changes` (see decode.decode_events) with no `__unavailable` left, for the physical `columns` that are no key.

    A column that is kept takes the value of the last earlier add of the same key in this frame that tells it, else
    the value of the key's row in `table`. Where neither is there the change becomes bad, and it says so. The result
    is as right as `table` is new: read it as late as can be.
    """
    inside = _from_frame(changes, key, columns)
    there = table.select(*[col(name) for name in (*key, *columns)], F.lit(True).alias(_THERE))
    asking = F.size(col(UNAVAILABLE, "c")) > 0
    joined = inside.alias("c").join(there.alias("t"), asking & same_key(key, "c", "t"), "left")
    unknown = asking & col(_THERE, "t").isNull()
    lost = F.concat(
        F.lit("value: it leaves out "),
        F.array_join(col(UNAVAILABLE, "c"), ", "),
        F.lit(", and there is no row of this key whose value could be kept"),
    )
    good = col(BAD, "c").isNull() & ~F.coalesce(unknown, F.lit(False))
    taken = {
        name: F.when(_is_unavailable(name, "c"), col(name, "t")).otherwise(col(name, "c")) for name in columns
    } | {
        KIND: F.when(good, col(KIND, "c")),
        BAD: F.when(F.coalesce(unknown, F.lit(False)), lost).otherwise(col(BAD, "c")),
        UNAVAILABLE: F.lit(None).cast("array<string>"),
    }
    return joined.select(*[taken.get(name, col(name, "c")).alias(name) for name in changes.columns])


def _from_frame(changes: DataFrame, key: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Values of earlier adds in the frame put in; `__unavailable` names what is still open."""
    at = [col(POSITION).getField(part) for part in ("topic", "partition", "offset", "row")]
    before = (
        Window.partitionBy(*[col(name) for name in key])
        .orderBy(*at)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
    )
    tells = col(BAD).isNull() & ~col(KIND).isin([SKIP, DROPPED, *_RETRACTS])
    told = {
        name: F.last(
            F.when(tells & ~_is_unavailable(name), F.struct(col(name).alias("value"))), ignorenulls=True
        ).over(before)
        for name in columns
    }
    named = {name: f"__told_{n}" for n, name in enumerate(columns)}
    found = changes.select("*", *[told[name].alias(named[name]) for name in columns])
    values = {
        name: F.when(_is_unavailable(name), col(named[name]).getField("value")).otherwise(col(name))
        for name in columns
    }
    still = F.filter(
        F.array(
            *[F.when(_is_unavailable(name) & col(named[name]).isNull(), F.lit(name)) for name in columns]
        ),
        lambda name: name.isNotNull(),
    )
    values[UNAVAILABLE] = F.when(F.size(still) > 0, still)
    return found.select(*[values.get(name, col(name)).alias(name) for name in changes.columns])


def _is_unavailable(name: str, frame: str | None = None) -> Column:
    return F.coalesce(F.array_contains(col(UNAVAILABLE, frame), name), F.lit(False))
