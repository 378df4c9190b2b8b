"""The rows that a join gains when its tables gain rows (see `sql.joined_rows`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from bridge.pipelines.scripts.added_groups import query_over
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.sql.joined_rows import JoinedRows, Scan

__all__ = ["added_joined_rows"]


def added_joined_rows(
    session: SparkSession, joined: JoinedRows, ranges: Mapping[str, SourceRange]
) -> DataFrame:
    """The rows of the query that come from at least one added row, each as often as it is gained.

    Of a scan with added rows, those before it in the query give their rows before, those after it all rows. `session`
    is a child session, in which the scans become views. Raises TableError if rows of a source were updated or deleted.
    """
    changed = [scan for scan in joined.scans if ranges[scan.source].has_commits]
    if len(changed) == len(joined.scans) and all(ranges[scan.source].first == 0 for scan in changed):
        views = {scan.name: ranges[scan.source].added_rows(session) for scan in joined.scans}
        return query_over(session, joined.spark_sql, views)
    # A query is analysed before the next one gives its views other rows.
    found = [
        query_over(session, joined.spark_sql, _views(session, joined.scans, scan, ranges))
        for scan in changed or joined.scans[:1]
    ]
    return reduce(DataFrame.unionByName, found)


def _views(
    session: SparkSession, scans: tuple[Scan, ...], added: Scan, ranges: Mapping[str, SourceRange]
) -> dict[str, DataFrame]:
    at = scans.index(added)
    views = {}
    for number, scan in enumerate(scans):
        source = ranges[scan.source]
        if number == at:
            rows = source.added_rows(session)
        elif scan.name in added.apart:
            rows = source.rows(session).limit(0)
        else:
            rows = source.rows_before(session) if number < at else source.rows(session)
        views[scan.name] = rows
    return views
