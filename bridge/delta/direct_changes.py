"""Whether a version's changes can be sent as they are, one by one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import functions as F

from bridge.columns import KIND, col, row_fingerprint
from bridge.delta.change_feed import changes, feed_errors
from bridge.delta.table import Table
from bridge.rows import RowKind

__all__ = ["can_send_directly"]


def can_send_directly(table: Table, version: int, key: Sequence[str]) -> bool:
    """True when each key has one change in that version: +I, -D, or -U with the +U of another row; so no key was moved,
    none stands in several rows, and no update is idle. Then +I, +U and -D are all that `compact.net` would find.

    One Spark job, in which a row is a few numbers: keys and rows are told by 64-bit hashes, and two that share one look
    like a version that is not plain. Raises GapError when the version's files have gone.
    """
    frame = changes(table, version, version)
    before, after = (col(KIND) == kind.value for kind in (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER))
    told = frame.select(
        row_fingerprint([f for f in table.fields if f.name in key]).alias("key"),
        before.alias("before"),
        after.alias("after"),
        F.when(before | after, row_fingerprint(table.fields)).alias("row"),
    )
    of_key = told.groupBy("key").agg(
        F.count("*").alias("changes"),
        F.count_if("before").alias("before"),
        F.count_if("after").alias("after"),
        F.bit_xor("row").alias("differ"),  # 0 for two that are the same
    )
    alone = "changes = 1 AND before = 0 AND after = 0"
    pair = "changes = 2 AND before = 1 AND after = 1 AND differ <> 0"
    with feed_errors(table, version, version):
        return not of_key.agg(F.count_if(~F.expr(f"({alone}) OR ({pair})"))).collect()[0][0]
