"""The functions that are measured are those that the bridge builds."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from benchmarks.own_functions import FUNCTIONS, in_spark


@pytest.mark.parametrize(("flink", "spark"), FUNCTIONS.items(), ids=str)
def test_none_is_spark_s_own(flink: str, spark: str) -> None:
    (made,) = in_spark([flink])
    assert parse_one(made, read="spark") != parse_one(spark, read="spark")
