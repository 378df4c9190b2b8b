"""Metrics of Great Expectations: the bridge's own, and all that are counts in one scan of the frame.

Great Expectations runs a query for each layer of its metric graph, one for each `row_condition` and one for the key.
This engine resolves all other metrics first, and postpones aggregates until all of them are ready. Conditions and
results are those of Great Expectations. Rows stay in Spark; of duplicated keys a few are collected to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
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
        examples = _most_repeated(frame, names) if counts[0] else []
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


def _most_repeated(frame: DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
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


with quiet():
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.registry import get_metric_provider
    from great_expectations.util import convert_to_json_serializable
    from great_expectations.validator.validation_graph import ValidationGraph


_ROW_COUNT = "table.row_count"
_NO_ROW_COUNT_NEEDED = (".condition", ".map", ".aggregate_fn", ".unexpected_count")
_EXTREMES = {Newest.metric_name: F.max, "column.max": F.max, "column.min": F.min}


class PlannedMetrics(Exception):
    """Raised by `plan_only` in place of running the aggregate query, which could be built."""


@dataclass(frozen=True)
class _Part:
    """A metric as an aggregate of the rows of one key, and its aggregate over all keys."""

    id: Any
    of_key: Column
    of_all: Any

    def __iter__(self) -> Any:
        return iter((self.id, self.of_key, self.of_all))


class OneScan(SparkDFExecutionEngine):
    """Runs one query for all metrics that can be aggregated together; never persists the frame.

    The query contains: counts of unexpected rows under any `row_condition`; the number of rows; the newest value;
    minima and maxima of fixed-width types; the duplicate keys of one list of key columns. In a suite without a key also
    every other aggregate of a whole column. The other metrics take queries of their own, as in Great Expectations:
    aggregates under a `row_condition`, means and other aggregates beside a key, conditions with windows, pairs and sums
    of columns, lists of distinct values, a second list of key columns. No metric is computed twice.
    """

    plan_only = False
    """Raise PlannedMetrics in place of running the aggregate query."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._resolved = dict[Any, Any]()

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[Any],
        metrics: dict[Any, Any] | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> dict[Any, Any]:
        """Resolves at least one of the given metrics; Great Expectations calls it again for the others."""
        ready = list(metrics_to_resolve)
        if resolved := {m.id: self._resolved[m.id] for m in ready if m.id in self._resolved}:
            return resolved
        if first := [m for m in ready if not self.aggregates(m)]:
            values = super().resolve_metrics(first, metrics, runtime_configuration)
        elif ready:
            values = self._in_one_query(ready, metrics or {}, runtime_configuration)
        else:
            values = {}
        self._resolved |= values
        return values

    def aggregates(self, metric: Any) -> bool:
        """Whether a metric is an aggregate, to be computed by the one query."""
        return metric.metric_name == DuplicateKeys.metric_name or (
            get_metric_provider(metric_name=metric.metric_name, execution_engine=self)[1] is None
        )

    def _in_one_query(
        self, ready: list[Any], metrics: dict[Any, Any], runtime: dict[str, Any] | None
    ) -> dict[Any, Any]:
        frame: DataFrame = self.get_domain_records({})
        keys = [m for m in ready if m.metric_name == DuplicateKeys.metric_name]
        key = next(
            (m for m in sorted(keys, key=lambda m: str(m.id)) if _is_whole_table(m.metric_domain_kwargs)),
            None,
        )
        _, bundled = self._build_direct_and_bundled_metric_computation_configurations(
            [m for m in ready if m not in keys], metrics, runtime
        )
        parts, separate = list[_Part](), list[Any]()
        for computation in bundled:
            part = self._part(computation, metrics, frame.schema, beside_key=key is not None)
            if part is None:
                separate.append(computation)
            else:
                parts.append(part)
        values = self._run_query(frame, parts, key)
        if self.plan_only:
            raise PlannedMetrics
        if separate:
            values |= self.resolve_metric_bundle(separate)
        if others := [m for m in keys if m is not key]:
            values |= super().resolve_metrics(others, metrics, runtime)
        return values

    def _part(
        self, computation: Any, metrics: Mapping[Any, Any], schema: T.StructType, *, beside_key: bool
    ) -> _Part | None:
        metric = computation.metric_configuration
        domain = dict(computation.compute_domain_kwargs or {})
        is_whole = _is_whole_table(domain)
        in_domain = F.lit(True) if is_whole else condition_of(domain, schema, self)
        if metric.metric_name == _ROW_COUNT:
            return _Part(metric.id, F.count_if(in_domain), lambda c: F.coalesce(F.sum(c), F.lit(0)))
        if (condition := _condition(metric, metrics)) is not None:
            wrong = F.when(condition, 1).otherwise(0)
            # CASE fixes the order of evaluation: the condition may raise on rows outside the domain.
            return _Part(metric.id, F.sum(wrong if is_whole else F.when(in_domain, wrong)), F.sum)
        if not is_whole:
            return None
        reaggregate = _EXTREMES.get(metric.metric_name)
        if reaggregate is not None and (
            metric.metric_name == Newest.metric_name or _has_fixed_width(computation, schema)
        ):
            return _Part(metric.id, computation.metric_fn, reaggregate)
        return None if beside_key else _Part(metric.id, computation.metric_fn, None)

    def _run_query(self, frame: DataFrame, parts: list[_Part], key: Any | None) -> dict[Any, Any]:
        if key is None:
            query = frame.agg(*(of_key for _, of_key, _ in parts)) if parts else None
            if self.plan_only or query is None:
                return {}
            return _values(parts, query.collect()[0])
        names = list(key.metric_value_kwargs["column_list"])
        # Grouping treats null as a value: the null-safe equality of ADR 028, rule 4.
        counted = [F.count(F.lit(1)).alias(_ROWS)]
        counted += [of_key.alias(f"__part_{n}") for n, (_, of_key, _) in enumerate(parts)]
        repeated = F.col(_ROWS) > 1
        query = frame.groupBy(*map(col, names)).agg(*counted).agg(
            *(of_all(F.col(f"__part_{n}")) for n, (_, _, of_all) in enumerate(parts)),
            F.count_if(repeated),
            F.sum(F.when(repeated, F.col(_ROWS))),
        )  # fmt: skip
        if self.plan_only:
            return {}
        row = query.collect()[0]
        duplicates, rows = row[len(parts)], row[len(parts) + 1] or 0
        examples = _most_repeated(frame, names) if duplicates else []
        return {**_values(parts, row), key.id: {"keys": duplicates, "rows": rows, "examples": examples}}


def without_row_count_dependencies(graph: ValidationGraph, engine: OneScan) -> ValidationGraph:
    """Removes the dependencies of conditions and aggregates on the number of rows, which would split the query in two.

    Great Expectations declares them for each condition, but its conditions and aggregates do not use the number.
    """
    edges = []
    for edge in graph.edges:
        if (
            edge.right is not None
            and edge.right.metric_name == _ROW_COUNT
            and (edge.left.metric_name.endswith(_NO_ROW_COUNT_NEEDED) or engine.aggregates(edge.left))
        ):
            edge.left.metric_dependencies.pop(_ROW_COUNT, None)
        else:
            edges.append(edge)
    return ValidationGraph(execution_engine=engine, edges=edges)


def _values(parts: list[_Part], row: Any) -> dict[Any, Any]:
    return {part.id: convert_to_json_serializable(data=row[n]) for n, part in enumerate(parts)}


def _condition(metric: Any, metrics: Mapping[Any, Any]) -> Column | None:
    """Returns the condition of a count of unexpected rows; None for other metrics."""
    if not metric.metric_name.endswith(".unexpected_count"):
        return None
    partial = metric.metric_dependencies.get("metric_partial_fn")
    condition = partial and partial.metric_dependencies.get("unexpected_condition")
    return metrics[condition.id][0] if condition and condition.id in metrics else None


def _is_whole_table(domain: Mapping[str, Any]) -> bool:
    """Whether the domain is the whole table."""
    return all(name == "batch_id" or not value for name, value in domain.items())


def _has_fixed_width(computation: Any, schema: T.StructType) -> bool:
    """Whether the column has a fixed-width type: Spark aggregates these by hash, and others by sorting."""
    name = (computation.accessor_domain_kwargs or {}).get("column")
    kinds = T.NumericType | T.DateType | T.TimestampType | T.TimestampNTZType
    return any(f.name == name and isinstance(f.dataType, kinds) for f in schema.fields)


with quiet():
    from great_expectations.execution_engine.sparkdf_batch_data import SparkDFBatchData
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine


class _FilterRecorder:
    """Replaces a DataFrame and records the conditions by which it is filtered."""

    def __init__(self, schema: T.StructType, condition: Column) -> None:
        self.schema, self.condition = schema, condition

    def filter(self, condition: Column | str) -> _FilterRecorder:
        also = F.expr(condition) if isinstance(condition, str) else condition
        return _FilterRecorder(self.schema, self.condition & F.coalesce(also, F.lit(False)))


def condition_of(domain: Mapping[str, Any], schema: T.StructType, engine: SparkDFExecutionEngine) -> Column:
    """Returns a condition, never null, that is true for the rows of `schema` which `engine` selects for `domain`: by
    `row_condition` in all its notations, and `ignore_row_if`."""
    frame = _FilterRecorder(schema, F.lit(True))
    stand_in = SparkDFExecutionEngine(spark=engine.spark, persist=False)
    stand_in.load_batch_data("frame", SparkDFBatchData(stand_in, frame))
    filters = {name: value for name, value in domain.items() if name != "batch_id"}
    filtered: _FilterRecorder = stand_in.get_domain_records(domain_kwargs=filters)
    return filtered.condition
