"""The lines of a `print` sink, as Flink's connector `print` writes them: `id> +U[Ulm, 3]`."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Window
from pyspark.sql import functions as F

from bridge.columns import KIND, col, retracts
from bridge.delta import change_feed
from bridge.delta.change_feed import feed_errors
from bridge.delta.table import Table
from bridge.sql import InsertPlan

__all__ = ["printed_lines"]

_SAME = "__same"


def printed_lines(table: Table, plan: InsertPlan, version: int, identifier: str = "") -> Iterator[str]:
    """Yield a line for each change of one version of a result: by key, the row before an update first.

    Values are texts as Spark casts them, and NULL is `null`. Rows come from Spark one partition at a time.
    """
    order = [*map(col, plan.key), F.when(retracts(), 0).otherwise(1)]
    changes = change_feed.changes(table, version, version)
    row = F.concat_ws(", ", *(F.coalesce(col(c.name).cast("string"), F.lit("null")) for c in plan.columns))
    if plan.kept_columns:
        # Updates of kept columns alone are left out.
        same = Window.partitionBy(*map(col, plan.key), row)
        changes = changes.withColumn(_SAME, F.count("*").over(same)).where(col(_SAME) == 1)
    prefix = f"{identifier}> " if identifier else ""
    with feed_errors(table, version, version):
        for kind, text in changes.orderBy(*order).select(col(KIND), row).toLocalIterator():
            yield f"{prefix}{kind}[{text}]"
