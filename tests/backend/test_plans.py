"""Plans that are made and asked, by the private way and by the public one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.backend import plans
from bridge.session import session_settings
from tests.public_api import PublicApi

pytestmark = pytest.mark.versions


@pytest.mark.parametrize("of", [lambda frame: frame, PublicApi], ids=["private", "public"])
def test_a_plan_is_made_before_it_is_executed(
    spark: SparkSession, of: Callable[[DataFrame], DataFrame]
) -> None:
    left, right = (spark.range(3).withColumnRenamed("id", name) for name in "ab")
    with session_settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        joined = left.join(right, F.expr("a = b"))
        plans.make_plan(of(joined))
    assert "SortMergeJoin" in str(joined._jdf.queryExecution().executedPlan().toString())
    assert joined.count() == 3


def test_a_frame_s_size(spark: SparkSession) -> None:
    assert plans.estimated_bytes(spark.range(1000)) == 8000
    assert plans.estimated_bytes(PublicApi(spark.range(1000))) == plans.UNKNOWN_BYTES  # type: ignore[arg-type]
