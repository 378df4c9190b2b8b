"""Results are stored, read back as history, and queried as docs/quality-results.md says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.definition import DeltaTarget
from bridge.delta.change_counts import ChangeCounts
from bridge.delta.result_table import QUALITY_COLUMNS
from bridge.pipelines.runtime.check_results import earlier_results, history_of, store_results
from bridge.quality.charts import charts
from bridge.quality.verdict import History, PastRun, Verdict
from tests.quality.verdicts import FAILED, MET, RAISED, STARTED, verdict

DOCS = (Path(__file__).parents[3] / "docs" / "quality-results.md").read_text(encoding="utf-8")
QUERIES = dict(re.findall(r"^### ([^\n]+)\n\n```sql\n(.*?)```", DOCS, re.MULTILINE | re.DOTALL))


def run(number: int, *, unique: bool, fresh: bool, **more: Any) -> tuple[Verdict, PastRun]:
    """A run `number` hours after STARTED; one expectation is always met."""
    outcomes = (MET, replace(FAILED, success=unique), replace(RAISED, success=fresh))
    made = verdict(*outcomes)
    found = replace(
        made,
        row_count=100 + number,
        started_at=STARTED + timedelta(hours=number),
        subject=replace(
            made.subject, run=f"run-{number}", version=number, trigger=more.pop("trigger", "check")
        ),
    )
    found = replace(found, subject=replace(found.subject, **more))
    arrived = STARTED + timedelta(minutes=number)
    return found, history_of(
        found, ChangeCounts(number, 2 * number, 0, arrived), lag=number % 2 or None, event_time=arrived
    )


RUNS = [
    run(1, unique=True, fresh=False),
    run(2, unique=False, fresh=False),
    run(3, unique=False, fresh=True),
    run(4, unique=False, fresh=False),
    run(5, unique=True, fresh=True, since=4),
    run(6, unique=True, fresh=True, trigger="gate"),
    run(7, unique=True, fresh=True, pipeline="other"),
]
"""The last three are no part of the pipeline's trends."""


@pytest.fixture(scope="module")
def target(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaTarget]:
    place = DeltaTarget(path=str(tmp_path_factory.mktemp("lake") / "orders_quality"))
    for found, now in RUNS:
        store_results(spark, place, found, now)
    spark.read.format("delta").load(str(place.path)).createOrReplaceTempView("orders_quality")
    yield place
    spark.catalog.dropTempView("orders_quality")


@pytest.fixture(scope="module")
def history(spark: SparkSession, target: DeltaTarget) -> History:
    return earlier_results(spark, target, "orders", "orders")


def test_what_was_kept_comes_back_oldest_first(history: History) -> None:
    assert history.runs == tuple(now for _, now in RUNS[:4])


def test_each_expectation_has_its_course(history: History) -> None:
    def at(number: int) -> datetime:
        return STARTED + timedelta(hours=number)

    unique, fresh, met = (history.trend(o) for o in (FAILED, RAISED, MET))
    assert unique.results == ((at(1), True), (at(2), False), (at(3), False), (at(4), False))
    assert (unique.last_passed, unique.failing_since) == (at(1), at(2))
    assert (fresh.last_passed, fresh.failing_since) == (at(3), at(4))
    assert (met.last_passed, met.failing_since) == (at(4), None)
    assert history.trend(replace(MET, title="another")).results == ()


def test_no_table_is_no_history(spark: SparkSession, tmp_path: Path) -> None:
    assert earlier_results(spark, DeltaTarget(path=str(tmp_path / "none")), "orders", "orders") == History()


def test_the_documented_queries_give_what_the_report_draws(
    spark: SparkSession, target: DeltaTarget, history: History
) -> None:
    found = {title: [_plain(tuple(r)) for r in spark.sql(q).collect()] for title, q in QUERIES.items()}
    assert [chart.title for chart in charts(history.runs)] == list(found)[:4]
    runs = history.runs
    assert found == {
        "Rows in the table": [(p.started, p.rows) for p in runs],
        "Behind the topic": [(p.started, p.lag) for p in runs],
        "Expectations not met": [(p.started, p.critical, p.warnings, p.infos) for p in runs],
        "Changes between runs": [(p.started, p.inserted, p.updated, p.deleted) for p in runs],
        "What is new in the last run": [(RAISED.title, RAISED.observed)],
        "Since when it fails": [
            (o.title, history.trend(o).failing_since, len(runs) - k) for o, k in ((RAISED, 3), (FAILED, 1))
        ],
        "Alert": [(runs[-1].critical, runs[-1].started)],
    }


def test_the_documented_columns_are_those_of_the_table() -> None:
    assert re.findall(r"^\| `(\w+)` \| `(.+?)` \| (.+) \|$", DOCS, re.MULTILINE) == [
        (name, type, meaning) for name, (type, meaning) in QUALITY_COLUMNS.items()
    ]


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.astimezone(timezone.utc) if isinstance(v, datetime) else v for v in row)
