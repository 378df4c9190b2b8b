"""Expressions: Flink's meaning and types in Spark SQL, and what is refused."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan, refusal


@pytest.mark.parametrize(
    ("expression", "type", "spark"),
    [
        ("CASE WHEN ok THEN 'x' ELSE region END", "STRING", "CAST(CASE WHEN `views`.`ok` THEN 'x' ELSE "
         "`views`.`region` "
         "END AS STRING)"),
        ("IF(ok, 1, 2)", "INT", "CAST(IF(`views`.`ok`, 1, 2) AS INT)"),
        ("CAST(page AS STRING)", "STRING", "CAST(`views`.`page` AS STRING)"),
        ("ts + INTERVAL '1' DAY", "TIMESTAMP(3)", "CAST(`views`.`ts` + INTERVAL '1' DAY AS TIMESTAMP_NTZ)"),
        ("region IS DISTINCT FROM 'x'", "BOOLEAN", "CAST(`views`.`region` IS DISTINCT FROM 'x' AS BOOLEAN)"),
        ("region LIKE 'a!%' ESCAPE '!'", "BOOLEAN", "CAST(`views`.`region` LIKE 'a!%' ESCAPE '!' AS BOOLEAN)"),
        ("NOT (page BETWEEN 1 AND 3 OR page IN (5, 6))", "BOOLEAN", "CAST(NOT (`views`.`page` BETWEEN 1 AND 3 OR "
         "`views`.`page` IN (5, 6)) AS BOOLEAN)"),
        ("TRIM(region) || 'x'", "STRING", "CAST(TRIM(`views`.`region`) || 'x' AS STRING)"),
        ("POSITION('a' IN region)", "INT", "CAST(LOCATE('a', `views`.`region`) AS INT)"),
        ("SHA256(region)", "STRING", "CAST(SHA2(`views`.`region`, 256) AS STRING)"),
        ("TO_TIMESTAMP_LTZ(user_id, 3)", "TIMESTAMP_LTZ(3)", "CAST(TIMESTAMP_MILLIS(`views`.`user_id`) AS TIMESTAMP)"),
        ("'it''s \\n'", "STRING", "CAST('it\\'s \\\\n' AS STRING)"),
    ],
)  # fmt: skip
def test_translated(expression: str, type: str, spark: str) -> None:
    found = plan(f"SELECT {expression} FROM views", f"a {type}", "")
    assert found.spark_sql == f"SELECT {spark} AS `a` FROM `views` AS `views`"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("UPPR(region)", "8: the function UPPR is not supported in this version: did you mean `UPPER`?"),
        ("my_udf_of_mine(region)", "8: the function MY_UDF_OF_MINE is not supported in this version: use functions "
         "that Flink "
         "and Spark share"),
        ("DECODE(page, 1, 2)", "8: the function DECODE is not supported in this version: write it with other "
         "functions or "
         "operators"),
        ("LEFT(page, 1)", "8: LEFT does not take (INT, INT NOT NULL); legal: LEFT(text, count)"),
        (
            "REGEXP_EXTRACT(region, region)",
            "8: the regular expression must be a constant text, as Spark stops at one that Java does not take, where "
            "Flink gives NULL; write CASE WHEN ... with a constant in each branch",
        ),
        ("(SELECT MAX(id) FROM users)", "9: a subquery in an expression is not supported in this version: write "
         "a join"),
        ("page IN (SELECT id FROM users)", "17: a subquery in an expression (IN) is not supported in this "
         "version: write "
         "a join"),
        ("(page, user_id) = (1, 2)", "9: a row in parentheses (a, b) is not supported in this version: write it with "
         "other functions or operators"),
        ("user_id = 'x'", "8: BIGINT and STRING NOT NULL cannot be compared; CAST one of them"),
        ("ok AND page", "15: a condition is BOOLEAN, and this is INT"),
        ("COUNT(views.*)", "14: alias.* is legal in SELECT only; name the columns"),
        ("'${env:NOT_SET}'", "8: the environment variable NOT_SET is not set; set it, give --env "
         "NOT_SET=..., or add a default: ${env:NOT_SET:...}"),
        ("'${file:x}'", "8: ${file:x} cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_refused(expression: str, message: str) -> None:
    assert refusal(f"SELECT {expression} FROM views", "a STRING", "") == f"t.sql:6:{message}"
