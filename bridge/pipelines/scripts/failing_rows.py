"""Rows of sources for which an INSERT fails: named in an error, or left out, counted and quarantined.

The query itself leaves them out (see `sql.failing_rows`), so that every way of a refresh comes to the same rows. They
are looked for in the rows that the sources got: where a run stops, and where they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.columns import col, spark_type
from bridge.definition import DeltaTarget
from bridge.delta.change_feed import feed_errors
from bridge.delta.quarantine import ROW_KEY, quarantine_rows
from bridge.errors import REPUBLISH, BadRecordError, GapError, TableError
from bridge.pipelines.runtime.spark_errors import data_reason
from bridge.pipelines.scripts.added_groups import query_over
from bridge.pipelines.scripts.source_tables import SourceRange
from bridge.session import child_session
from bridge.sql import InsertPlan
from bridge.sql.failing_rows import REASON, FailingRows
from bridge.sql.positions import POSITION_COLUMNS

__all__ = ["Quarantine", "failing_rows", "left_out", "source_errors"]

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


def failing_rows(
    session: SparkSession, failing: FailingRows, ranges: Mapping[str, SourceRange]
) -> DataFrame | None:
    """The rows for which a query fails, of those that its sources got in `ranges`, joined with all rows of its other
    sources; columns as `FailingRows` has them. None if the sources got none. `session` is a child session, in which
    the sources become views."""
    rows = {name: ranges[name].rows(session) for name in failing.sources}
    found = [
        query_over(session, failing.spark_sql, rows | {name: ranges[name].new_rows(session)})
        for name in failing.sources
        if ranges[name].has_commits
    ]
    if not found:
        return None
    both = reduce(DataFrame.unionByName, found)
    return both if failing.has_no_key or len(found) == 1 else both.distinct()


def left_out(
    spark: SparkSession, plan: InsertPlan, ranges: Mapping[str, SourceRange], quarantine: Quarantine | None
) -> int:
    """How many rows the sources got in `ranges` that the query leaves out: a job for all SELECTs that may fail, and
    none where such rows stop the run. They are in the `quarantine` then, if there is one."""
    asked = [failing for failing in plan.failing if not failing.stop]
    session = child_session(spark) if asked else spark
    found = [(failing, failing_rows(session, failing, ranges)) for failing in asked]
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
    """The rows with the columns of the quarantine."""
    places = {name: col(f) for (_, name), f in zip(failing.columns, rows.columns[1:], strict=True)}
    keys = [
        F.struct(
            F.lit(table).alias("table"),
            F.lit(name).alias("column"),
            col(shown).cast("string").alias("value"),
        )
        for (table, name), shown in zip(failing.columns, rows.columns[1:], strict=True)
        if name not in _POSITION
    ]
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
def source_errors(
    spark: SparkSession, name: str, plan: InsertPlan, ranges: Mapping[str, SourceRange]
) -> Iterator[None]:
    """Raise the errors of an INSERT with the way out of a script: GapError where versions of a source are gone,
    BadRecordError for a row for which the query fails, TableError where that row is not known."""
    changed = [source for source in ranges.values() if source.has_commits]
    tables = " and ".join(str(source.table) for source in changed)
    first, last = (min((s.first for s in changed), default=0), max((s.last for s in changed), default=0))
    try:
        with feed_errors(tables, first, last):
            yield
    except GapError as gap:
        raise GapError(f"INSERT {name}: {str(gap).replace(REPUBLISH, _RECOMPUTE)}") from gap
    except (PySparkException, Py4JJavaError) as error:  # of two stages that fail at once py4j raises its own
        raised = data_reason(error)  # also that of a window for a row without a time
        if raised is None:
            raise
        row = _first_row(spark, plan, ranges)
        if row is None:
            raise TableError(f"INSERT {name}: {raised}") from error
        raise BadRecordError(
            f"INSERT {name}: {row}. Nothing of this batch was written. Correct the row at its source; or let the "
            "expression be NULL (TRY_CAST(x AS INT), 1 / NULLIF(x, 0)); or leave such rows out: "
            "SET 'bridge.bad-records' = 'quarantine' stores them in a Delta table, 'skip' counts them only"
        ) from error


def _first_row(spark: SparkSession, plan: InsertPlan, ranges: Mapping[str, SourceRange]) -> str | None:
    """The place and key of a row for which the query fails, and why; None where there is none with a key."""
    session = child_session(spark)
    for failing in plan.failing:
        found = failing_rows(session, failing, ranges)
        row = found.head() if found is not None else None
        if row is not None:
            values = dict(zip(failing.columns, map(str, list(row)[1:]), strict=True))
            of = [_shown(plan, name, values) for name in failing.sources]
            return f"{' and '.join(of)}: {row[REASON]}"
    return None


def _shown(plan: InsertPlan, source: str, values: Mapping[tuple[str, str], str]) -> str:
    table = next(s for s in plan.sources if s.name == source)
    key = ", ".join(f"{name}: {values[source, name]}" for name in table.key if (source, name) in values)
    place = f"{table.connector} {table.place}"
    if (source, _OFFSET) in values:
        topic, partition, offset = (values[source, name] for name in (_TOPIC, _PARTITION, _OFFSET))
        place = f"{topic}-{partition} at offset {offset}"
    return f"{place}, row ({key})" if key else place
