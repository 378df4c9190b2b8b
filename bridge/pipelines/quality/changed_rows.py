"""The rows that a check of changes alone looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bridge.columns import KIND, POSITION, col
from bridge.delta import change_feed
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on, sql_name
from bridge.errors import DefinitionError, GapError, TableError
from bridge.quality.suite import Suite
from bridge.rows import RowKind

__all__ = ["changed_rows", "select_expectations", "split_by_scope"]

_ABOUT_OTHERS = (
    "expect_column_values_to_be_unique",
    "expect_compound_columns_to_be_unique",
    "expect_column_values_to_be_increasing",
    "expect_column_values_to_be_decreasing",
)
"""Great Expectations takes them row by row, but what is right depends on other rows."""


def changed_rows(table: Table, key: Sequence[str], since: int, version: int) -> DataFrame:
    """The rows as they are in `version` of those keys that changed after version `since`; a deleted one has none.

    Read from the change feed alone: of each key the rows that its last change left. Without a key every row that was
    added. A key that the table holds twice shows what the last change left of it, not what it left alone, so whether
    keys are unique is asked of the whole table (`parts`). Wrap actions in `feed.reading`. Raises DefinitionError for a
    version that is not there yet, TableError without a change feed, GapError when it no longer reaches back.
    """
    if since > version:
        raise DefinitionError(f"--since {since}: the newest version of table {table} is {version}")
    if not is_on(table.properties, CHANGE_FEED_PROPERTY):
        raise TableError(
            f"--since {since}: the change data feed of table {table} is off, so what changed is not known; leave "
            f"--since out, or switch it on: ALTER TABLE {sql_name(table.target)} "
            f"SET TBLPROPERTIES ({CHANGE_FEED_PROPERTY} = true)"
        )
    columns = [col(name) for name in table.columns]
    if since == version:
        return table.read({"versionAsOf": str(version)}).select(*columns).limit(0)
    try:
        change_feed.check_feed(table, since + 1, version, table.id)
        changes = change_feed.changes(table, since + 1, version)
    except GapError as gap:
        reason = str(gap).split(";")[0]
        raise GapError(
            f"--since {since}: {reason}. Leave --since out: then the whole table is checked"
        ) from gap
    at = F.col(f"{POSITION}.version")
    if key:
        newest = F.max(at).over(Window.partitionBy(*(col(name) for name in key)))
        changes = changes.withColumn("__newest", newest).where(at == F.col("__newest"))
    left = changes.where(col(KIND).isin(RowKind.INSERT.value, RowKind.UPDATE_AFTER.value))
    return left.select(*columns)


def split_by_scope(suite: Suite) -> tuple[list[int], list[int]]:
    """Places of the expectations that each row answers for itself, and of those that only the whole table can answer:
    uniqueness, freshness, aggregates, and whatever holds for most rows only (`mostly`)."""
    own = [number for number, e in enumerate(suite.expectations) if _by_row(e)]
    return own, [number for number in range(len(suite)) if number not in own]


def select_expectations(suite: Suite, numbers: Sequence[int]) -> Suite:
    """The suite with the expectations at these places."""
    return replace(suite, expectations=tuple(suite.expectations[n] for n in numbers))


def _by_row(expectation: object) -> bool:
    from great_expectations.expectations.expectation import (
        ColumnMapExpectation,
        ColumnPairMapExpectation,
        MulticolumnMapExpectation,
    )

    kinds = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
    if not isinstance(expectation, kinds) or expectation.expectation_type in _ABOUT_OTHERS:
        return False
    return float(expectation.configuration.kwargs.get("mostly") or 1) >= 1
