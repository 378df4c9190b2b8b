"""The rows of a batch are counted by the job that reads them, or by a second one."""

from __future__ import annotations

import pytest
from pyspark.sql import Observation, SparkSession

from bridge.pipelines.changes.batch_stats import RowCounter, count_rows
from tests.public_api import PublicApi

pytestmark = pytest.mark.versions


def test_rows_are_counted_by_the_first_job(spark: SparkSession) -> None:
    frame, counter = count_rows(spark.createDataFrame([(n,) for n in range(7)], "id BIGINT"))
    assert frame.selectExpr("sum(id)").first() == (21,)
    assert counter.value() == 7
    frame.limit(1).collect()
    assert counter.value() == 7


def test_where_the_observation_tells_nothing_another_job_counts(spark: SparkSession) -> None:
    assert RowCounter(PublicApi(Observation()), spark.range(7)).value() == 7  # type: ignore[arg-type]
