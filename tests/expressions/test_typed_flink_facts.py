"""Values that Flink 2.0.2 itself gave for expressions whose value once differed here, or whose script stopped."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.ddl.elements import spark_text
from bridge.expressions.typed import type_of
from tests.ddl.helpers import refusal
from tests.expressions.vectors import columns_of, translated

_COLUMNS = "i INT, l BIGINT, d DOUBLE, m DECIMAL(10, 2), t STRING, ts TIMESTAMP(3), b BOOLEAN"
_ROW = (
    "SELECT -7 AS i, 5000000000 AS l, 1e300D AS d, CAST(-2.50 AS DECIMAL(10, 2)) AS m, 'hello' AS t, "
    "TIMESTAMP_NTZ '2026-03-29 02:30:05.678' AS ts, TRUE AS b"
)
_FACTS = (
    ("SUBSTRING(t, -7, 4)", "STRING", ""),
    ("SUBSTRING('hello', -10, 6)", "STRING", ""),
    ("SUBSTR('hello', 2, -1)", "STRING", None),
    ("LPAD(t, 8, '')", "STRING", None),
    ("RPAD('abcd', 5, '')", "STRING", None),
    ("LPAD('hi', -1, '?')", "STRING", None),
    ("EXTRACT(SECOND FROM ts)", "BIGINT", 5),
    ("EXTRACT(ISODOW FROM ts)", "BIGINT", 7),
    ("EXTRACT(EPOCH FROM DATE '2021-11-04')", "BIGINT", 1635984000),
    ("TO_TIMESTAMP('2020') IS NULL", "BOOLEAN", True),
    ("TO_TIMESTAMP('10:00:00') IS NULL", "BOOLEAN", True),
    ("TO_TIMESTAMP('2020-01-01T10:00:00+05:00') IS NULL", "BOOLEAN", True),
    ("REGEXP_EXTRACT('a_b', '(a)(c)?', 2)", "STRING", None),
    ("REGEXP_REPLACE('a1b', '(\\d)', '<$1>')", "STRING", "a<$1>b"),
    ("REGEXP_REPLACE('fooobar', 'oo', '$')", "STRING", "f$obar"),
    ("INSTR('Corporate Floor', 'or', 3, 2)", "INT", 14),
    ("STR_TO_MAP('k1=v1,k2=v2')", "MAP<STRING, STRING>", {"k1": "v1", "k2": "v2"}),
    ("CAST(SIGN(i) AS STRING)", "STRING", "-1"),
    ("FLOOR(d)", "DOUBLE", 1e300),
    ("2147483647 - i", "INT", -2147483642),
    ("CAST(1 AS DOUBLE) / CAST(0 AS DOUBLE) > 5", "BOOLEAN", True),
    (
        "CAST('99999999999999999999999999999999999.999' AS DECIMAL(38, 3)) + CAST('1.000' AS DECIMAL(38, 3))",
        "DECIMAL(38, 3)",
        None,
    ),
    ("TRY_CAST(' true ' AS BOOLEAN)", "BOOLEAN", None),
    ("DATE_FORMAT(TIMESTAMP '2024-12-29 20:55:30', 'YYYY-MM-dd')", "STRING", "2025-12-29"),
    ("SPLIT_INDEX('a&b', '&', 5)", "STRING", None),
    (
        "CAST(TIMESTAMP '2026-01-01 00:00:00.123999' AS TIMESTAMP(3))",
        "TIMESTAMP(3)",
        "2026-01-01 00:00:00.123",
    ),
)


def test_the_values_are_those_of_flink(spark: SparkSession) -> None:
    roots = [translated(expression, columns_of(_COLUMNS)) for expression, _, _ in _FACTS]
    types = [type.flink().replace(" NOT NULL", "") for root in roots if (type := type_of(root)) is not None]
    assert types == [type for _, type, _ in _FACTS]
    row = spark.sql(_ROW).selectExpr(*(spark_text(root) for root in roots)).collect()[0]
    shown = [
        None if v is None else v if isinstance(v, (bool, int, float, dict)) else str(v).removesuffix("000")
        for v in row
    ]
    wrong = [(fact[0], value) for fact, value in zip(_FACTS, shown, strict=True) if value != fact[2]]
    assert wrong == []


def test_a_regular_expression_that_java_does_not_take_is_refused() -> None:
    message = refusal("t STRING", "c AS REGEXP_EXTRACT('a_b', '(', 1)").message
    assert message.startswith(
        "computed column `c`: '(' is no regular expression: missing ), unterminated subpattern"
    )


def test_a_replacement_that_may_be_null_joins_an_array_that_is_not(spark: SparkSession) -> None:
    """In compiled code, which the sessions of users run, but by default not those of the tests."""
    compiling = spark.newSession()
    compiling.conf.set("spark.sql.codegen.wholeStage", "true")
    compiling.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    root = translated("ARRAY_JOIN(ARRAY['n'], ',', t)", columns_of("t STRING"))
    table = compiling.createDataFrame([("x",), (None,)], "t STRING")
    assert [value for (value,) in table.selectExpr(spark_text(root)).collect()] == ["n", None]
