"""Rows of sources for which an INSERT fails: named in an error, or left out, counted and quarantined.

The query itself leaves them out (see `sql.failing_rows`), so that every way of a refresh comes to the same rows. They
are looked for in the rows that the sources got: where a run stops, and where they are left out. Of those that depend on
several rows, such as groups, the ones count that did not fail before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.backend import ENGINE_ERRORS
from bridge.columns import col, spark_type
from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import feed_errors
from bridge.delta.quarantine import ROW_KEY, quarantine_rows
from bridge.errors import REPUBLISH, BadRecordError, GapError, TableError
from bridge.pipelines.runtime.spark_errors import data_reason
from bridge.pipelines.scripts.added_groups import query_over
from bridge.pipelines.scripts.refresh import Closing, of_parts
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.session import child_session
from bridge.sql import InsertPlan
from bridge.sql.failing_rows import REASON, FailingRows
from bridge.sql.positions import POSITION_COLUMNS
from bridge.sql.window_tables import AFTER, UNTIL

_RECOMPUTE = "run the script with --rebuild, which computes the result again and sends what differs"
_POSITION = [column.name for column in POSITION_COLUMNS]
_TOPIC, _PARTITION, _OFFSET, _ = _POSITION


@dataclass(frozen=True)
class Quarantine:
    """Where a batch of an INSERT puts the rows that it leaves out."""

    target: DeltaTarget
    pipeline: str
    batch: int
    is_whole: bool
    """Whether the batch computes all rows, so that no row of a batch before stays in the quarantine."""


@dataclass(frozen=True)
class Computed:
    """What a refresh computes: the ranges of its sources, and the windows and the parts, if it computes only these."""

    ranges: Mapping[str, SourceRange]
    windows: Closing | None = None
    parts: DataFrame | None = None


def failing_rows(
    session: SparkSession, plan: InsertPlan, failing: FailingRows, computed: Computed
) -> DataFrame | None:
    """The rows for which a query fails, of those that its sources got, joined with all rows of its other sources; of
    those that depend on several rows all that are computed. Columns as `FailingRows` has them. None if the sources got
    none. `session` is a child session, in which the sources become views."""
    ranges = computed.ranges
    rows = {name: _with_positions(failing, name, ranges[name].rows(session)) for name in failing.sources}
    if failing.of_several:
        windows = computed.windows
        if windows is not None or plan.windows is None:
            return _of_several(session, plan, failing, computed, rows, windows.variables if windows else {})
        return None
    found = [
        query_over(
            session,
            failing.spark_sql,
            rows | {name: _with_positions(failing, name, ranges[name].new_rows(session))},
        )
        for name in failing.sources
        if ranges[name].has_commits
    ]
    return _each_once(failing, ranges, reduce(DataFrame.unionByName, found)) if found else None


def _each_once(failing: FailingRows, ranges: Mapping[str, SourceRange], rows: DataFrame) -> DataFrame:
    """The rows, each once where their columns tell them apart."""
    lack = [name for name in failing.positioned if _TOPIC not in ranges[name].table.columns]
    return rows if failing.has_no_key or lack else rows.distinct()


def _with_positions(failing: FailingRows, source: str, rows: DataFrame) -> DataFrame:
    """The rows of a source, with positions that are NULL where its state was made without them."""
    if source not in failing.positioned or _TOPIC in rows.columns:
        return rows
    return rows.withColumns(
        {column.name: F.lit(None).cast(spark_type(column.type)) for column in POSITION_COLUMNS}
    )


def _of_several(
    session: SparkSession,
    plan: InsertPlan,
    failing: FailingRows,
    computed: Computed,
    views: Mapping[str, DataFrame],
    variables: Mapping[str, int],
) -> DataFrame:
    parts = computed.parts
    if parts is not None:
        views = {name: of_parts(plan, name, rows, parts) for name, rows in views.items()}
    found = query_over(session, failing.spark_sql, views, variables)
    return _each_once(failing, computed.ranges, found)


def _newly_failing(
    session: SparkSession, plan: InsertPlan, failing: FailingRows, computed: Computed
) -> DataFrame | None:
    """`failing_rows` without those that depend on several rows and failed before. A window is computed once, unless
    rows may be late."""
    now, windows, ranges = failing_rows(session, plan, failing, computed), computed.windows, computed.ranges
    late_ms = plan.windows.lateness_ms if plan.windows is not None else 0
    is_first = all(source.first == 0 for source in ranges.values()) or (windows is not None and not late_ms)
    if now is None or not failing.of_several or is_first:
        return now
    rows = {
        name: _with_positions(failing, name, ranges[name].rows_before(session)) for name in failing.sources
    }
    closed = {AFTER: windows.after_ms, UNTIL: windows.after_ms + late_ms} if windows is not None else {}
    return now.exceptAll(_of_several(session, plan, failing, computed, rows, closed))


def left_out(spark: SparkSession, plan: InsertPlan, computed: Computed, quarantine: Quarantine | None) -> int:
    """How many rows the query leaves out that the sources got, and how many groups that fail since then: a job for all
    SELECTs that may fail, and none where such rows stop the run. They are in the `quarantine` then, if there is one."""
    asked = [failing for failing in plan.failing if not failing.stop]
    session = child_session(spark) if asked else spark
    found = [(failing, _newly_failing(session, plan, failing, computed)) for failing in asked]
    known = [_described(failing, rows) for failing, rows in found if rows is not None]
    if not known:
        return 0
    all_rows = reduce(DataFrame.unionByName, known)
    if quarantine is None:
        return all_rows.count()
    all_rows = all_rows.persist()
    try:
        count = all_rows.count()
        if count or quarantine.is_whole:
            quarantine_rows(
                session,
                quarantine.target,
                all_rows,
                pipeline=quarantine.pipeline,
                batch=quarantine.batch,
                is_whole=quarantine.is_whole,
            )
    finally:
        all_rows.unpersist()
    return count


def _described(failing: FailingRows, rows: DataFrame) -> DataFrame:
    """The rows with the columns of the quarantine, which has one position; those of other tables are in the key."""
    places: dict[str, Column] = {}
    keys = []
    for (table, name), shown in zip(failing.columns, rows.columns[1:], strict=True):
        if name in _POSITION and name not in places:
            places[name] = col(shown)
            continue
        keys.append(
            F.struct(
                F.lit(table or None).cast("string").alias("table"),
                F.lit(name.removeprefix("__")).alias("column"),
                col(shown).cast("string").alias("value"),
            )
        )
    return rows.select(
        F.array(*map(F.lit, failing.sources)).alias("tables"),
        F.array(*keys).cast(ROW_KEY).alias("row_key"),
        *(
            places.get(column.name, F.lit(None)).cast(spark_type(column.type)).alias(column.key)
            for column in POSITION_COLUMNS
        ),
        col(REASON).alias("reason"),
    )


@contextmanager
def source_errors(spark: SparkSession, name: str, plan: InsertPlan, computed: Computed) -> Iterator[None]:
    """Raise the errors of an INSERT with the way out of a script: GapError where versions of a source are gone,
    BadRecordError for a row or group for which the query fails, TableError where that is not known."""
    changed = [source for source in computed.ranges.values() if source.has_commits]
    tables = " and ".join(str(source.table) for source in changed)
    first, last = (min((s.first for s in changed), default=0), max((s.last for s in changed), default=0))
    try:
        with feed_errors(tables, first, last):
            yield
    except GapError as gap:
        raise GapError(f"INSERT {name}: {str(gap).replace(REPUBLISH, _RECOMPUTE)}") from gap
    except ENGINE_ERRORS as error:
        raised = data_reason(error)  # also that of a window for a row without a time
        if raised is None:
            raise
        row = _first_row(spark, plan, computed)
        if row is None:
            raise TableError(f"INSERT {name}: {raised}") from error
        raise BadRecordError(
            f"INSERT {name}: {row}. Nothing of this batch was written. Correct the row at its source; or let the "
            "expression be NULL (TRY_CAST(x AS INT), 1 / NULLIF(x, 0)); or leave such rows out: "
            "SET 'bridge.bad-records' = 'quarantine' stores them in a Delta table, 'skip' counts them only"
        ) from error


def _first_row(spark: SparkSession, plan: InsertPlan, computed: Computed) -> str | None:
    """The place and key of a row or group for which the query fails, and why; None where there is none."""
    session = child_session(spark)
    for failing in plan.failing:
        found = failing_rows(session, plan, failing, computed)
        row = found.head() if found is not None else None
        if row is not None:
            values = dict(zip(failing.columns, list(row)[1:], strict=True))
            of = [_shown(plan, name, values) for name in failing.sources]
            group = ", ".join(f"{name}: {value}" for (table, name), value in values.items() if not table)
            return f"{' and '.join(of)}{f', group ({group})' if group else ''}: {row[REASON]}"
    return None


def _shown(plan: InsertPlan, source: str, values: Mapping[tuple[str, str], object]) -> str:
    table = next(s for s in plan.sources if s.name == source)
    key = ", ".join(f"{name}: {values[source, name]}" for name in table.key if (source, name) in values)
    place = f"{table.connector} {table.place}"
    if values.get((source, _OFFSET)) is not None:
        topic, partition, offset = (values[source, name] for name in (_TOPIC, _PARTITION, _OFFSET))
        place = f"{topic}-{partition} at offset {offset}"
    return f"{place}, row ({key})" if key else place
