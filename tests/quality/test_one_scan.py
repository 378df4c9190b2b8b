"""One query yields the verdict that Great Expectations' own engine computes with many."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.quality import one_scan
from bridge.quality.gx import quiet
from bridge.quality.run import run
from bridge.quality.scan_cost import ScanMeter, metered
from bridge.quality.suite import load
from bridge.quality.verdict import Verdict
from tests.quality.test_suite import ORDERS


def expect(type: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": f"expect_{type}", "kwargs": kwargs}


PAID = {"row_condition": "status = 'paid'", "condition_parser": "spark"}
FOLDED = [
    expect("column_values_to_not_be_null", column="status"),
    expect("column_values_to_be_null", column="status"),
    expect("column_values_to_be_in_set", column="status", value_set=["new"], mostly=0.1),
    expect("column_values_to_be_between", column="amount", min_value=3, **PAID),
    expect("column_values_to_be_between", column="amount", min_value=3, row_condition="amount < 0",
           condition_parser="spark"),
    expect("column_values_to_match_regex", column="status", regex="^n"),
    expect("column_value_lengths_to_be_between", column="status", min_value=4),
    expect("column_max_to_be_between", column="amount", max_value=5),
    expect("column_min_to_be_between", column="quantity", min_value=1),
    expect("table_row_count_to_equal", value=30),
    expect("table_to_be_fresh", column="updated_at", max_age_seconds=10),
]  # fmt: skip
"""Expectations that are counted in the query of the key."""
APART = [
    expect(
        "column_pair_values_a_to_be_greater_than_b",
        column_A="amount",
        column_B="quantity",
        ignore_row_if="either_value_is_missing",
    ),
    expect("column_pair_values_to_be_equal", column_A="amount", column_B="quantity"),
    expect("multicolumn_sum_to_equal", column_list=["amount", "quantity"], sum_total=7),
    expect("column_mean_to_be_between", column="amount", max_value=1),
    expect("column_median_to_be_between", column="amount", max_value=1),
    expect("column_max_to_be_between", column="amount", max_value=1, **PAID),
    expect("column_values_to_be_unique", column="order_id"),
    expect("column_proportion_of_unique_values_to_be_between", column="order_id", min_value=0.5),
    expect("column_distinct_values_to_be_in_set", column="status", value_set=["new"]),
    expect("column_values_to_be_of_type", column="amount", type_="DecimalType"),
    expect("column_values_to_not_be_null", column="gone"),
    expect("column_values_to_be_between", column="status", min_value=1),
    expect("key_to_be_unique", column_list=["status", "quantity"]),
]
KEY = [expect("key_to_be_unique", column_list=["order_id"])]


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Thirty rows in one file: nulls in each column, and two keys that occur twice."""
    rows = spark.range(0, 30, 1, 1).selectExpr(
        "IF(id = 29, NULL, IF(id IN (7, 8), 3, id)) AS order_id", "IF(id % 11 = 0, NULL, 'c') AS customer",
        "elt(1 + id % 4, 'new', 'paid', 'lost', NULL) AS status",
        "IF(id % 5 = 0, NULL, CAST(id % 6 AS INT)) AS quantity",
        "IF(id % 7 = 0, NULL, CAST(id % 9 AS DECIMAL(10,2))) AS amount",
        "TIMESTAMP_NTZ '2020-01-01 00:00:00' AS updated_at",
    )  # fmt: skip
    path = str(tmp_path_factory.mktemp("one") / "table")
    rows.write.format("delta").save(path)
    return spark.read.format("delta").load(path)


@contextmanager
def great_expectations_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quiet():
        from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
    with monkeypatch.context() as patched:
        patched.setattr(one_scan, "OneScan", SparkDFExecutionEngine)
        patched.setattr(one_scan, "without_row_count_dependencies", lambda graph, _: graph)
        yield


def run_suite(
    frame: DataFrame, suite: Path | list[dict[str, Any]], folder: Path, key: Sequence[str] = ("order_id",)
) -> tuple[Verdict, int]:
    """The verdict without its times, and how many scans it took."""
    if isinstance(suite, list):
        file = folder / "suite.json"
        file.write_text(json.dumps({"name": "all", "expectations": suite}))
        suite = file
    with metered(frame.sparkSession, "test") as meter:
        verdict = run(frame, load(suite), key=key, watermark="updated_at")
        cost = meter.read()
    assert cost is not None
    return replace(verdict, started_at=verdict.started_at.min, seconds=0), cost.scans


@pytest.mark.parametrize(
    "suite",
    [
        pytest.param(ORDERS, id="shipped"),
        pytest.param([*KEY, *FOLDED, *APART], id="key", marks=pytest.mark.slow),
        pytest.param([*FOLDED, *APART], id="no key", marks=pytest.mark.slow),
    ],
)
def test_the_verdict_is_that_of_great_expectations_alone(
    orders: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: Any
) -> None:
    with great_expectations_alone(monkeypatch):
        expected, many = run_suite(orders, suite, tmp_path)
    found, few = run_suite(orders, suite, tmp_path)
    assert found.expectations == expected.expectations
    assert found == expected
    assert not found.success and few < many


def test_additive_aggregates_take_one_scan_and_other_scans_are_counted(
    orders: DataFrame, tmp_path: Path
) -> None:
    unique = orders.where("order_id <> 3")
    verdict, scans = run_suite(unique, [*KEY, *FOLDED], tmp_path, key=())
    assert not [o.reason for o in verdict.expectations if o.reason]
    assert scans == 1
    mean = expect("column_mean_to_be_between", column="amount", max_value=9)
    assert [run_suite(unique, [*also, mean], tmp_path)[1] for also in (KEY, [])] == [2, 1]


def test_a_missing_column_costs_no_scan(orders: DataFrame, tmp_path: Path) -> None:
    good = orders.where("order_id IN (1, 2)")
    suite = [*KEY, expect("column_values_to_not_be_null", column="gone"), FOLDED[0]]
    verdict, scans = run_suite(good, suite, tmp_path)
    assert ([o.success for o in verdict.expectations], scans) == ([True, False, True], 1)


def test_the_meter_counts_its_own_queries_and_leaves_spark_as_it_was(orders: DataFrame) -> None:
    spark = orders.sparkSession
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    with metered(spark, "outer") as outer:
        orders.collect()
        with metered(spark, "inner") as inner:
            orders.select("status").collect()
            found = inner.read()
        assert found is not None and (found.scans, found.files) == (1, 1)
        whole = outer.read()
        assert whole is not None and whole.scans == 1
    assert context.getLocalProperty("spark.job.description") == before
    assert ScanMeter(None, "no Spark").read() is None  # type: ignore[arg-type]
