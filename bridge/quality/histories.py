"""Defines the expectation on histories (`delta.history`): the rows of a key follow each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from bridge.columns import col
from bridge.history_columns import History
from bridge.quality.expectations import SentenceExpectation, counted_rows
from bridge.quality.gx import quiet
from bridge.quality.wording import counted

with quiet():
    from great_expectations.compatibility import pydantic
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

_EXAMPLES, _ROWS = 5, "__rows"
_NAMES = ("column_list", "valid_from", "valid_to", "current", "system_to")


class BrokenHistories(TableMetricProvider):
    """Counts rows that do not end where they may: {"keys": number of their keys, "rows": number, "examples": up to five
    of these keys}."""

    metric_name = "bridge.broken_histories"
    value_keys = _NAMES

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> dict[str, Any]:
        frame: DataFrame = execution_engine.get_domain_records(domain_kwargs=metric_domain_kwargs)
        names = list(metric_value_kwargs["column_list"])
        keys = list(map(col, names))
        start, end, current = (col(metric_value_kwargs[name]) for name in _NAMES[1:4])
        if (system_to := metric_value_kwargs["system_to"]) is not None:
            frame = frame.where(col(system_to).isNull())
        is_open, next_start = end.isNull(), F.lead(start).over(Window.partitionBy(*keys).orderBy(start))
        is_wrong = (
            F.coalesce(end > next_start, is_open & next_start.isNotNull())
            | F.coalesce(start >= end, F.lit(False))
            | ~current.eqNullSafe(is_open)
        )
        marked = frame.select(*keys, is_wrong.alias(_ROWS)).where(col(_ROWS))
        of_key = marked.groupBy(*keys).agg(F.count(F.lit(1)).alias(_ROWS))
        found, rows = of_key.agg(F.count(F.lit(1)), F.sum(_ROWS)).collect()[0]
        examples = of_key.orderBy(*keys).limit(_EXAMPLES).collect() if found else []
        return {
            "keys": found,
            "rows": rows or 0,
            "examples": [{n: row[n] for n in names} for row in examples],
        }


class ExpectHistoryToBeWhole(SentenceExpectation):
    """Expects that the rows of each key, the values of `column_list`, follow each other: a row ends after its start and
    not after the start of the next one, and only the last one may have no end, which is the current one.

    `valid_from`, `valid_to` and `current` name the columns; by default those of `delta.history`. A gap is not wrong: a
    deletion leaves one. With `system_to` rows that have a value of that column are left out: the table knows better now
    (`delta.history: bitemporal`). Sorts the rows of each key.
    """

    column_list: Sequence[str]
    valid_from: str = History().valid_from
    valid_to: str = History().valid_to
    current: str = History().current
    system_to: str | None = None

    metric_dependencies = (BrokenHistories.metric_name, "table.row_count")
    success_keys: ClassVar[tuple[str, ...]] = _NAMES
    args_keys = _NAMES

    @pydantic.validator("column_list")
    def _at_least_one(cls, names: Sequence[str]) -> Sequence[str]:
        if isinstance(names, str) or not names:
            raise ValueError('column_list must be a list of at least one column name, e.g. ["customer_id"]')
        return names

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        return "The rows of each $key follow each other in time.", {"key": ", ".join(kwargs["column_list"])}

    def judge(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        broken, rows = metrics[BrokenHistories.metric_name], metrics["table.row_count"]
        keys = f"{counted(broken['keys'], 'key')} {'has' if broken['keys'] == 1 else 'have'}"
        observed = "each row ends where it may"
        if broken["rows"]:
            observed = f"{keys} rows with a wrong end ({counted(broken['rows'], 'row')})"
        return counted_rows(observed, rows, broken["rows"], broken["examples"])
