"""Extracts the condition by which Great Expectations selects the rows that an expectation evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.quality.gx import quiet

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
