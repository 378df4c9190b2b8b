"""Exported conditions accept the rows that a gate accepts."""

from __future__ import annotations

import ast
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.quality.dp_expect import NoCondition, condition_of, export
from tests.quality.test_gate_rules import EVERY, SHAPE, Row, expect, rules, suite

ROWS: list[Row] = [
    (None, None, None, None, None, None, None),
    (0, 0, "", "", Decimal("0.50"), 0.5, date(2023, 12, 31)),
    (1, None, "a", "b", Decimal("0.51"), 1.0, date(2024, 1, 1)),
    (None, 2, "ab", None, Decimal("-1.00"), 7.25, None),
    (3, 2, "x", "x", None, float("nan"), date(2024, 1, 2)),
    (2, 3, "ay", "xyz", Decimal("2.00"), float("inf"), None),
    (8, 8, "xyz", "a", None, 0.0, None),
]


def whatever_the_share(config: Any) -> str | None:
    with suppress(NoCondition):
        return condition_of(config.type, {**config.kwargs, "mostly": None})
    return None


def test_conditions_are_those_of_a_gate_and_never_null(spark: SparkSession) -> None:
    compiled = rules(spark, EVERY).rules
    pairs = [
        (rule, condition)
        for rule, e in zip(compiled, EVERY.expectations, strict=True)
        if (condition := whatever_the_share(e.configuration)) is not None
    ]
    assert len({rule.type for rule, _ in pairs}) == 13
    found = spark.createDataFrame(ROWS, SHAPE).select(
        *(F.struct(F.expr(sql), ~rule.unexpected) for rule, sql in pairs)
    )
    for row in found.collect():
        for (rule, sql), (exported, accepted) in zip(pairs, row, strict=True):
            assert exported is accepted, (rule.title, sql)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (expect("key_to_be_unique", column_list=["n"]), "is not a condition on a row in SQL"),
        (expect("column_values_to_not_be_null", column="n", mostly=0.9), "has `mostly` below 1"),
        (
            expect("column_values_to_be_null", column="n", row_condition="m > 1", condition_parser="spark"),
            "has `condition_parser`, `row_condition`",
        ),
    ],
)
def test_what_is_not_exported_is_named(given: dict[str, object], reason: str) -> None:
    text, (left,) = export(suite(given), "t")
    assert reason in left and f"# Not exported: {left}" in text


def test_the_file_is_python_with_a_decorator_for_each() -> None:
    same = expect("column_values_to_match_regex", column="a`.b", regex="\\d'\"")
    text, left = export(suite(same, same), "main.sales.`orders`")
    (_, _, function) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef) and function.name == "gate_checked" and left == ()
    *expected, view = function.decorator_list
    titles, (condition, _) = zip(*(map(ast.literal_eval, e.args) for e in expected), strict=True)  # type: ignore[attr-defined]
    assert titles[1] == f"{titles[0]} (2)"
    assert condition == "`a```.`b` IS NULL OR (`a```.`b` RLIKE '\\\\d\\'\"')"
    assert "gate_checked" in ast.unparse(view) and "main.sales.`orders`" in ast.unparse(function)
