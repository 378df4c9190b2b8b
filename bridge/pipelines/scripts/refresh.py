"""Computes which rows of a result change when its sources change.

The query is computed again from the sources, at one version of each, and compared with the result: for all rows, or for
those parts of the result to which rows of the changed versions belong (see `sql.relation`). Rows of a query over
sources that only get rows, and of which each gives at most one row, are computed from the added rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import KIND, POSITION, col, retracts, same_key
from bridge.compact import TWO_PARTITIONS, latest_by_offset
from bridge.delta.appended_files import rows_at
from bridge.delta.file_pruning import key_predicate
from bridge.delta.table import Table
from bridge.pipelines.changes.own_rows import rows_with_values
from bridge.pipelines.scripts.added_groups import added_groups, added_joined_rows, merged_groups, query_over
from bridge.pipelines.scripts.driver_groups import driver_groups
from bridge.pipelines.scripts.few_rows import are_few, collected
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.rows import RowKind
from bridge.session import child_session
from bridge.sql import InsertPlan
from bridge.sql.plan import WindowPlan
from bridge.sql.positions import POSITION_COLUMNS
from bridge.sql.window_tables import AFTER, UNTIL
from bridge.ways import NotThisWay

_PART, _TABLE = "p", "t"


class Method(str, Enum):
    """How a refresh finds the changes of a result."""

    ADDED_ROWS = "the added rows"
    """The query over the rows that the sources got; they are appended, or replace rows of the same key."""
    ADDED_GROUPS = "the groups of the added rows"
    """The query over the rows that the sources got, merged with the rows of these groups in the result."""
    PARTS = "the parts that changed"
    """The query over the rows of the parts that changed, compared with the rows of these parts in the result."""
    ALL_ROWS = "all rows of its sources"
    """The query over all rows, compared with the whole result."""
    WINDOWS = "the windows that closed"
    """The query over the rows of these windows; they are added, or compared with what was known when rows were late."""


@dataclass(frozen=True)
class Refresh:
    """The changes of a result: its columns and `__kind`, at most one per key; or the rows to append, if it has none."""

    changes: DataFrame | pa.Table
    """Arrow where they were computed in the driver; then each key has one change, an upsert."""
    persisted: tuple[DataFrame, ...] = ()
    """Frames that the changes are made of more than once; to be unpersisted after the commit."""
    is_few: bool = False
    """Whether they may come into the driver, where each key is known to have one change, an upsert."""
    parts: DataFrame | None = None
    """The values of the parts that were computed; None if they were not computed in parts."""


@dataclass(frozen=True)
class Closing:
    """The windows of a refresh: those that end after `after_ms`, and not after `until_ms`; epoch milliseconds."""

    after_ms: int
    until_ms: int
    is_whole: bool
    """Whether these are all windows that are closed, so that the result has no other rows."""

    @property
    def variables(self) -> dict[str, int]:
        return {AFTER: self.after_ms, UNTIL: self.until_ms}


def method_for(plan: InsertPlan, ranges: Mapping[str, SourceRange], *, is_first: bool) -> Method:
    """How an INSERT is refreshed; the first time there is nothing to compare with.

    COUNT(DISTINCT) looks the added values up in the rows before; where these are clustered by the group, it is cheaper
    to read the rows of these groups only.
    """
    if plan.windows is not None:
        return Method.WINDOWS
    if not plan.is_updating:
        return Method.ADDED_ROWS
    if is_first:
        return Method.ALL_ROWS
    if plan.accumulators and not (plan.counted_values and _are_clustered(plan, ranges)):
        return Method.ADDED_GROUPS
    return Method.PARTS if plan.parts else Method.ALL_ROWS


def _are_clustered(plan: InsertPlan, ranges: Mapping[str, SourceRange]) -> bool:
    """Whether each source is clustered by a column that says to which part a row belongs."""
    return bool(plan.parts) and all(
        set(_columns(plan, name).values()) & set(source.table.clustered_by) for name, source in ranges.items()
    )


def refreshed(
    spark: SparkSession,
    plan: InsertPlan,
    result: Table,
    ranges: Mapping[str, SourceRange],
    method: Method,
    closing: Closing | None = None,
    *,
    is_new: bool = False,
) -> Refresh:
    """The changes that bring `result`, which has the rows before `ranges`, to the rows after them.

    `closing` are the windows of `Method.WINDOWS`. With `is_new` the result has no rows yet. `result` must not change
    meanwhile, or its MERGE must fail then. Groups of few added rows come from `driver_groups`, or else from a job that
    brings them into the driver. Runs a job for these and for the parts, no other; the frames belong to a session of
    their own, in which the sources are views. Wrap actions in `delta_errors.feed_errors`.
    """
    if method is Method.ADDED_GROUPS:
        with suppress(NotThisWay):
            return Refresh(driver_groups(plan, result, ranges))
    session = child_session(spark)
    before = rows_with_values(_rows_of(result.on(session), method, is_new=is_new), plan.merge_columns)
    held: list[DataFrame] = []

    def differences(after: DataFrame, known: DataFrame) -> DataFrame:
        return _upserts(plan, after) if is_new else _differences(plan, _held(after, held), known)

    def may_be_few(views: Mapping[str, DataFrame]) -> bool:
        return not plan.merge_columns and are_few(views.values())

    if method is Method.ADDED_ROWS:
        if plan.joined is not None:
            return Refresh(added_joined_rows(session, plan.joined, ranges))
        views = {name: source.added_rows(session) for name, source in ranges.items()}
        added = _upserts(plan, query_over(session, plan.kept_sql, views))
        is_rebuilt = plan.key and not is_new and all(source.first == 0 for source in ranges.values())
        return Refresh(_differences(plan, _held(added, held), before) if is_rebuilt else added, tuple(held))
    if method is Method.WINDOWS:
        assert closing is not None and plan.windows is not None
        views = {name: source.rows(session) for name, source in ranges.items()}
        after = query_over(session, plan.kept_sql, views, closing.variables)
        changes = _of_windows(plan, plan.windows, after, before, closing, differences)
        return Refresh(changes, tuple(held))
    if method is Method.ADDED_GROUPS:
        if plan.joined is not None:
            added = _held(added_joined_rows(session, plan.joined, ranges), held)
            return Refresh(merged_groups(plan, added, before), tuple(held))
        views = {name: source.added_rows(session) for name, source in ranges.items()}
        added = added_groups(session, plan, ranges, views)
        is_few = may_be_few(views)
        added = collected(added) if is_few else _held(added, held)
        return Refresh(merged_groups(plan, added, before), tuple(held), is_few)
    if method is Method.ALL_ROWS:
        views = {name: source.whole_rows(session) for name, source in ranges.items()}
        changes = differences(query_over(session, plan.kept_sql, views), before)
        return Refresh(changes, tuple(held), is_new and plan.has_one_row_a_key and may_be_few(views))
    parts = _held(_changed_parts(session, plan, ranges), held)
    views = {name: of_parts(plan, name, source.rows(session), parts) for name, source in ranges.items()}
    own = {part.name: part.name for part in plan.parts}
    after = query_over(session, plan.kept_sql, views)
    return Refresh(differences(after, _of_parts(before, parts, own)), tuple(held), parts=parts)


def _rows_of(result: Table, method: Method, *, is_new: bool) -> DataFrame:
    if is_new:
        return result.spark.createDataFrame([], T.StructType(list(result.fields)))
    # The other methods read some rows, for which Delta leaves out files.
    if method in (Method.ADDED_GROUPS, Method.ALL_ROWS):
        with suppress(NotThisWay):
            return rows_at(result, None)
    return result.delta().toDF().select(*map(col, result.columns))


def _held(frame: DataFrame, held: list[DataFrame]) -> DataFrame:
    """Persist a frame that is used more than once: Spark would compute the query for each use, as each needs other
    columns of it."""
    held.append(frame.persist())
    return held[-1]


def _of_windows(
    plan: InsertPlan,
    windows: WindowPlan,
    after: DataFrame,
    before: DataFrame,
    closing: Closing,
    differences: Callable[[DataFrame, DataFrame], DataFrame],
) -> DataFrame:
    """The changes of the rows of some windows. Without late rows no window is computed twice."""
    if not plan.key:
        return after
    if closing.is_whole:
        return differences(after, before)
    if not windows.lateness_ms:
        return after.withColumn(KIND, F.lit(RowKind.UPDATE_AFTER.value))
    end = F.unix_millis(col(windows.column).cast("timestamp")) + F.lit(windows.ends_after_ms)
    known = before.where((end > F.lit(closing.after_ms)) & (end <= F.lit(closing.until_ms)))
    return differences(after, known)


def _upserts(plan: InsertPlan, rows: DataFrame) -> DataFrame:
    """Rows that are only added: as they are, or the last one of each key as +U."""
    if not plan.key:
        return rows
    if plan.keeps_last:
        position = F.struct(*(col(c.name).alias(c.name.lstrip("_")) for c in POSITION_COLUMNS))
        rows = latest_by_offset(rows.withColumn(POSITION, position), plan.key)
        rows = rows.drop(POSITION, TWO_PARTITIONS, *(c.name for c in POSITION_COLUMNS))
    return rows.withColumn(KIND, F.lit(RowKind.UPDATE_AFTER.value))


def _differences(plan: InsertPlan, after: DataFrame, before: DataFrame) -> DataFrame:
    """All rows of `after` as +U, and those of `before` without a row of the same key there as -D.

    Rows that are the same in both are left to the MERGE, which passes over them.
    """
    is_gone = before.alias(_TABLE).join(
        after.select(*map(col, plan.key)).alias(_PART), same_key(plan.key, _TABLE, _PART), "left_anti"
    )
    kept = after.withColumn(KIND, F.lit(RowKind.UPDATE_AFTER.value)) if KIND not in after.columns else after
    return kept.unionByName(is_gone.withColumn(KIND, F.lit(RowKind.DELETE.value)))


def _columns(plan: InsertPlan, source: str) -> dict[str, str]:
    """The column of `source` for each column of the parts; empty if all of its rows belong to every part."""
    return {part.name: columns[source] for part in plan.parts if source in (columns := dict(part.sources))}


def _changed_parts(session: SparkSession, plan: InsertPlan, ranges: Mapping[str, SourceRange]) -> DataFrame:
    """The values of the parts to which a changed row belongs, before or after its change."""
    if plan.parts_sql:
        return _parts_of_joined_rows(session, plan, ranges)
    found = [
        source.changes(session).select(*(col(c).alias(p) for p, c in _columns(plan, name).items()))
        for name, source in ranges.items()
        if source.has_commits
    ]
    return reduce(DataFrame.unionByName, found).distinct()


def _parts_of_joined_rows(
    session: SparkSession, plan: InsertPlan, ranges: Mapping[str, SourceRange]
) -> DataFrame:
    """The same where a changed row alone does not say it: see `sql.grouping`."""
    changes = {name: source.changes(session) for name, source in ranges.items() if source.has_commits}
    before_and_after = {
        name: rows.unionByName(_rows(source, changes[name].where(retracts()))) if name in changes else rows
        for name, source in ranges.items()
        for rows in [source.rows(session)]
    }
    found = [
        query_over(session, plan.parts_sql, {**before_and_after, name: _rows(ranges[name], changed)})
        for name, changed in changes.items()
    ]
    return reduce(DataFrame.unionByName, found).distinct()


def _rows(source: SourceRange, changes: DataFrame) -> DataFrame:
    return changes.select(*map(col, source.table.columns))


def of_parts(plan: InsertPlan, source: str, rows: DataFrame, parts: DataFrame) -> DataFrame:
    """Those `rows` of a source from which these parts of the result are computed."""
    return _of_parts(rows, parts, _columns(plan, source))


def _of_parts(rows: DataFrame, parts: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """The rows that belong to `parts`, null-safe; `columns` are the columns of `rows` by those of `parts`.

    Files are skipped by the values of few parts, or by their bounds.
    """
    if not columns:
        return rows
    named = parts.select(*(col(part).alias(column) for part, column in columns.items()))
    files = key_predicate(named, list(columns.values()), _TABLE).condition
    same = [col(column, _TABLE).eqNullSafe(col(part, _PART)) for part, column in columns.items()]
    condition: Column = reduce(lambda one, other: one & other, same)
    found = rows.alias(_TABLE)
    if files is not None:
        found = found.where(files)
    return found.join(parts.alias(_PART), condition, "left_semi")
