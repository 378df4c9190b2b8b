"""Checks a table, or its changed rows (`bridge check --since`): Delta -quality suite-> verdict, results and report."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from bridge.backend import ENGINE_ERRORS, backend_of
from bridge.columns import KIND, POSITION, col
from bridge.config.paths import is_uri
from bridge.config.storage_locations import default_report
from bridge.definition import Definition, OnFailure
from bridge.delta import change_feed
from bridge.delta.change_counts import count_changes
from bridge.delta.delta_errors import error_names, feed_errors
from bridge.delta.table import Table
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on, sql_name
from bridge.errors import BridgeError, DefinitionError, GapError, KafkaError, TableError
from bridge.kafka import admin
from bridge.metrics import BatchReport, RunName, ignore, now_ms
from bridge.metrics.datasets import Assertion
from bridge.metrics.monitoring import monitored
from bridge.offsets import Offsets
from bridge.pipelines.quality.facts import facts_of
from bridge.pipelines.runtime.check_results import earlier_results, history_of, store_results
from bridge.pipelines.runtime.lineage import check_flow
from bridge.pipelines.runtime.preflight import open_ingested_table, open_whole_table
from bridge.pipelines.runtime.storage_checks import check_storage_locations
from bridge.quality import suite
from bridge.quality.report import html, write
from bridge.quality.run import run
from bridge.quality.scan_cost import metered
from bridge.quality.suite import Suite
from bridge.quality.summary import STATES, state_of
from bridge.quality.verdict import History, PastRun, Subject, Verdict
from bridge.rows import RowKind
from bridge.small_files import TextFile
from bridge.version import own_version

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


_BROKER_TIMEOUT_SECONDS = 5.0
"""How long a broker may take to return the topic's end; the check continues without it."""


@dataclass(frozen=True)
class Checked:
    """The verdict of a check, the results of earlier ones, and the file of its report."""

    verdict: Verdict
    version: int
    report: str
    """A path, or a URI on an object store."""
    suite: Suite
    history: History
    now: PastRun
    """This run, in the form of the earlier ones."""


def check(
    spark: SparkSession,
    definition: Definition,
    *,
    since: int | None = None,
    trigger: str = "check",
    metrics: str | None = None,
) -> Checked:
    """Run the pipeline's suite on the newest version of its table, write the HTML report and store the results.

    The version is fixed before the first expectation runs, so all of them judge the same rows. With `since` only rows
    that changed after that version are judged; expectations that need the whole table (see `split_by_scope`) are judged
    on it all the same, and the report says so. The caller decides what a failure means (`on-failure`).

    Raises DefinitionError without a `quality` section, TableError when the results cannot be stored: the report is
    written then, and the message contains the result. `metrics` is where the metrics of the check are shown: not at
    `run.metrics`, which a run of the pipeline may use meanwhile.
    """
    monitoring = replace(definition.run.monitoring, metrics=metrics)
    name = definition.run_name("check")
    with monitored(monitoring, ignore, name, flow=partial(check_flow, spark, definition)) as listen:
        checked = _check(spark, definition, since, trigger)
        listen(_report(name, checked, definition))
    return checked


def _check(spark: SparkSession, definition: Definition, since: int | None, trigger: str) -> Checked:
    quality = definition.quality
    if quality is None:
        raise DefinitionError(
            f"{definition.name!r} has no `quality` section: add `quality: {{suite: expectations/NAME.json}}`"
        )
    check_storage_locations(spark, definition)
    expectations = load_suite(spark, quality.suite)
    table = open_whole_table(spark, definition)
    history = earlier_results(spark, quality.results, definition.name, expectations.name)
    version, ingested = change_feed.latest_version(table), open_ingested_table(table, definition)
    subject = Subject(
        pipeline=definition.name,
        topic=definition.topic.title,
        table=str(table),
        version=version,
        offsets=ingested[0].offsets if ingested else None,
        since=since,
        suite_file=quality.suite,
        run=uuid.uuid4().hex,
        trigger=trigger,
        bridge=own_version(),
    )
    with metered(spark, f"bridge check {definition.name}") as meter:
        verdict = _run_suite(table, definition, expectations, subject)
        verdict = replace(verdict, cost=meter.read())
    last = history.runs[-1] if history.runs else None
    now = history_of(
        verdict,
        count_changes(table, last.version if last else None, version),
        lag=_lag(definition, subject.offsets),
        event_time=verdict.event_time,
    )
    if now.arrival is None and last is not None:
        now = replace(now, arrival=last.arrival)
    file = quality.report or default_report(definition)
    write_report_file(spark, html(verdict, history, now), file)
    try:
        store_results(spark, quality.results, verdict, now)
    except TableError as error:
        outcome = f"{len(verdict.failed)} of {len(verdict.expectations)} expectations failed"
        raise TableError(f"{error}. The check itself is done: {outcome}; see {file}") from error
    return Checked(verdict, version, file, expectations, history, now)


def _report(name: RunName, checked: Checked, definition: Definition) -> BatchReport:
    states = Counter(map(state_of, checked.verdict.expectations))
    fails = definition.quality is not None and definition.quality.on_failure is OnFailure.FAIL
    assertions = (
        Assertion(outcome.type, outcome.success, column, fails and outcome.severity == "critical")
        for outcome in checked.verdict.expectations
        for column in outcome.columns or (None,)
    )
    return BatchReport(
        pipeline=name.pipeline,
        verb=name.verb,
        batch=0,
        topic=name.topic,
        version=checked.version,
        failed_expectations=len(checked.verdict.failed),
        expectations={state: states[state] for state in STATES},
        assertions=tuple(assertions),
        committed_ms=now_ms(),
        seconds=checked.verdict.seconds,
    )


def _run_suite(table: Table, definition: Definition, suite: Suite, subject: Subject) -> Verdict:
    version, since, key = subject.version, subject.since, definition.row_key
    assert version is not None
    watermark = definition.topic.schema.watermark
    column = watermark.column if watermark else None
    facts = facts_of(table.spark, definition, table, version, subject.offsets)
    with feed_errors(table, version, version):
        rows = table.live(table.read({"versionAsOf": str(version)}))
        whole = rows.select(*(col(name) for name in table.columns))
        if since is None:
            return run(whole, suite, key=key, subject=subject, facts=facts, watermark=column)
        by_row, by_table = split_by_scope(suite)
        changed = changed_rows(table, key, since, version)
        verdict = run(changed, select_expectations(suite, by_row), key=key, subject=subject)
        rest = run(
            whole,
            select_expectations(suite, by_table),
            key=key,
            subject=subject,
            facts=facts,
            watermark=column,
        )
    none = "" if verdict.row_count else "no row to check"
    outcomes = {
        n: replace(o, evaluated_on="changes", observed=o.observed or none)
        for n, o in zip(by_row, verdict.expectations, strict=True)
    }
    outcomes |= dict(zip(by_table, rest.expectations, strict=True))
    return replace(
        verdict,
        success=verdict.success and rest.success,
        expectations=tuple(outcomes[n] for n in range(len(suite))),
        row_count=rest.row_count,
        changed_rows=verdict.row_count,
        seconds=verdict.seconds + rest.seconds,
        event_time=rest.event_time,
    )


def _lag(definition: Definition, offsets: Offsets | None) -> int | None:
    """Offsets between the table and the topic's end; None if no ingest writes the table, or no broker answers."""
    if offsets is None:
        return None
    try:
        topic = admin.resolve(definition.topic, timeout=_BROKER_TIMEOUT_SECONDS)
        return offsets.lag(admin.describe(topic, timeout=_BROKER_TIMEOUT_SECONDS).end)
    except KafkaError:
        return None


def write_report_file(spark: SparkSession, text: str, place: str) -> None:
    """Write the report to a path of the driver's disk or to a URI. As `write_file`."""
    write_file(spark, text, place, "the quality report")


def write_file(spark: SparkSession, text: str, place: str, what: str) -> None:
    """Write a file to a path of the driver's disk or to a URI, by Hadoop's client.

    A reader sees the old file or the complete new one (in HDFS perhaps a part of it). Raises BridgeError, which calls
    the file `what`, when it cannot be written; it has the classes of the store's exceptions, not their texts.
    """
    if not is_uri(place):
        write(text, place, what)
        return
    try:
        local = backend_of(spark).files.local_path(place)
        if local is None:
            TextFile(spark, place).write(text)
    except ENGINE_ERRORS as failed:
        names = ", ".join(sorted(error_names(failed)))
        raise BridgeError(f"{place}: {what} cannot be written: {names}") from failed
    if local is not None:
        write(text, local, what)


def load_suite(spark: SparkSession, file: str) -> Suite:
    """Load a suite from a path or a URI. Raises DefinitionError as `suite.load`; of a store's exceptions it has the
    classes, not the texts."""
    return suite.parse(_stored_text(spark, file), file) if is_uri(file) else suite.load(file)


def refuse_existing(spark: SparkSession, file: str, *, overwrite: bool) -> None:
    """Raise DefinitionError if the file exists and may not be overwritten."""
    if not overwrite and _exists(spark, file):
        raise DefinitionError(
            f"{file} exists and was not changed: replace it with `--overwrite`, or set quality.suite to another file"
        )


def write_suite_file(spark: SparkSession, text: str, file: str) -> None:
    """Write a suite; a reader sees the old one or the complete new one. Raises BridgeError as `write_file`."""
    write_file(spark, text, file, "the suite")


def _exists(spark: SparkSession, file: str) -> bool:
    if not is_uri(file):
        return Path(file).exists()
    try:
        return TextFile(spark, file).read() is not None
    except ENGINE_ERRORS as failed:
        raise _unreadable(file, failed) from failed


def _stored_text(spark: SparkSession, file: str) -> str:
    try:
        text = TextFile(spark, file).read()
    except ENGINE_ERRORS as failed:
        raise _unreadable(file, failed) from failed
    if text is None:
        raise DefinitionError(f"{file}: the quality suite cannot be read: there is no such file")
    return text


def _unreadable(file: str, failed: Exception) -> DefinitionError:
    names = ", ".join(sorted(error_names(failed)))
    return DefinitionError(f"{file}: the quality suite cannot be read: {names}; check the URI and the login")
