"""Defines the Great Expectations metrics of the bridge's expectations, each a Spark aggregate.

Rows stay in Spark. Only where keys are duplicated, a few of them are collected to the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col
from bridge.quality.gx import quiet

with quiet():
    from great_expectations.core.metric_domain_types import MetricDomainTypes
    from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.metrics.metric_provider import metric_partial, metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider


_EXAMPLES = 5
_ROWS = "__rows"


class DuplicateKeys(TableMetricProvider):
    """Counts keys that occur more than once: {"keys": number, "rows": their rows, "examples": up to five of them}."""

    metric_name = "bridge.duplicate_keys"
    value_keys = ("column_list",)

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> dict[str, Any]:
        names = list(metric_value_kwargs["column_list"])
        frame = _domain(execution_engine, metric_domain_kwargs)
        counts = _repeated(frame, names).agg(F.count(F.lit(1)), F.sum(_ROWS)).collect()[0]
        examples = most_repeated(frame, names) if counts[0] else []
        return {"keys": counts[0], "rows": counts[1] or 0, "examples": examples}


class Newest(TableMetricProvider):
    """Computes the largest value of a date or timestamp column in epoch microseconds; None without values."""

    metric_name = "bridge.newest"
    value_keys = ("column",)

    @metric_partial(
        engine=SparkDFExecutionEngine,
        partial_fn_type=MetricPartialFunctionTypes.AGGREGATE_FN,
        domain_type=MetricDomainTypes.TABLE,
    )
    def _spark(
        cls,
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: dict[str, Any],
        metric_value_kwargs: dict[str, Any],
        **_: Any,
    ) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        name = metric_value_kwargs["column"]
        type = _domain(execution_engine, metric_domain_kwargs).schema[name].dataType
        if not isinstance(type, T.TimestampType | T.TimestampNTZType | T.DateType):
            actual = type.simpleString().upper()
            raise TypeError(f"column {name!r} is {actual}; freshness needs TIMESTAMP, TIMESTAMP_LTZ or DATE")
        return F.unix_micros(F.max(col(name)).cast("timestamp")), metric_domain_kwargs, {}


def most_repeated(frame: DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns up to five keys that occur more than once, in descending order of their rows. Reads `frame` once."""
    worst = _repeated(frame, names).orderBy(F.desc(_ROWS), *map(col, names)).limit(_EXAMPLES)
    return [{n: row[n] for n in names} for row in worst.collect()]


def _repeated(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    # Grouping treats null as a value: the null-safe equality of ADR 028, rule 4.
    grouped = frame.groupBy(*map(col, names)).agg(F.count(F.lit(1)).alias(_ROWS))
    return grouped.where(F.col(_ROWS) > 1)


def _domain(engine: SparkDFExecutionEngine, domain_kwargs: dict[str, Any]) -> DataFrame:
    frame: DataFrame = engine.get_domain_records(domain_kwargs=domain_kwargs)
    return frame
