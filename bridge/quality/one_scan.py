"""Great Expectations' metrics in one scan of the frame, where they are counts.

Great Expectations aggregates as soon as one of its metrics can be had: a query for each layer of its graph and for
each `row_condition`, and a query more for the key. Here everything else comes first, and what aggregates waits for all
others that do. Conditions and results are Great Expectations' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col
from bridge.quality.gx import quiet
from bridge.quality.gx_metrics import DuplicateKeys, Newest, most_repeated
from bridge.quality.row_condition import condition_of

with quiet():
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.registry import get_metric_provider
    from great_expectations.util import convert_to_json_serializable
    from great_expectations.validator.validation_graph import ValidationGraph

__all__ = ["OneScan", "PlannedMetrics", "without_row_count_dependencies"]

_ROWS = "__rows"
_ROW_COUNT = "table.row_count"
_NO_ROW_COUNT_NEEDED = (".condition", ".map", ".aggregate_fn", ".unexpected_count")
_EXTREMES = {Newest.metric_name: F.max, "column.max": F.max, "column.min": F.min}


class PlannedMetrics(Exception):
    """The one query could be built, and was not run."""


@dataclass(frozen=True)
class _Part:
    """A metric as an aggregate of the rows of one key, and as one of those of all keys."""

    id: Any
    of_key: Column
    of_all: Any

    def __iter__(self) -> Any:
        return iter((self.id, self.of_key, self.of_all))


class OneScan(SparkDFExecutionEngine):
    """Spark's engine, with one query for all that can be counted together; the frame is never held.

    In the query: counts of rows that are not as expected, under any `row_condition`; the number of rows; the newest
    value; smallest and largest values of fixed width; of one list of key columns, the keys that occur twice. Without a
    key in the suite also every other aggregate of a whole column. The rest takes queries of its own, as in Great
    Expectations: aggregates under a `row_condition`, means and other aggregates beside a key, conditions with windows,
    pairs and sums of columns, lists of distinct values, a second list of key columns. Nothing is computed twice.
    """

    plan_only = False
    """Raise Planned in place of running a query that aggregates."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._resolved = dict[Any, Any]()

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[Any],
        metrics: dict[Any, Any] | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> dict[Any, Any]:
        """Some of the metrics that are ready, at least one; Great Expectations asks again for those left."""
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
        """Whether a metric waits for the one query."""
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
        parts, alone = list[_Part](), list[Any]()
        for one in bundled:
            part = self._part(one, metrics, frame.schema, beside_key=key is not None)
            if part is None:
                alone.append(one)
            else:
                parts.append(part)
        found = self._run_query(frame, parts, key)
        if self.plan_only:
            raise PlannedMetrics
        if alone:
            found |= self.resolve_metric_bundle(alone)
        if others := [m for m in keys if m is not key]:
            found |= super().resolve_metrics(others, metrics, runtime)
        return found

    def _part(
        self, computation: Any, metrics: Mapping[Any, Any], schema: T.StructType, *, beside_key: bool
    ) -> _Part | None:
        metric = computation.metric_configuration
        domain = dict(computation.compute_domain_kwargs or {})
        whole = _is_whole_table(domain)
        in_domain = F.lit(True) if whole else condition_of(domain, schema, self)
        if metric.metric_name == _ROW_COUNT:
            return _Part(metric.id, F.count_if(in_domain), lambda c: F.coalesce(F.sum(c), F.lit(0)))
        if (condition := _condition(metric, metrics)) is not None:
            wrong = F.when(condition, 1).otherwise(0)
            # CASE keeps the order: the condition may fail on rows that are not looked at.
            return _Part(metric.id, F.sum(wrong if whole else F.when(in_domain, wrong)), F.sum)
        if not whole:
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
        # Grouping treats null as a value like any other, which is the null-safe equality of ADR 028, rule 4.
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
        twice, rows = row[len(parts)], row[len(parts) + 1] or 0
        examples = most_repeated(frame, names) if twice else []
        return {**_values(parts, row), key.id: {"keys": twice, "rows": rows, "examples": examples}}


def without_row_count_dependencies(graph: ValidationGraph, engine: OneScan) -> ValidationGraph:
    """The graph without the one dependency that would part the query in two: each condition names the number of rows,
    and none of Great Expectations' conditions and aggregates looks at it."""
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
    """Of a count of rows that are not as expected: what these are."""
    if not metric.metric_name.endswith(".unexpected_count"):
        return None
    partial = metric.metric_dependencies.get("metric_partial_fn")
    condition = partial and partial.metric_dependencies.get("unexpected_condition")
    return metrics[condition.id][0] if condition and condition.id in metrics else None


def _is_whole_table(domain: Mapping[str, Any]) -> bool:
    """Whether it is all rows."""
    return all(name == "batch_id" or not value for name, value in domain.items())


def _has_fixed_width(one: Any, schema: T.StructType) -> bool:
    """Values of one width are grouped by hash; others would be sorted."""
    name = (one.accessor_domain_kwargs or {}).get("column")
    kinds = T.NumericType | T.DateType | T.TimestampType | T.TimestampNTZType
    return any(f.name == name and isinstance(f.dataType, kinds) for f in schema.fields)
