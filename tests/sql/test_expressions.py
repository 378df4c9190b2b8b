"""Expressions: Flink's meaning and types in Spark SQL, and what is refused."""

from __future__ import annotations

import pytest

from tests.sql.scripts import plan, refusal


@pytest.mark.parametrize(
    ("expression", "type", "spark"),
    [
        ("user_id / 2", "BIGINT", "CAST(`views`.`user_id` DIV 2 AS BIGINT)"),
        ("price / 2", "DECIMAL(38, 16)", "CAST(`views`.`price` / 2 AS DECIMAL(38, 16))"),
        ("tags['k'] + 1", "INT", "CAST(TRY_ELEMENT_AT(`views`.`tags`, 'k') + 1 AS INT)"),
        ("CASE WHEN ok THEN 'x' ELSE region END", "STRING", "CAST(CASE WHEN `views`.`ok` THEN 'x' ELSE "
         "`views`.`region` "
         "END AS STRING)"),
        ("IF(ok, 1, 2)", "INT", "CAST(IF(`views`.`ok`, 1, 2) AS INT)"),
        ("CAST(page AS STRING)", "STRING", "CAST(`views`.`page` AS STRING)"),
        ("TRY_CAST(region AS TIMESTAMP(6))", "TIMESTAMP(6)", "TRY_CAST(`views`.`region` AS TIMESTAMP_NTZ)"),
        ("ts + INTERVAL '1' DAY", "TIMESTAMP(3)", "CAST(`views`.`ts` + INTERVAL '1' DAY AS TIMESTAMP_NTZ)"),
        ("region IS DISTINCT FROM 'x'", "BOOLEAN", "CAST(`views`.`region` IS DISTINCT FROM 'x' AS BOOLEAN)"),
        ("region LIKE 'a!%' ESCAPE '!'", "BOOLEAN", "CAST(`views`.`region` LIKE 'a!%' ESCAPE '!' AS BOOLEAN)"),
        ("NOT (page BETWEEN 1 AND 3 OR page IN (5, 6))", "BOOLEAN", "CAST(NOT (`views`.`page` BETWEEN 1 AND 3 OR "
         "`views`.`page` IN (5, 6)) AS BOOLEAN)"),
        ("TRIM(region) || 'x'", "STRING", "CAST(TRIM(`views`.`region`) || 'x' AS STRING)"),
        ("TIMESTAMPDIFF(DAY, ts, ts)", "INT", "CAST(TIMESTAMPDIFF(DAY, `views`.`ts`, `views`.`ts`) AS INT)"),
        ("EXTRACT(YEAR FROM ts)", "BIGINT", "CAST(EXTRACT(YEAR FROM `views`.`ts`) AS BIGINT)"),
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
        ("CAST(ok AS STRING)", "13: a boolean is converted to 'TRUE' in Flink and to 'true' in Spark; write CASE WHEN"),
        ("UPPR(region)", "8: the function UPPR is not supported in this version: did you mean `UPPER`?"),
        ("my_function(region)", "8: the function MY_FUNCTION is not supported in this version: use functions "
         "that Flink "
         "and Spark share"),
        ("DECODE(page, 1, 2)", "8: the function DECODE is not supported in this version: write it with other "
         "functions or "
         "operators"),
        ("GREATEST(page, 2)", "8: GREATEST is null in Flink if one argument is null, while Spark ignores nulls; "
         "write CASE "
         "WHEN"),
        ("(SELECT MAX(id) FROM users)", "9: a subquery in an expression is not supported in this version: write "
         "a join"),
        ("page IN (SELECT id FROM users)", "17: a subquery in an expression (IN) is not supported in this "
         "version: write "
         "a join"),
        ("(page, user_id) = (1, 2)", "9: a row in parentheses (a, b) is not supported in this version: write it with "
         "other functions or operators"),
        ("user_id = 'x'", "8: BIGINT and STRING NOT NULL cannot be compared; CAST one of them"),
        ("ok AND page", "15: a condition is BOOLEAN, and this is INT"),
        ("FLOOR(ts TO DAY)", "14: Spark has no FLOOR and CEIL to a time unit; write DATE_FORMAT with a pattern"),
        ("ROUND(page, 1) / 2", "8: the types of the operands of this division are not known, and Flink divides "
         "integers "
         "to an integer while Spark does not; CAST both operands (to BIGINT, DOUBLE or DECIMAL)"),
        ("region LIKE 'a\\_%'", "8: without ESCAPE, a backslash in a pattern of LIKE is a character in Flink and the "
         "escape in Spark; write ESCAPE with another character"),
        ("CAST(region AS VARCHAR(3))", "23: Spark's casts ignore the length; cast to STRING and truncate with LEFT or "
         "SUBSTRING"),
        ("COUNT(views.*)", "14: alias.* is legal in SELECT only; name the columns"),
        ("'${env:NOT_SET}'", "8: the environment variable NOT_SET is not set; set it, or add a default: "
         "${env:NOT_SET:...}"),
        ("'${file:x}'", "8: ${file:x} cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_refused(expression: str, message: str) -> None:
    assert refusal(f"SELECT {expression} FROM views", "a STRING", "") == f"t.sql:6:{message}"
