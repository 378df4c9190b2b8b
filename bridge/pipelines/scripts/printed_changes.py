"""The lines of a `print` sink, as Flink's connector `print` writes them: `id> +U[Ulm, 3]`."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import functions as F

from bridge.columns import KIND, col, retracts
from bridge.delta import change_feed
from bridge.delta.change_feed import feed_errors
from bridge.delta.table import Table
from bridge.sql import InsertPlan

__all__ = ["printed_lines"]


def printed_lines(table: Table, plan: InsertPlan, version: int, identifier: str = "") -> Iterator[str]:
    """Yield a line for each change of one version of a result: by key, the row before an update first.

    Values are texts as Spark casts them, and NULL is `null`. Rows come from Spark one partition at a time.
    """
    order = [*map(col, plan.key), F.when(retracts(), 0).otherwise(1)]
    changes = change_feed.changes(table, version, version).orderBy(*order)
    row = F.concat_ws(", ", *(F.coalesce(col(n).cast("string"), F.lit("null")) for n in table.columns))
    prefix = f"{identifier}> " if identifier else ""
    with feed_errors(table, version, version):
        for kind, text in changes.select(col(KIND), row).toLocalIterator():
            yield f"{prefix}{kind}[{text}]"
