"""Selects the rows and the expectations for a check of changed rows (`bridge check --since`)."""

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

_NEEDS_OTHER_ROWS = (
    "expect_column_values_to_be_unique",
    "expect_compound_columns_to_be_unique",
    "expect_column_values_to_be_increasing",
    "expect_column_values_to_be_decreasing",
)
"""Great Expectations evaluates them row by row, but their result depends on other rows."""


def changed_rows(table: Table, key: Sequence[str], since: int, version: int) -> DataFrame:
    """Return the rows in `version` whose key changed after version `since`; deleted rows have none.

    Reads only the change feed: the rows that the last change of each key left; without a key, every added row. For a
    key with several rows in the table, rows that its last change did not touch are not included, so uniqueness of keys
    is checked on the whole table (`split_by_scope`). Wrap Spark actions in `feed_errors`. Raises DefinitionError for a
    version that does not exist yet, TableError without a change feed, GapError if the feed does not go back so far.
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
    remaining = changes.where(col(KIND).isin(RowKind.INSERT.value, RowKind.UPDATE_AFTER.value))
    return remaining.select(*columns)


def split_by_scope(suite: Suite) -> tuple[list[int], list[int]]:
    """Return the indexes of the expectations that a row alone decides, and of those that need the whole table.

    The latter are uniqueness, freshness, aggregates, and expectations with `mostly`.
    """
    by_row = [number for number, e in enumerate(suite.expectations) if _by_row(e)]
    return by_row, [number for number in range(len(suite)) if number not in by_row]


def select_expectations(suite: Suite, numbers: Sequence[int]) -> Suite:
    """Return the suite with the expectations at these indexes."""
    return replace(suite, expectations=tuple(suite.expectations[n] for n in numbers))


def _by_row(expectation: object) -> bool:
    from great_expectations.expectations.expectation import (
        ColumnMapExpectation,
        ColumnPairMapExpectation,
        MulticolumnMapExpectation,
    )

    kinds = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
    if not isinstance(expectation, kinds) or expectation.expectation_type in _NEEDS_OTHER_ROWS:
        return False
    return float(expectation.configuration.kwargs.get("mostly") or 1) >= 1
