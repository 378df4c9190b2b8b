"""Stores the results of checks and gates in the results table, and reads the history of earlier checks."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, overload

from pyspark.sql import Column, Row, SparkSession, Window
from pyspark.sql import functions as F

from bridge.definition import Definition, DeltaTarget
from bridge.delta.change_counts import ChangeCounts
from bridge.delta.delta_errors import table_errors
from bridge.delta.result_table import QUALITY_RESULTS
from bridge.quality.gate_rules import RuleCount
from bridge.quality.verdict import ExpectationTrend, History, PastRun, Verdict
from bridge.version import own_version

_HISTORY_RUNS = 30
"""The number of earlier runs that a report shows."""


def store_results(spark: SparkSession, target: DeltaTarget, verdict: Verdict, now: PastRun) -> None:
    """Append the outcomes of `verdict`, with the numbers of its run (`now`), to the results at `target`, in one commit.

    Raises TableError when they cannot be stored.
    """
    subject = verdict.subject
    run = {
        "run_id": subject.run,
        "pipeline": subject.pipeline,
        "suite": verdict.suite,
        "started": verdict.started_at,
        "seconds": verdict.seconds,
        "trigger": subject.trigger,
        "since_version": subject.since,
        "changed_rows": verdict.changed_rows,
        "table": subject.table,
        "table_version": subject.version,
        "topic": subject.topic,
        "offsets": None if subject.offsets is None else subject.offsets.to_json(),
        "row_count": verdict.row_count,
        "lag": now.lag,
        "inserted": now.inserted,
        "updated": now.updated,
        "deleted": now.deleted,
        "newest_event_time": now.event_time,
        "newest_arrival": now.arrival,
        "bridge_version": subject.bridge,
    }
    rows: list[dict[str, Any]] = [
        {
            **run,
            "number": number,
            "expectation": o.type,
            "title": o.title,
            "columns": list(o.columns),
            "severity": o.severity,
            "success": o.success,
            "observed": o.observed,
            "expected": o.expected,
            "unexpected_count": o.unexpected_count,
            "unexpected_percent": None if o.unexpected_percent is None else float(o.unexpected_percent),
            "reason": o.reason,
            "judged": o.evaluated_on,
        }
        for number, o in enumerate(verdict.expectations, 1)
    ]
    QUALITY_RESULTS.append(spark, target, rows)


def store_gate_results(
    spark: SparkSession, definition: Definition, suite: str, counts: Sequence[RuleCount]
) -> None:
    """Append the `counts` of a gate for one batch to the pipeline's results, in one commit.

    Writes a row for each expectation of the gate, in their order, whether it is met or not. Raises TableError when they
    cannot be stored.
    """
    assert definition.quality is not None
    run = {
        "run_id": uuid.uuid4().hex,
        "pipeline": definition.name,
        "suite": suite,
        "started": datetime.now(timezone.utc),
        "trigger": "gate",
        "table": str(definition.delta),
        "topic": definition.topic.title,
        "bridge_version": own_version(),
        "judged": "batch",
    }
    rows: list[dict[str, Any]] = [
        {
            **run,
            "number": number,
            "expectation": c.rule.type,
            "title": c.title,
            "columns": list(c.rule.columns),
            "severity": c.rule.severity,
            "success": c.success,
            "observed": f"{c.unexpected:,} of {c.evaluated:,} rows are not so",
            "expected": "all rows" if c.rule.mostly >= 1 else f"at least {c.rule.mostly:.0%} of rows",
            "unexpected_count": c.unexpected,
            "unexpected_percent": 100 * c.unexpected / c.evaluated if c.evaluated else 0.0,
            "changed_rows": c.evaluated,
        }
        for number, c in enumerate(counts, 1)
    ]
    QUALITY_RESULTS.append(spark, definition.quality.results, rows)


def earlier_results(spark: SparkSession, target: DeltaTarget, pipeline: str, suite: str) -> History:
    """Read the results of the newest runs of the suite on the whole table, in two queries; at most thirty runs."""
    frame = QUALITY_RESULTS.stored(spark, target)
    if frame is None:
        return History()
    whole = frame.where(
        (F.col("pipeline") == pipeline)
        & (F.col("suite") == suite)
        & F.col("since_version").isNull()
        & (F.col("trigger") != "gate")
    )
    at = F.struct("started", "run_id")
    with table_errors(target):
        runs = (
            whole.groupBy("run_id", "started")
            .agg(
                *(F.first(name).alias(name) for name in _RUN_COLUMNS),
                *(
                    F.count_if(_failed(severity)).alias(severity)
                    for severity in ("critical", "warning", "info")
                ),
                F.count(F.lit(1)).alias("total"),
            )
            .orderBy(at.desc())
            .limit(_HISTORY_RUNS)
            .collect()
        )
        if not runs:
            return History()
        by_expectation = Window.partitionBy("expectation", "title")
        last_passed = F.max(F.when(F.col("success"), F.col("started"))).over(by_expectation)
        is_after = last_passed.isNull() | (F.col("started") > last_passed)
        trends = (
            whole.select(
                "expectation",
                "title",
                "started",
                "success",
                last_passed.alias("passed"),
                is_after.alias("after"),
            )
            .groupBy("expectation", "title")
            .agg(
                F.first("passed").alias("passed"),
                F.min(F.when(F.col("after") & ~F.col("success"), F.col("started"))).alias("since"),
                F.slice(
                    F.reverse(F.sort_array(F.collect_list(F.struct("started", "success")))), 1, _HISTORY_RUNS
                ).alias("results"),
            )
            .collect()
        )
    return History(
        runs=tuple(_to_past_run(row) for row in reversed(runs)),
        trends={(row["expectation"], row["title"]): _to_trend(row) for row in trends},
    )


def history_of(
    verdict: Verdict, changes: ChangeCounts, *, lag: int | None = None, event_time: datetime | None = None
) -> PastRun:
    """The run that has just ended, in the form of the earlier ones."""
    counts = {s: sum(o.severity == s for o in verdict.failed) for s in ("critical", "warning", "info")}
    return PastRun(
        run=verdict.subject.run,
        started=verdict.started_at,
        version=verdict.subject.version,
        rows=verdict.row_count,
        lag=lag,
        critical=counts["critical"],
        warnings=counts["warning"],
        infos=counts["info"],
        total=len(verdict.expectations),
        inserted=changes.inserted,
        updated=changes.updated,
        deleted=changes.deleted,
        event_time=event_time,
        arrival=changes.arrival,
    )


_RUN_COLUMNS = (
    "table_version",
    "row_count",
    "lag",
    "inserted",
    "updated",
    "deleted",
    "newest_event_time",
    "newest_arrival",
)


def _failed(severity: str) -> Column:
    return ~F.col("success") & (F.col("severity") == severity)


def _to_past_run(row: Row) -> PastRun:
    return PastRun(
        run=row["run_id"],
        started=_utc(row["started"]),
        version=row["table_version"],
        rows=row["row_count"],
        lag=row["lag"],
        critical=row["critical"],
        warnings=row["warning"],
        infos=row["info"],
        total=row["total"],
        inserted=row["inserted"],
        updated=row["updated"],
        deleted=row["deleted"],
        event_time=_utc(row["newest_event_time"]),
        arrival=_utc(row["newest_arrival"]),
    )


def _to_trend(row: Row) -> ExpectationTrend:
    return ExpectationTrend(
        results=tuple((_utc(r["started"]), r["success"]) for r in reversed(row["results"])),
        last_passed=_utc(row["passed"]),
        failing_since=_utc(row["since"]),
    )


@overload
def _utc(moment: datetime) -> datetime: ...
@overload
def _utc(moment: None) -> None: ...
def _utc(moment: datetime | None) -> datetime | None:
    """Spark returns points in time without a zone, in that of the process."""
    return None if moment is None else moment.astimezone(timezone.utc)
