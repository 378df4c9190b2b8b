"""Which rows an expectation looks at, as a condition: what Great Expectations would filter a frame by."""

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

__all__ = ["condition_of"]


class _FilterRecorder:
    """Stands in for a frame and remembers what it is filtered by."""

    def __init__(self, schema: T.StructType, condition: Column) -> None:
        self.schema, self.condition = schema, condition

    def filter(self, condition: Column | str) -> _FilterRecorder:
        also = F.expr(condition) if isinstance(condition, str) else condition
        return _FilterRecorder(self.schema, self.condition & F.coalesce(also, F.lit(False)))


def condition_of(domain: Mapping[str, Any], schema: T.StructType, engine: SparkDFExecutionEngine) -> Column:
    """True, never null, for the rows of a frame of `schema` that `engine` would look at for `domain`: `row_condition`
    in all its notations, and `ignore_row_if`."""
    frame = _FilterRecorder(schema, F.lit(True))
    stand_in = SparkDFExecutionEngine(spark=engine.spark, persist=False)
    stand_in.load_batch_data("frame", SparkDFBatchData(stand_in, frame))
    kept = {name: value for name, value in domain.items() if name != "batch_id"}
    found: _FilterRecorder = stand_in.get_domain_records(domain_kwargs=kept)
    return found.condition
