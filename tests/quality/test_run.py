"""Suites on DataFrames: counts and example keys are right, and an expectation that raises never passes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.errors import TableError
from bridge.offsets import Offsets
from bridge.quality.run import run
from bridge.quality.suite import load
from bridge.quality.verdict import Subject, Verdict
from tests.quality.conftest import Checked
from tests.quality.test_suite import ORDERS

SECRET = "do-not-show-me"


def now(**ago: float) -> datetime:
    return datetime.now(timezone.utc).replace(tzinfo=None) - timedelta(**ago)


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    """Ten good orders."""
    status = F.element_at(F.array(F.lit("new"), F.lit("paid")), (F.col("id") % 2 + 1).cast("int"))
    return spark.range(10).select(
        F.col("id").alias("order_id"),
        F.lit(SECRET).alias("customer"),
        status.alias("status"),
        F.lit(1).alias("quantity"),
        F.lit("9.90").cast("decimal(10,2)").alias("amount"),
        F.lit(now()).cast("timestamp_ntz").alias("updated_at"),
    )


def failures(verdict: Verdict) -> dict[str, tuple[str, ...]]:
    return {o.type: o.columns for o in verdict.failed}


def test_good_orders_pass(orders: DataFrame) -> None:
    subject = Subject("orders", "orders-topic", "lake/orders", 7, Offsets({("orders-topic", 0): 12}))
    verdict = run(orders, load(ORDERS), key=["order_id"], subject=subject)
    assert verdict.success, verdict.failed
    assert verdict.row_count == 10
    assert verdict.subject == subject
    assert verdict.seconds > 0
    assert verdict.started_at.utcoffset() == timedelta(0)
    assert all(o.example_keys == () and o.reason is None for o in verdict.expectations)


def test_duplicates_put_in_by_hand_are_found_and_named(orders: DataFrame, lake: Path) -> None:
    path = str(lake / "orders")
    orders.write.format("delta").save(path)
    again = orders.where("order_id = 3").unionByName(orders.where("order_id IN (3, 8)"))
    again.write.format("delta").mode("append").save(path)
    verdict = run(orders.sparkSession.read.format("delta").load(path), load(ORDERS), key=["order_id"])
    assert failures(verdict) == {"expect_key_to_be_unique": ("order_id",)}
    (duplicates,) = verdict.failed
    assert duplicates.example_keys == ({"order_id": 3}, {"order_id": 8})
    assert duplicates.observed == "2 keys occur more than once (5 rows)"
    assert (duplicates.unexpected_count, verdict.row_count) == (5, 13)
    assert duplicates.unexpected_percent == pytest.approx(500 / 13)


def test_each_fault_fails_its_own_expectation_and_names_its_row(orders: DataFrame) -> None:
    faults = [
        (1, "customer", "CAST(NULL AS STRING)", "expect_column_values_to_not_be_null"),
        (2, "status", "'lost'", "expect_column_values_to_be_in_set"),
        (3, "quantity", "0", "expect_column_values_to_be_between"),
        (4, "amount", "CAST(-0.01 AS DECIMAL(10,2))", "expect_column_values_to_be_between"),
        (5, "order_id", "CAST(NULL AS BIGINT)", "expect_column_values_to_not_be_null"),
    ]
    broken = orders
    for order, column, value, _ in faults:
        broken = broken.withColumn(column, F.expr(f"IF(order_id = {order}, {value}, {column})"))
    verdict = run(broken, load(ORDERS), key=["order_id"])
    found = {(o.type, *o.columns): o for o in verdict.failed}
    assert set(found) == {(type, column) for _, column, _, type in faults}
    for order, column, _, type in faults:
        outcome = found[type, column]
        assert (outcome.observed, outcome.unexpected_count) == ("1 of 10 values fails", 1)
        assert outcome.unexpected_percent == 10
        assert outcome.example_keys == ({"order_id": None if column == "order_id" else order},)


def test_examples_are_five_keys_at_most_and_no_payload(orders: DataFrame) -> None:
    verdict = run(orders.withColumn("status", F.lit(SECRET)), load(ORDERS), key=["order_id"])
    (outcome,) = verdict.failed
    assert len(outcome.example_keys) == 5
    assert all(set(k) == {"order_id"} for k in outcome.example_keys)
    assert SECRET not in json.dumps(verdict.as_dict())


def test_an_expectation_that_raises_fails_alone_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    """Great Expectations alone would let them pass, without counts and without unexpected values."""
    frame = spark.sql(f"SELECT id, CAST(IF(id < 0, '1', '{SECRET}') AS INT) AS bad FROM range(3)")
    suite = {
        "name": "raising",
        "expectations": [
            {"type": "expect_column_values_to_be_between", "kwargs": {"column": "bad", "min_value": 0}},
            {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "gone"}},
            {"type": "expect_table_to_be_fresh", "kwargs": {"column": "gone", "max_age_seconds": 1}},
            {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}},
        ],
    }
    (tmp_path / "s.json").write_text(json.dumps(suite))
    verdict = run(frame, load(tmp_path / "s.json"), key=["id"])
    assert not verdict.success
    assert [o.success for o in verdict.expectations] == [False, False, False, True]
    assert [o.reason for o in verdict.expectations] == [
        "Spark raised CAST_INVALID_INPUT",
        "column 'gone' is not in the table; it has id, bad",
        "column 'gone' is not in the table; it has id, bad",
        None,
    ]
    assert SECRET not in json.dumps(verdict.as_dict())


def test_an_aggregate_shows_its_value_but_never_a_list_of_values(orders: DataFrame, checked: Checked) -> None:
    rows = checked(orders, "expect_table_row_count_to_equal", value=11)
    assert (rows.success, rows.observed, rows.expected) == (False, "10", "11")
    values = checked(orders, "expect_column_distinct_values_to_equal_set", column="customer", value_set=["x"])
    assert (values.success, values.reason) == (False, None)
    assert SECRET not in values.observed


def test_mostly_is_said(orders: DataFrame, checked: Checked) -> None:
    outcome = checked(
        orders, "expect_column_values_to_be_between", column="order_id", min_value=1, mostly=0.9
    )
    assert outcome.success
    assert (outcome.expected, outcome.observed) == ("at least 1, in 90 % of rows", "1 of 10 values fails")


def test_a_key_that_is_not_in_the_table_is_refused(orders: DataFrame) -> None:
    with pytest.raises(TableError, match="key column 'id' is not in lake/orders; it has order_id, customer"):
        run(orders, load(ORDERS), key=["id"], subject=Subject(table="lake/orders"))


def test_spark_settings_and_cache_are_left_alone(orders: DataFrame) -> None:
    before = dict(orders.sparkSession.conf.getAll)
    run(orders, load(ORDERS), key=["order_id"])
    assert dict(orders.sparkSession.conf.getAll) == before
    assert not orders.storageLevel.useMemory


def test_bounds_of_days_and_moments_are_compared_and_titles_show_what_was_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A day is its first moment, and conditions are shown in SQL."""
    frame = spark.sql(
        "SELECT 1 AS id, TIMESTAMP '2024-05-06 00:00:00Z' AS at, TIMESTAMP_NTZ '2024-05-06 00:00:00' AS local, "
        "DATE '2024-05-06' AS day"
    )
    bounds = [
        {"min_value": "2024-05-06", "max_value": "2024-05-06T12:00:00"},
        {"min_value": "2024-05-06", "max_value": "2024-05-06T12:00:00Z"},
        {"min_value": "2024-05-06T00:00:00", "max_value": "2024-05-07"},
    ]
    suite = [
        {"type": f"expect_{kind}_to_be_between", "kwargs": {"column": column, **pair}}
        for column in ("at", "local", "day")
        for pair in (bounds if column != "day" else bounds[2:])
        for kind in ("column_values", "column_max")
    ]
    late = {"column": "at", "min_value": "2024-05-07"}
    condition = {"row_condition": "id  > 0 AND day = '2024-05-06'", "condition_parser": "spark"}
    suite += [
        {"type": "expect_column_values_to_be_between", "kwargs": late},
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "id", "min_value": 1, **condition},
        },
    ]
    file = tmp_path / "suite.json"
    file.write_text(json.dumps({"name": "bounds", "expectations": suite}))
    *alike, late_outcome, conditional = run(frame, load(file)).expectations
    assert [(o.title, o.reason) for o in alike if not o.success] == []
    assert not late_outcome.success and late_outcome.reason is None
    assert conditional.success and conditional.title == (
        "If id > 0 AND day = '2024-05-06', then id values must be greater than or equal to 1."
    )
