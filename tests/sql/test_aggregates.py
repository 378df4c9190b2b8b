"""Aggregate functions have the types of Flink in Spark."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan, refusal

FROM = "FROM `views` AS `views` GROUP BY `views`.`region`"

ONES, HALF = "CAST(4294967295 AS BIGINT)", "CAST(2147483648 AS BIGINT)"
WRAPPED = f"CAST((((SUM(`views`.`page`) & {ONES}) + {HALF}) & {ONES}) - {HALF} AS INT)"
FILTER = "FILTER(WHERE `views`.`ok`)"
LOWER = f"SUM(`views`.`user_id` & {ONES}) {FILTER}"


@pytest.mark.parametrize(
    ("call", "type", "spark"),
    [
        ("COUNT(page)", "BIGINT", "COUNT(`views`.`page`)"),
        ("COUNT(DISTINCT page, user_id)", "BIGINT", "COUNT(DISTINCT `views`.`page`, `views`.`user_id`)"),
        ("COUNT(*) FILTER (WHERE page > 1)", "BIGINT", "COUNT(*) FILTER(WHERE `views`.`page` > 1)"),
        ("SUM(page)", "INT", f"CAST({WRAPPED} AS INT)"),
        ("SUM(page)", "BIGINT", f"CAST({WRAPPED} AS BIGINT)"),
        (
            "SUM(user_id) FILTER (WHERE ok)",
            "BIGINT",
            f"CAST((SHIFTLEFT((SUM(SHIFTRIGHT(`views`.`user_id`, 32)) {FILTER}) + SHIFTRIGHT({LOWER}, 32), 32) "
            f"| (({LOWER}) & {ONES})) AS BIGINT)",
        ),
        ("SUM(price)", "DECIMAL(38, 2)", "CAST(SUM(`views`.`price`) AS DECIMAL(38, 2))"),
        (
            "SUM(CAST(page AS DECIMAL(29, 1)))",
            "DECIMAL(38, 1)",
            "CAST(TRY_SUM(TRY_CAST(`views`.`page` AS DECIMAL(29, 1))) AS DECIMAL(38, 1))",
        ),
        ("SUM(CAST(page AS DOUBLE))", "DOUBLE", "CAST(SUM(CAST(`views`.`page` AS DOUBLE)) AS DOUBLE)"),
        ("MIN(ts)", "TIMESTAMP(3)", "CAST(MIN(`views`.`ts`) AS TIMESTAMP_NTZ)"),
        ("MAX(DISTINCT page)", "INT", "CAST(MAX(DISTINCT `views`.`page`) AS INT)"),
        (
            "AVG(page) FILTER (WHERE ok)",
            "INT",
            "CAST(SUM(`views`.`page`) FILTER(WHERE `views`.`ok`) DIV NULLIF(COUNT(`views`.`page`) "
            "FILTER(WHERE `views`.`ok`), 0) AS INT)",
        ),
        (
            "AVG(DISTINCT price)",
            "DECIMAL(38, 6)",
            "CAST(SUM(DISTINCT `views`.`price`) / CAST(NULLIF(COUNT(DISTINCT `views`.`price`), 0) AS DECIMAL(20, 0)) "
            "AS DECIMAL(38, 6))",
        ),
    ],
)
def test_calls(call: str, type: str, spark: str) -> None:
    found = plan(f"SELECT region, {call} FROM views GROUP BY region", f"a STRING, b {type}")
    assert found.spark_sql == f"SELECT `views`.`region` AS `a`, {spark} AS `b` {FROM}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("SUM(region)", "16: SUM does not take STRING"),
        ("COUNT(*) FILTER (WHERE page)", "39: a condition is BOOLEAN, and this is INT"),
        ("UPPER(region) FILTER (WHERE ok)", "16: FILTER is legal with an aggregate function only; remove it"),
        ("AVG(ts)", "16: AVG does not take TIMESTAMP(3)"),
        ("MAX(tags)", "16: MAX does not take MAP<STRING, INT>"),
        ("SUM(*)", "16: only COUNT(*) takes *; name a column for SUM"),
        ("COUNT(DISTINCT *)", "16: only COUNT(*) takes *; name a column for COUNT"),
        ("SUM()", "16: SUM takes one argument, not 0"),
        ("COUNT(page, user_id)", "16: COUNT takes one argument, not 2"),
        ("SUM(COUNT(*))", "20: aggregate functions cannot be nested; aggregate a subquery in FROM"),
        (
            "STDDEV_POP(page)",
            "16: the aggregate function STDDEV_POP is not supported in this version: the supported ones are "
            "COUNT, SUM, "
            "MIN, MAX, AVG",
        ),
        (
            "LISTAGG(region)",
            "16: the function LISTAGG is not supported in this version: write it with other functions or operators",
        ),
    ],
)
def test_refused(call: str, message: str) -> None:
    assert refusal(f"SELECT region, {call} FROM views GROUP BY region") == f"t.sql:6:{message}"
