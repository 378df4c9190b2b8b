"""Runs a suite on a DataFrame with Great Expectations, in few queries that collect few rows.

An expectation whose metrics are not all available fails. Great Expectations reads `2024-01-01` as a date and
`2024-01-01T12:00:00` as a point in time. Python compares neither one with the other (TypeError), nor a point in time
that has a zone with one that has none: `with_comparable_bounds` gives bounds the type of their column.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from bridge.errors import BridgeError, TableError
from bridge.quality.facts import NO_FACTS, Facts
from bridge.quality.gx import quiet
from bridge.quality.suite import Suite
from bridge.quality.verdict import Outcome, Subject, Verdict
from bridge.quality.wording import expected_text, observed_text, sentence

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

_EXAMPLES = 5
_COLUMN_ARGUMENTS = ("column", "column_list", "column_A", "column_B", "column_set")
_UNKNOWN = Subject()
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def run(
    frame: DataFrame,
    suite: Suite,
    *,
    key: Sequence[str] = (),
    subject: Subject = _UNKNOWN,
    facts: Facts = NO_FACTS,
    watermark: str | None = None,
) -> Verdict:
    """Evaluates every expectation of `suite` on `frame`; those about topic or history use `facts`. `watermark` names
    the column whose newest value becomes `Verdict.event_time`.

    Counts in Spark, with one query that reads the frame once, within the limits that `OneScan` documents; the frame is
    not persisted. Collects only the `key` columns of up to five rows for each failed expectation, in further queries
    with a limit.

    An expectation that raises an exception is a failed outcome with its reason, and the others still run. Raises
    TableError when a key column is not in the frame.
    """
    for name in key:
        if name not in frame.columns:
            table = subject.table or "the table"
            raise TableError(f"key column {name!r} is not in {table}; it has {', '.join(frame.columns)}")
    started, clock = datetime.now(timezone.utc), time.monotonic()
    with quiet():
        check = _Check(frame, tuple(key), facts, watermark)
        outcomes = check.outcomes(suite.expectations)
        rows, newest = check.totals()
    success = all(o.success for o in outcomes)
    return Verdict(
        suite.name, success, outcomes, rows, started, time.monotonic() - clock, subject, event_time=newest
    )


class _Check:
    def __init__(self, frame: DataFrame, key: tuple[str, ...], facts: Facts, watermark: str | None) -> None:
        from great_expectations.validator.metric_configuration import MetricConfiguration
        from great_expectations.validator.metrics_calculator import MetricsCalculator

        from bridge.quality.expectations import FACTS_ATTRIBUTE
        from bridge.quality.one_scan import Newest, OneScan

        self.frame, self.key = frame, key
        # With a session and without persist the engine changes neither Spark's settings nor its cache.
        self.engine = OneScan(spark=frame.sparkSession, persist=False)
        self.engine.load_batch_data("frame", frame)
        setattr(self.engine, FACTS_ATTRIBUTE, facts)
        self.calculator = MetricsCalculator(self.engine, show_progress_bars=False)
        self.base_metrics = [MetricConfiguration("table.row_count", {})]
        if watermark is not None:
            self.base_metrics.append(MetricConfiguration(Newest.metric_name, {}, {"column": watermark}))

    def totals(self) -> tuple[int, datetime | None]:
        """Returns the number of rows and the newest value of the watermark column. Call it after `outcomes`."""
        metrics = self._metrics([], {})
        rows, *newest = (metrics[metric.id] for metric in self.base_metrics)
        micros = newest[0] if newest else None
        return rows, None if micros is None else _EPOCH + timedelta(microseconds=micros)

    def outcomes(self, written: Sequence[Expectation]) -> tuple[Outcome, ...]:
        expectations = [with_comparable_bounds(e, self.frame.schema) for e in written]
        # Without examples the first pass consists of counts only.
        counts = {"result_format": "BASIC", "partial_unexpected_count": 0}
        answers = self._answers(expectations, counts)
        outcomes = [self._outcome(e, a) for e, a in zip(written, answers, strict=True)]
        failed = [
            i for i, o in enumerate(outcomes) if not o.success and o.unexpected_count and not o.example_keys
        ]
        if failed and self.key:
            with_keys = {
                "result_format": "SUMMARY",
                "partial_unexpected_count": _EXAMPLES,
                "unexpected_index_column_names": list(self.key),
                "return_unexpected_index_query": False,
            }
            answers_with_keys = self._answers([expectations[i] for i in failed], with_keys)
            for i, answer in zip(failed, answers_with_keys, strict=True):
                outcomes[i] = replace(outcomes[i], example_keys=self._keys(answer))
        return tuple(outcomes)

    def _answers(
        self, expectations: Sequence[Expectation], result_format: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Returns {"success", "result"} or {"error"} per expectation. Evaluates all of them together; if that fails,
        again without those that fail before a row is read; and if that fails, too, one by one."""
        try:
            metrics = self._metrics(expectations, result_format)
        except Exception:
            errors = [self._planning_error(e, result_format) for e in expectations]
            if not any(errors):
                return [self._answer_alone(e, result_format) for e in expectations]
            sound = [e for e, flaw in zip(expectations, errors, strict=True) if flaw is None]
            answers = iter(self._answers(sound, result_format))
            return [next(answers) if flaw is None else {"error": flaw} for flaw in errors]
        return [self._answer(e, result_format, metrics) for e in expectations]

    def _planning_error(self, expectation: Expectation, result_format: Mapping[str, Any]) -> Exception | None:
        """Returns the exception that an expectation raises before its counts are queried, or None."""
        from bridge.quality.one_scan import PlannedMetrics

        self.engine.plan_only = True
        try:
            self._metrics([expectation], result_format)
        except PlannedMetrics:
            return None
        except Exception as error:
            return error
        finally:
            self.engine.plan_only = False
        return None

    def _answer_alone(self, expectation: Expectation, result_format: Mapping[str, Any]) -> dict[str, Any]:
        try:
            metrics = self._metrics([expectation], result_format)
        except Exception as error:
            return {"error": error}
        return self._answer(expectation, result_format, metrics)

    def _metrics(
        self, expectations: Sequence[Expectation], result_format: Mapping[str, Any]
    ) -> dict[Any, Any]:
        from bridge.quality.one_scan import without_row_count_dependencies

        needed: list[Any] = [*self.base_metrics]
        for e in expectations:
            dependencies = e.get_validation_dependencies(self.engine, {"result_format": dict(result_format)})
            needed += dependencies.get_metric_configurations()
        # With catch_exceptions, Great Expectations returns the metrics that it has and omits the others, and an
        # expectation without its counts passes.
        runtime_configuration = {"catch_exceptions": False}
        graph = without_row_count_dependencies(
            self.calculator.build_metric_dependency_graph(needed, runtime_configuration), self.engine
        )
        metrics, _ = self.calculator.resolve_validation_graph_and_handle_aborted_metrics_info(
            graph, runtime_configuration
        )
        return metrics

    def _answer(
        self, e: Expectation, result_format: Mapping[str, Any], metrics: dict[Any, Any]
    ) -> dict[str, Any]:
        try:
            answer = e.metrics_validate(metrics, {"result_format": dict(result_format)}, self.engine)
        except Exception as error:
            return {"error": error}
        return {"success": bool(answer.success), "result": answer.result or {}}

    def _outcome(self, expectation: Expectation, answer: Mapping[str, Any]) -> Outcome:
        config = expectation.configuration
        columns = columns_of(config.kwargs)
        result = answer.get("result", {})
        return Outcome(
            type=config.type,
            title=title_of(expectation),
            columns=columns,
            success=answer.get("success", False),
            observed=observed_text(result),
            expected=expected_text(config.type, config.kwargs),
            unexpected_count=result.get("unexpected_count"),
            unexpected_percent=result.get("unexpected_percent"),
            example_keys=self._keys(answer),
            severity=config.severity.value,
            reason=reason_of(answer["error"], config.kwargs, self.frame.columns)
            if "error" in answer
            else None,
        )

    def _keys(self, answer: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
        """Returns the key columns, and no others, of the example rows of a result."""
        types = {f.name: f.dataType for f in self.frame.schema}
        rows = answer.get("result", {}).get("partial_unexpected_index_list") or []
        keys = [{n: _json(row[n], types[n]) for n in self.key if n in row} for row in rows[:_EXAMPLES]]
        return tuple(k for k in keys if k)


def reason_of(error: BaseException, kwargs: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Explains why an expectation with these arguments could not be evaluated on `columns`, without values of rows."""
    for name in columns_of(kwargs):
        if name not in columns and name.split(".")[0] not in columns:
            return f"column {name!r} is not in the table; it has {', '.join(columns)}"
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, PySparkException):
        # Its message quotes the value that caused it.
        return f"Spark raised {error.getCondition() or type(error).__name__}"
    lines = str(error).strip().splitlines() or [""]
    if isinstance(error, BridgeError):
        return lines[0]
    return f"{type(error).__name__}: {lines[0][:300]}"


def title_of(expectation: Expectation) -> str:
    """Returns the expectation as one sentence: its description, or the one that Great Expectations renders."""
    if expectation.description:
        return expectation.description
    shown = expectation.copy()
    shown.render()
    title = sentence(shown.rendered_content)
    condition = getattr(expectation, "row_condition", None)
    written = getattr(condition, "pass_through_filter", None)
    # A condition in SQL is shown as it was written, without the class that holds it. Great Expectations changes AND.
    shown_as = re.compile(r"PassThrough\(([\"']).*\1\)", re.DOTALL)
    return title if written is None else shown_as.sub(lambda _: " ".join(written.split()), title)


def columns_of(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the columns that an expectation with these arguments is about, each once."""
    names: list[str] = []
    for argument in _COLUMN_ARGUMENTS:
        value = kwargs.get(argument) or []
        names += [value] if isinstance(value, str) else [n for n in value if n not in names]
    return tuple(names)


def _json(value: Any, type: T.DataType) -> Any:
    """Converts a key value to JSON: points in time as ISO 8601 (UTC where they have a zone), bytes as hex."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, datetime) and isinstance(type, T.TimestampType):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value)


_BOUNDS = ("min_value", "max_value")


def with_comparable_bounds(expectation: Expectation, schema: T.StructType) -> Expectation:
    """Returns the expectation with bounds in the type that Spark gives the column's values: a date is the beginning of
    its day, in UTC for a column with a zone. Other expectations and columns are returned as they are."""
    column = getattr(expectation, "column", None)
    type = next((f.dataType for f in schema if f.name == column), None)
    if not isinstance(type, T.TimestampType | T.TimestampNTZType | T.DateType):
        return expectation
    given = {name: getattr(expectation, name, None) for name in _BOUNDS}
    made = {name: _bound(value, type) for name, value in given.items() if isinstance(value, date)}
    return expectation.copy(update=made) if made else expectation


def _bound(value: date, type: T.DataType) -> date:
    if isinstance(type, T.DateType):
        if isinstance(value, datetime) and value.tzinfo is None and value.time() == time_of_day():
            return value.date()
        return value
    if not isinstance(value, datetime):
        value = datetime.combine(value, time_of_day(), timezone.utc)
        if isinstance(type, T.TimestampNTZType):
            return value.replace(tzinfo=None)
    if value.tzinfo is None:
        return value
    # Spark's Python has points in time without a zone: in that of the process, and in UTC for TIMESTAMP_NTZ.
    zone = timezone.utc if isinstance(type, T.TimestampNTZType) else None
    return value.astimezone(zone).replace(tzinfo=None)
