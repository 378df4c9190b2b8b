"""The rules of a gate count what Great Expectations counts."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.errors import DefinitionError
from bridge.quality.gate_rules import ROW_EXPECTATIONS, Rules, compile_rules
from bridge.quality.run import run
from bridge.quality.suite import Suite, parse

SHAPE = "struct<n: int, m: bigint, s: string, t: string, d: decimal(10,2), f: double, day: date>"
Row = tuple[Any, ...]


def suite(*expectations: dict[str, Any]) -> Suite:
    """A suite file's text, loaded."""
    return parse(json.dumps({"name": "gate", "expectations": list(expectations)}), "gate.json")


def expect(type: str, **kwargs: Any) -> dict[str, Any]:
    """One expectation as a suite file has it."""
    return {"type": f"expect_{type}", "kwargs": kwargs}


def _fields() -> list[T.StructField]:
    shape = T.DataType.fromDDL(SHAPE)
    assert isinstance(shape, T.StructType)
    return shape.fields


def rules(
    spark: SparkSession, of: Suite, *, refuse_deferred: bool = True, each_row_alone: bool = False
) -> Rules:
    """`of`, compiled for rows of SHAPE."""
    return compile_rules(of, spark, _fields(), refuse_deferred=refuse_deferred, each_row_alone=each_row_alone)


PAIR, LIST = {"column_A": "n", "column_B": "m"}, {"column_list": ["n", "m"]}
EVERY = suite(
    expect("column_values_to_not_be_null", column="n"),
    expect("column_values_to_not_be_null", column="n", mostly=0.5),
    expect("column_values_to_be_null", column="s", mostly=0.3),
    expect("column_values_to_be_in_set", column="s", value_set=["a", "b", "ab"]),
    expect("column_values_to_be_in_set", column="n", value_set=[1, 2, 3], mostly=0.4),
    expect("column_values_to_not_be_in_set", column="s", value_set=["x"]),
    expect("column_values_to_be_between", column="n", min_value=0, max_value=5),
    expect("column_values_to_be_between", column="d", min_value=0.5, strict_min=True),
    expect("column_values_to_be_between", column="f", max_value=1, strict_max=True, mostly=0.6),
    expect("column_values_to_be_between", column="day", min_value="2024-01-01"),
    expect("column_values_to_match_regex", column="s", regex="^a"),
    expect("column_values_to_match_regex_list", column="s", regex_list=["a", "b"], match_on="all"),
    expect("column_values_to_match_regex_list", column="s", regex_list=["^a", "b$"], match_on="any"),
    expect("column_values_to_not_match_regex", column="s", regex="x"),
    expect("column_values_to_not_match_regex_list", column="s", regex_list=["x", "y"], mostly=0.9),
    expect("column_value_lengths_to_be_between", column="s", min_value=1, max_value=2),
    expect("column_value_lengths_to_equal", column="s", value=1),
    *(
        expect("column_pair_values_to_be_equal", **PAIR, ignore_row_if=ignored)
        for ignored in ("both_values_are_missing", "either_value_is_missing", "neither")
    ),
    expect("column_pair_values_a_to_be_greater_than_b", **PAIR, ignore_row_if="either_value_is_missing"),
    expect("column_pair_values_a_to_be_greater_than_b", **PAIR, or_equal=True, mostly=0.5),
    expect(
        "column_pair_values_to_be_in_set",
        column_A="s",
        column_B="t",
        value_pairs_set=[["a", "b"], ["x", None]],
    ),
    *(
        expect("select_column_values_to_be_unique_within_record", **LIST, ignore_row_if=ignored)
        for ignored in ("all_values_are_missing", "any_value_is_missing", "never")
    ),
    expect("multicolumn_sum_to_equal", **LIST, sum_total=3, ignore_row_if="any_value_is_missing"),
    expect("multicolumn_values_to_be_equal", **LIST, ignore_row_if="never"),
    expect(
        "column_values_to_be_between",
        column="n",
        min_value=2,
        row_condition="s = 'a'",
        condition_parser="spark",
    ),
    expect(
        "column_values_to_not_be_null",
        column="t",
        row_condition='col("n") >= 1',
        condition_parser="great_expectations",
    ),
    expect(
        "column_pair_values_to_be_equal",
        **PAIR,
        row_condition="n IS NOT NULL AND s > 'a'",
        condition_parser="spark",
    ),
)

numbers = st.none() | st.integers(-3, 8)
words = st.none() | st.sampled_from(["", "a", "b", "ab", "x", "ay", "xyz"])
rows_of = st.lists(
    st.tuples(
        numbers,
        numbers,
        words,
        words,
        st.none() | st.integers(-100, 200).map(lambda n: Decimal(n) / 100),
        st.none() | st.sampled_from([0.0, 0.5, 1.0, 7.25, float("nan"), float("inf")]),
        st.none() | st.sampled_from([date(2023, 12, 31), date(2024, 1, 1)]),
    ),
    min_size=12,
    max_size=25,
)


def test_every_row_expectation_is_compared() -> None:
    assert {e.configuration.type for e in EVERY.expectations} == ROW_EXPECTATIONS


@settings(
    max_examples=1,
    deadline=None,
    # An example takes many seconds: failures are reported without shrinking.
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=rows_of)
def test_the_gate_counts_like_great_expectations(spark: SparkSession, rows: list[Row]) -> None:
    frame = spark.createDataFrame(rows, SHAPE).coalesce(1).persist()
    compiled = rules(spark, EVERY)
    found = frame.agg(compiled.counts_column(F.lit(True))).collect()[0][0]
    verdict = run(frame, EVERY)
    frame.unpersist()
    for count, outcome, e in zip(
        compiled.counts(found), verdict.expectations, EVERY.expectations, strict=True
    ):
        assert outcome.reason is None
        said = (outcome.success, outcome.unexpected_count or 0)
        assert (count.success, count.unexpected) == said, (e.configuration, outcome)


def test_expectations_beyond_a_row_are_deferred_or_rejected(spark: SparkSession) -> None:
    mixed = suite(
        expect("key_to_be_unique", column_list=["n"]),
        expect("column_values_to_not_be_null", column="n", mostly=0.9),
        expect("column_values_to_not_be_null", column="s"),
    )
    compiled = rules(spark, mixed, refuse_deferred=False)
    assert [r.mostly for r in compiled.rules] == [0.9, 1]
    assert compiled.deferred == ("n is unique: each key occurs once. (needs the whole table)",)
    alone = rules(spark, mixed, refuse_deferred=False, each_row_alone=True)
    assert [r.title for r in alone.rules] == ["s values must never be null."]
    assert "quarantine decides on each row alone" in alone.deferred[1]
    with pytest.raises(DefinitionError) as refused:
        rules(spark, mixed)
    assert str(refused.value) == (
        "gate.json: expectation 1 (expect_key_to_be_unique): a gate cannot evaluate it, since it needs the whole "
        "table; move it to the suite of `quality.suite`, for `bridge check`"
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (expect("key_to_be_unique", column_list=["n"]), "so every row would pass"),
        (expect("column_values_to_not_be_null", column="gone"), "column 'gone' is not in the table"),
        (
            expect("column_values_to_be_of_type", column="n", type_="StringType"),
            "it is IntegerType, so no batch could pass the gate",
        ),
        (expect("column_values_to_be_between", column="s", min_value=1), "expectation 1"),
    ],
)
def test_a_gate_without_rules_or_that_no_row_passes_is_rejected(
    spark: SparkSession, given: dict[str, Any], why: str
) -> None:
    good = expect("column_values_to_be_of_type", column="n", type_="IntegerType")
    with pytest.raises(DefinitionError, match=why):
        rules(spark, suite(given, good), refuse_deferred=False)


def test_the_reason_names_all_rules_that_a_row_fails(spark: SparkSession) -> None:
    compiled = rules(
        spark,
        suite(
            expect("column_values_to_not_be_null", column="s"),
            expect("column_values_to_be_between", column="n", min_value=1),
        ),
    )
    frame = spark.createDataFrame([(0, None), (1, None), (1, "a"), (None, "a")], "n int, s string")
    reasons = [row[0] for row in frame.select(compiled.reason()).collect()]
    null, low = "s values must never be null.", "n values must be greater than or equal to 1."
    assert reasons == [f"{null}; {low}", null, None, None]
