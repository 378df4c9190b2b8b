"""Spark evaluates translated computed columns to the values in Flink's documentation."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from tests.ddl.helpers import table

COLUMNS = (
    "a INT",
    "nothing STRING",
    "s STRING",
    "d DECIMAL(10, 2)",
    "ts TIMESTAMP(3)",
    "ms BIGINT",
    "arr ARRAY<INT>",
    "m MAP<STRING, INT>",
    "r ROW<f INT, g ROW<`h i` STRING>>",
)
ROW = """SELECT 7 a, CAST(null AS STRING) nothing, '2024-02-03 04:05:06' s, CAST(1.50 AS DECIMAL(10, 2)) d,
    TIMESTAMP_NTZ '2024-02-03 04:05:06.123' ts, 1706933106123 ms, array(10, 20) arr, map('k', 1) m,
    named_struct('f', 5, 'g', named_struct('h i', 'deep')) r"""
MOMENT = datetime(2024, 2, 3, 4, 5, 6)

EXPECTED: list[tuple[str, object]] = [
    ("s || nothing", None),
    ("'it''s \\n' || ' x'", "it's \\n x"),
    ("a / 2", 3),
    ("-a / 2", -3),
    ("a / 2.0", Decimal("3.5")),
    ("a / CAST(2 AS DOUBLE)", 3.5),
    ("arr[1]", 10),
    ("arr[3]", None),
    ("m['k']", 1),
    ("m['other']", None),
    ("r.f", 5),
    ("r.g.`h i`", "deep"),
    ("CAST(d AS STRING)", "1.50"),
    ("CAST(s AS TIMESTAMP(3))", MOMENT),
    ("CAST('x' || s AS BYTES)", bytearray(b"x2024-02-03 04:05:06")),
    ("TO_TIMESTAMP(s)", MOMENT),
    ("TO_TIMESTAMP('03.02.2024', 'dd.MM.yyyy')", datetime(2024, 2, 3)),
    ("TO_TIMESTAMP('no time')", None),
    ("TO_DATE('2024-02-03')", date(2024, 2, 3)),
    ("TO_DATE('no day')", None),
    ("DATE_FORMAT(TO_TIMESTAMP_LTZ(ms, 3), 'yyyy-MM-dd HH:mm:ss.SSS')", "2024-02-03 04:05:06.123"),
    ("DATE_FORMAT(TO_TIMESTAMP_LTZ(ms / 1000, 0), 'yyyy-MM-dd HH:mm:ss.SSS')", "2024-02-03 04:05:06.000"),
    ("DATE_FORMAT(ts, 'yyyy/MM')", "2024/02"),
    ("ts - INTERVAL '1' DAY", datetime(2024, 2, 2, 4, 5, 6, 123000)),
    ("TIMESTAMPADD(HOUR, 1, ts)", datetime(2024, 2, 3, 5, 5, 6, 123000)),
    ("TIMESTAMPDIFF(DAY, TIMESTAMP '2024-02-01 00:00:00', ts)", 2),
    ("EXTRACT(YEAR FROM ts)", 2024),
    ("REGEXP_EXTRACT(s, '(\\d+)-(\\d+)', 2)", "02"),
    ("REGEXP_EXTRACT(s, '\\d+-\\d+')", "2024-02"),
    ("REGEXP_EXTRACT(s, 'x')", None),
    ("FROM_BASE64(TO_BASE64('x'))", "x"),
    ("SHA256('x')", "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
    ("SUBSTRING(s FROM 6 FOR 2)", "02"),
    ("TRIM(LEADING '0' FROM '007')", "7"),
    ("CASE WHEN a > 5 AND nothing IS NULL THEN 'Y' ELSE 'N' END", "Y"),
    ("IF(nothing = 'x', 1, 2)", 2),
    ("MOD(a, 4)", 3),
    ("CARDINALITY(ARRAY[a, 2])", 2),
]


# PySpark leaves the socket of a collect() for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_values(spark: SparkSession) -> None:
    schema = table(*COLUMNS, *(f"c{i} AS {flink}" for i, (flink, _) in enumerate(EXPECTED))).schema
    row = spark.sql(ROW).selectExpr(*(f"{c.spark} AS {c.name}" for c in schema.computed)).first()
    assert row is not None
    assert [(c.expression, value) for c, value in zip(schema.computed, row, strict=True)] == EXPECTED
