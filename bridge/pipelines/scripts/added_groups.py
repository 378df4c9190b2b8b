"""Computes what results gain when their sources gain rows: aggregates to merge, and rows of joins.

See `sql.accumulators`, and `joined_rows` in `sql.plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND, col, same_key
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.rows import RowKind
from bridge.schema import quote
from bridge.sql import InsertPlan
from bridge.sql.accumulators import Accumulator
from bridge.sql.plan import JoinedRows, Scan
from bridge.sql.sums import wrapping_sum


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


_ADDED, _TABLE = "a", "t"
_TAKEN = "__taken"


def added_groups(
    session: SparkSession,
    plan: InsertPlan,
    ranges: Mapping[str, SourceRange],
    added_rows: Mapping[str, DataFrame],
) -> DataFrame:
    """The aggregates of the rows that the sources got, to be merged with those of the rows before.

    A group has one row, and for each COUNT(DISTINCT) at most one more: it takes away the values that rows before have
    in the same group, and is null otherwise. Runs no job; the sources become views of `session`, a child session."""
    added = query_over(session, plan.kept_sql, added_rows)
    known = _known_values(session, plan, ranges, added_rows)
    return reduce(
        DataFrame.unionByName,
        (_taken_away(plan, added.schema, column, values) for column, values in known.items()),
        added,
    )


def query_over(
    session: SparkSession,
    sql: str,
    views: Mapping[str, DataFrame],
    variables: Mapping[str, int] | None = None,
) -> DataFrame:
    """A query over `views`, which become temporary views of `session`, with values of session variables."""
    for name, rows in views.items():
        rows.createOrReplaceTempView(quote(name))
    for name, value in (variables or {}).items():
        session.sql(f"DECLARE OR REPLACE VARIABLE {name} BIGINT DEFAULT {value}")
    return session.sql(sql)


def _known_values(
    session: SparkSession,
    plan: InsertPlan,
    ranges: Mapping[str, SourceRange],
    added_rows: Mapping[str, DataFrame],
) -> dict[str, DataFrame]:
    """For each COUNT(DISTINCT), the counted values of the added rows that rows before have in the same group."""
    before = {name: source.rows_before(session) for name, source in ranges.items()}
    found = {}
    for column, sql in plan.counted_values.items():
        added = query_over(session, sql, added_rows).alias(_ADDED)
        known = query_over(session, sql, before).alias(_TABLE)
        # Values are joined before they are made distinct, so that only those of the added rows are shuffled.
        found[column] = known.join(added, same_key(known.columns, _TABLE, _ADDED), "left_semi").distinct()
    return found


def _taken_away(plan: InsertPlan, schema: T.StructType, column: str, values: DataFrame) -> DataFrame:
    """Rows of added groups that take the `values`, which were counted before, from what `column` counts."""
    counts = values.groupBy(*map(col, plan.key)).agg((-F.count("*")).alias(_TAKEN))
    found = {column: col(_TAKEN)} | {name: col(name) for name in plan.key}
    return counts.select(
        *(found.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in schema.fields)
    )


def _merged(how: Accumulator, name: str, type: T.DataType) -> Column:
    if how is Accumulator.SUM and isinstance(type, T.IntegralType):
        return F.expr(wrapping_sum(name, type.simpleString().upper()))
    if how is Accumulator.GROUP:  # the same value in all rows but those that take something away
        return F.first(col(name), ignorenulls=True)
    return F.call_function(how.value, col(name))


def merged_groups(plan: InsertPlan, added: DataFrame, before: DataFrame) -> DataFrame:
    """The groups of `added`, where each may be several times, as +U: their aggregates merged with each other and with
    those of the rows before. Reads `added` twice."""
    groups = added.alias(_ADDED)
    known = before.alias(_TABLE).join(groups, same_key(plan.key, _TABLE, _ADDED), "left_semi")
    both = known.unionByName(added)
    functions = {column.name: Accumulator.SUM for column in plan.kept_columns} | dict(plan.accumulators)
    quotients = plan.averages.values if plan.averages is not None else {}
    types = {field.name: field.dataType for field in before.schema.fields}
    values = []
    for name in types.keys() - set(plan.key) - quotients.keys():
        found = functions.get(name)
        value = F.lit(None) if found is None else _merged(found, name, types[name])
        values.append(value.cast(types[name]).alias(name))
    merged = (
        both.groupBy(*map(col, plan.key)).agg(*values) if values else added.dropDuplicates(list(plan.key))
    )
    whole = [
        F.expr(quotients[name]).cast(type).alias(name) if name in quotients else col(name)
        for name, type in types.items()
    ]
    return merged.select(*whole).withColumn(KIND, F.lit(RowKind.UPDATE_AFTER.value))
