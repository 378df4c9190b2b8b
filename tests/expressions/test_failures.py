"""Why an expression fails for a row is told by an expression that does not fail, where Flink and Spark do."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from pyspark.sql import SparkSession

from bridge.errors import DdlError
from tests.expressions.known_differences import is_known
from tests.expressions.vectors import (
    Vector,
    drawn_seed,
    evaluate,
    failure_text,
    given,
    inputs,
    spark_text,
    vectors,
)

_DRAWN = 6
"""Of expressions whose rows are computed one by one, a Spark job each."""
_COLUMNS_DRAWN, _CONSTANTS_DRAWN = 500, 40


def _failing(chosen: Sequence[Vector]) -> Mapping[str, tuple[Vector, str, str]]:
    """The accepted expressions that may fail, without their failures, and why they fail."""
    found = {}
    for vector in chosen:
        if vector.refused is None:
            try:
                value, fails = failure_text(vector.expression)
            except DdlError:
                continue
            if fails is not None:
                found[vector.expression] = (vector, value, fails)
    return found


@pytest.fixture(scope="module", params=["drawn", pytest.param("all", marks=pytest.mark.slow)])
def failing(request: pytest.FixtureRequest) -> Mapping[str, tuple[Vector, str, str]]:
    """Those with columns, or some of them, and some of those without."""
    seed = drawn_seed()
    draw = random.Random(seed)
    chosen = list(vectors())
    columns = [v for v in chosen if "c_" in v.expression]
    if request.param == "drawn":
        columns = draw.sample(columns, _COLUMNS_DRAWN)
    constant = [v for v in chosen if "c_" not in v.expression]
    return _failing(columns + draw.sample(constant, _CONSTANTS_DRAWN))


def test_it_fails_for_the_rows_for_which_flink_fails(
    spark: SparkSession, failing: Mapping[str, tuple[Vector, str, str]]
) -> None:
    table = inputs(spark).persist()
    vectors_, values, fails = zip(*failing.values(), strict=True)
    found = table.selectExpr("rid", *(f"{f} AS f{n}" for n, f in enumerate(fails))).sort("rid").collect()
    wrong = [
        f"{vector.expression} => {given(vector.expression, row)}: {reasons[n + 1]}"
        for row, reasons in enumerate(found)
        for n, vector in enumerate(vectors_)
        if (isinstance(v := vector.values[row], dict) and "error" in v) != (reasons[n + 1] is not None)
        and vector.is_judged(row)
        and not is_known(vector, row)
    ]
    assert wrong == []
    assert sum(reason is not None for reasons in found for reason in reasons[1:]) > len(vectors_) / 2
    # Without their failures none of them stops the job.
    assert (
        len(table.selectExpr(*(f"CAST({v} AS STRING) AS v{n}" for n, v in enumerate(values))).collect()) == 12
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_it_fails_for_the_rows_for_which_spark_fails(
    spark: SparkSession, failing: Mapping[str, tuple[Vector, str, str]]
) -> None:
    seed = drawn_seed()
    chosen = random.Random(seed).sample(sorted(e for e in failing if "c_" in e), _DRAWN)
    table = inputs(spark).persist()
    for expression, values in zip(chosen, evaluate(table, [spark_text(e) for e in chosen]), strict=True):
        reasons = table.selectExpr("rid", f"{failing[expression][2]} AS f").sort("rid").collect()
        for value, (_, reason) in zip(values, reasons, strict=True):
            raised = isinstance(value, dict) and "error" in value
            assert raised == (reason is not None), f"{expression}, drawn with {seed=}"
            assert not raised or reason in value["error"]


@pytest.mark.parametrize(
    ("expression", "reasons"),
    [
        ("1 / x", {0: "division by zero in 1 / x"}),
        ("10 % x + 1 / x", {0: "division by zero in 10 % x"}),
        ("CASE WHEN x <> 0 THEN 1 / x END", {}),
        ("CASE WHEN x = 0 THEN 1 / x ELSE 1 END", {0: "division by zero in 1 / x"}),
        ("CASE x WHEN 1 / x THEN 1 END", {0: "division by zero in 1 / x"}),
        ("CASE WHEN 1 / x > 0 THEN 1 WHEN x = 0 THEN 2 END", {0: "division by zero in 1 / x"}),
        ("IF(x = 0, 0, 1 / x)", {}),
        ("COALESCE(x, 1 / 0)", {None: "division by zero in 1 / 0"}),
        ("COALESCE(1 / x, 2)", {0: "division by zero in 1 / x"}),
        ("x <> 0 AND 1 / x > 0", {}),
        ("1 / x > 0 AND x <> 0", {0: "division by zero in 1 / x"}),
        ("x = 0 OR 1 / x > 0", {}),
        ("x = 1 OR 1 / x > 0", {0: "division by zero in 1 / x"}),
        ("NOT (x <> 0 AND 1 / x > 0)", {}),
        ("x / 2", {}),
        ("1 / NULLIF(x, 0)", {}),
        ("1 / (1 / x)", {0: "division by zero in 1 / x", 2: "division by zero in 1 / (1 / x)"}),
        ("UPPER(CAST(1 / x AS STRING))", {0: "division by zero in 1 / x"}),
        ("CAST(t AS INT)", {2: "a value that is no INT in CAST(t AS INT)"}),
        (
            "CAST(t AS TIMESTAMP(3))",
            dict.fromkeys((0, 1, 2), "a value that is no TIMESTAMP(3) in CAST(t AS TIMESTAMP(3))"),
        ),
        ("TRY_CAST(t AS INT)", {}),
        (
            "CAST(SPLIT(t, ',') AS ARRAY<INT>)",
            {2: "a value that is no INT in CAST(SPLIT(t, ',') AS ARRAY<INT>)"},
        ),
        (
            "CAST(ARRAY[SPLIT(t, ',')] AS ARRAY<ARRAY<DATE>>)[1][9]",
            {2: "a value that is no DATE in CAST(ARRAY(SPLIT(t, ',')) AS ARRAY<ARRAY<DATE>>)"},
        ),
        (
            "CAST(ROW(t, x) AS ROW<a INT, b STRING>)",
            {2: "a value that is no INT in CAST(ROW(t, x) AS ROW<`a` INT, `b` STRING>)"},
        ),
        (
            "CAST(STR_TO_MAP(t) AS MAP<INT, STRING>)",
            {2: "a value that is no INT in CAST(STR_TO_MAP(t) AS MAP<INT, STRING>)"},
        ),
        ("TRY_CAST(SPLIT(t, ',') AS ARRAY<INT>)", {}),
        ("TRY_CAST(ARRAY[1 / x] AS ARRAY<STRING>)", {0: "division by zero in 1 / x"}),
        (
            "MAP_FROM_ARRAYS(ARRAY[t, t], ARRAY[1 / x, x])",
            {
                0: "division by zero in 1 / x",
                None: "a NULL key, which no map of Spark has, in MAP_FROM_ARRAYS(ARRAY(t, t), ARRAY(1 / x, x))",
            },
        ),
        (
            "MAP_FROM_ARRAYS(SPLIT(t, ','), ARRAY[1, 2])",
            dict.fromkeys(
                (0, 1, 2),
                "another number of keys than of values in MAP_FROM_ARRAYS(SPLIT(t, ','), ARRAY(1, 2))",
            ),
        ),
        ("TRY_CAST(1 / x AS STRING)", {0: "division by zero in 1 / x"}),
        (
            "CAST('it''s' AS INT) + x",
            dict.fromkeys((0, 1, 2, None), "a value that is no INT in CAST('it''s' AS INT)"),
        ),
    ],
)
def test_only_what_is_computed_fails(
    spark: SparkSession, expression: str, reasons: Mapping[int | None, str]
) -> None:
    text = failure_text(expression, "x INT, t STRING")[1]
    rows = [(0, "0"), (1, " 1 "), (2, "b"), (None, None)]
    found = (
        spark.createDataFrame(rows, "x INT, t STRING").selectExpr("x", f"{text or 'NULL'} AS why").collect()
    )
    assert {x: why for x, why in found if why is not None} == reasons
    assert (text is None) <= (not reasons)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("ARRAY_CONTAINS(a, v)", True),
        ("ARRAY_REMOVE(a, v)", ["x"]),
        ("MAP_UNION(MAP_FROM_ARRAYS(a, a), k)", {"k": "1", "x": "x"}),
        ("STR_TO_MAP(p)", {"x": "2", "y": None}),
    ],
)
def test_a_lambda_hides_no_column(spark: SparkSession, expression: str, value: object) -> None:
    columns = "a ARRAY<STRING>, v STRING, k MAP<STRING, STRING>, p STRING"
    rows = spark.createDataFrame([(["k", "x"], "k", {"k": "1"}, "x=1,y,x=2")], columns)
    assert rows.selectExpr(f"{failure_text(expression, columns)[0]} AS x").collect()[0][0] == value


@pytest.mark.parametrize(("sign", "more"), [("AND", "1"), ("OR", "1"), ("AND", "COALESCE(1, 2)")])
def test_each_failure_of_a_chain_of_conditions_is_told_once(sign: str, more: str) -> None:
    text = failure_text(f" {sign} ".join(f"{more} / x = {n}" for n in range(12)), "x INT")[1]
    assert text is not None
    assert text.count("division by zero") == 12


def test_a_long_expression_is_shown_in_part() -> None:
    name = "x" * 150
    text = failure_text(f"1 / {name}", f"{name} INT")[1]
    assert text is not None
    assert f"'division by zero in 1 / {name[:115]}…'" in text


def test_unusual_names_are_quoted() -> None:
    text = failure_text("1 / `a b`", "`a b` INT")[1]
    assert text is not None
    assert "division by zero in 1 / `a b`" in text
