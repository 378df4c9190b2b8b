"""Whether the changes of a version can be sent directly, without grouping them by key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import functions as F

from bridge.columns import KIND, col, row_fingerprint
from bridge.delta.change_feed import changes
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table
from bridge.rows import RowKind


def can_send_directly(table: Table, version: int, key: Sequence[str]) -> bool:
    """Whether each key has one change in that version: +I, -D, or -U and +U of different rows. No primary key changed
    then, no key has several rows, and no update changed nothing, so that `compact.net` would give its +I, +U and -D.

    Runs one Spark job on 64-bit hashes of keys and rows. Two keys with the same hash, and two rows of an update with
    the same hash, make the result False. Raises GapError when the version's files are gone.
    """
    frame = changes(table, version, version)
    before, after = (col(KIND) == kind.value for kind in (RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER))
    hashes = frame.select(
        row_fingerprint([f for f in table.fields if f.name in key]).alias("key"),
        before.alias("before"),
        after.alias("after"),
        F.when(before | after, row_fingerprint(table.fields)).alias("row"),
    )
    of_key = hashes.groupBy("key").agg(
        F.count("*").alias("changes"),
        F.count_if("before").alias("before"),
        F.count_if("after").alias("after"),
        F.bit_xor("row").alias("differ"),  # 0 for two equal rows
    )
    single = "changes = 1 AND before = 0 AND after = 0"
    pair = "changes = 2 AND before = 1 AND after = 1 AND differ <> 0"
    with feed_errors(table, version, version):
        return not of_key.agg(F.count_if(~F.expr(f"({single}) OR ({pair})"))).collect()[0][0]
