"""Defines the expectation of referential integrity: rows of the table refer to rows of another Delta table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import PurePosixPath
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge.columns import col
from bridge.config.paths import is_uri, resolved_path
from bridge.errors import QualityError
from bridge.quality.expectations import FACTS_ATTRIBUTE, SentenceExpectation, counted_rows
from bridge.quality.facts import NO_FACTS, Facts
from bridge.quality.gx import quiet
from bridge.quality.wording import counted

with quiet():
    from great_expectations.compatibility import pydantic
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider


_EXAMPLES = 5


class DanglingReferences(TableMetricProvider):
    """Counts rows whose reference has no match: {"refer": rows with a reference, "rows": those without a match,
    "examples": up to five of them}."""

    metric_name = "bridge.dangling"
    value_keys = ("column_list", "other_path", "other_table", "other_column_list")

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
        others = list(metric_value_kwargs.get("other_column_list") or names)
        facts: Facts = getattr(execution_engine, FACTS_ATTRIBUTE, NO_FACTS)
        other = _other_table(frame, metric_value_kwargs, facts)
        for name in others:
            if name not in other.columns:
                raise QualityError(
                    f"the other table has no column {name!r}; it has {', '.join(other.columns)}"
                )
        complete = reduce(lambda a, b: a & b, [col(name).isNotNull() for name in names])
        referring = frame.where(complete)
        same = [col(name, "r") == col(other, "o") for name, other in zip(names, others, strict=True)]
        dangling = referring.alias("r").join(other.alias("o"), reduce(lambda a, b: a & b, same), "left_anti")
        simple = [f.name for f in frame.schema.fields if "." not in f.name]
        dangling_rows = dangling.agg(F.count(F.lit(1))).collect()[0][0]
        examples = dangling.select(*map(col, simple)).limit(_EXAMPLES).collect() if dangling_rows else []
        return {
            "refer": referring.count(),
            "rows": dangling_rows,
            "examples": [row.asDict() for row in examples],
        }


class ExpectRowsToReferToTable(SentenceExpectation):
    """Expects that the values of `column_list` equal those of `other_column_list` (by default the same names) in some
    row of another Delta table: `other_path` (relative to the pipeline file) or `other_table`.

    Like MATCH SIMPLE in SQL: a row with a null in one of its columns has no reference and meets the expectation. Reads
    the newest version of the other table, whose columns need not be unique.
    """

    column_list: Sequence[str]
    other_path: str | None = None
    other_table: str | None = None
    other_column_list: Sequence[str] | None = None

    metric_dependencies = (DanglingReferences.metric_name,)
    success_keys: ClassVar[tuple[str, ...]] = DanglingReferences.value_keys
    args_keys = DanglingReferences.value_keys

    @pydantic.validator("column_list", "other_column_list")
    def _at_least_one(cls, names: Sequence[str] | None) -> Sequence[str] | None:
        if names is not None and (isinstance(names, str) or not names):
            raise ValueError('must be a list of at least one column name, e.g. ["customer_id"]')
        return names

    @pydantic.root_validator(skip_on_failure=True)
    def _one_place(cls, values: dict[str, Any]) -> dict[str, Any]:
        if (values.get("other_path") is None) == (values.get("other_table") is None):
            raise ValueError("exactly one of other_path and other_table is needed")
        others = values.get("other_column_list")
        if others is not None and len(others) != len(values["column_list"]):
            raise ValueError("other_column_list must have as many columns as column_list")
        return values

    @classmethod
    def _sentence(cls, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        others = kwargs.get("other_column_list") or kwargs["column_list"]
        params = {
            "columns": ", ".join(kwargs["column_list"]),
            "others": ", ".join(others),
            "table": str(kwargs.get("other_table") or kwargs.get("other_path")),
        }
        return "$columns refer to $others of a row in $table.", params

    def judge(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        counts = metrics[DanglingReferences.metric_name]
        references, dangling = counts["refer"], counts["rows"]
        observed = "each reference has a matching row"
        if dangling:
            observed = f"{dangling:,} of {counted(references, 'row')} have no matching row"
        return counted_rows(observed, references, dangling, counts["examples"])


def _other_table(frame: DataFrame, given: Mapping[str, Any], facts: Facts) -> DataFrame:
    spark = frame.sparkSession
    if given.get("other_table"):
        return spark.read.table(given["other_table"])
    path = str(given["other_path"])
    if not is_uri(path) and not PurePosixPath(path).is_absolute():
        if facts.base_folder is None:
            raise QualityError(
                f"other_path {path} is relative to a pipeline file: run it with `bridge check`, or set an absolute path"
            )
        path = resolved_path(facts.base_folder, path)
    return spark.read.format("delta").load(path)
