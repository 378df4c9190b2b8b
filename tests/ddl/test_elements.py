"""Columns, primary keys and watermarks.

Spark evaluates translated computed columns to the values in Flink's documentation.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from bridge.schema import ComputedColumn, MetadataColumn, PhysicalColumn, ScalarType, Watermark
from tests.ddl.helpers import place, refusal, table

INT = ScalarType("INT")
LTZ3 = ScalarType("TIMESTAMP_LTZ", (3,))
KEY = "PRIMARY KEY (id) NOT ENFORCED"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id INT", PhysicalColumn("id", INT)),
        ("id INT NOT NULL COMMENT 'it''s\nthe \\id'", PhysicalColumn("id", INT.required(), "it's\nthe \\id")),
        ("`a ``b`` . c` INT", PhysicalColumn("a `b` . c", INT)),
        ("timestamp INT", PhysicalColumn("timestamp", INT)),
        ("value INT", PhysicalColumn("value", INT)),
        ("key INT", PhysicalColumn("key", INT)),
        ("name INT", PhysicalColumn("name", INT)),
        ("count INT", PhysicalColumn("count", INT)),
        ("primary INT", PhysicalColumn("primary", INT)),
        ("unique INT", PhysicalColumn("unique", INT)),
        ("constraint INT", PhysicalColumn("constraint", INT)),
        ("watermark INT", PhysicalColumn("watermark", INT)),
        ("metadata INT", PhysicalColumn("metadata", INT)),
        ("comment INT", PhysicalColumn("comment", INT)),
        ("with INT", PhysicalColumn("with", INT)),
        ("_x$1 INT", PhysicalColumn("_x$1", INT)),
        ("__kind INT", PhysicalColumn("__kind", INT)),
        ("ts TIMESTAMP_LTZ(3) METADATA", MetadataColumn("ts", LTZ3, "ts")),
        ("ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'", MetadataColumn("ts", LTZ3, "timestamp")),
        ("`offset` INT METADATA VIRTUAL", MetadataColumn("offset", INT, "offset", virtual=True)),
        (
            "o INT NOT NULL METADATA FROM 'offset' VIRTUAL COMMENT 'where'",
            MetadataColumn("o", INT.required(), "offset", virtual=True, comment="where"),
        ),
        ("c AS UPPER('x')", ComputedColumn("c", "UPPER('x')", "UPPER('x')")),
        (
            "c AS CONCAT('a, b', ')', -- why\n 'COMMENT') COMMENT 'text'",
            ComputedColumn(
                "c",
                "CONCAT('a, b', ')', -- why\n 'COMMENT')",
                "CONCAT('a, b', ')', 'COMMENT')",
                "text",
            ),
        ),
    ],
)
def test_column(text: str, expected: object) -> None:
    assert table(text).schema.columns == (expected,)


def test_columns_are_in_the_order_of_the_text() -> None:
    schema = table("c AS a + 1", "b INT METADATA", "a INT", "d INT").schema
    assert schema.names == ("c", "b", "a", "d")
    assert [c.name for c in schema.physical] == ["a", "d"]


@pytest.mark.parametrize(
    ("elements", "key"),
    [
        (["id INT", KEY], ("id",)),
        (["id INT", "CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED"], ("id",)),
        (["id INT", "constraint `p k` primary key (`id`) not enforced"], ("id",)),
        (["PRIMARY KEY (b, a) NOT ENFORCED", "a INT", "b INT"], ("b", "a")),
        (["id INT PRIMARY KEY NOT ENFORCED"], ("id",)),
        (["id INT NOT NULL CONSTRAINT pk PRIMARY KEY NOT ENFORCED COMMENT 'the id'"], ("id",)),
        (["id INT"], ()),
    ],
)
def test_primary_key(elements: list[str], key: tuple[str, ...]) -> None:
    assert table(*elements).schema.primary_key == key


def test_a_key_column_has_its_declared_nullability() -> None:
    assert table("id INT", KEY).schema.physical[0].type.nullable


@pytest.mark.parametrize(
    ("type", "expression", "seconds"),
    [
        ("TIMESTAMP(3)", "ts", 0.0),
        ("TIMESTAMP", "ts - INTERVAL '2' SECOND", 2.0),
        ("TIMESTAMP_LTZ(3)", "`ts` - INTERVAL '0.005' SECOND", 0.005),
        ("TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'", "ts - INTERVAL '5' SECOND(3, 3)", 5.0),
        ("TIMESTAMP(6)", "ts - interval '10' minute", 600.0),
        ("TIMESTAMP(3)", "ts - INTERVAL '1' HOUR(2)", 3600.0),
        ("TIMESTAMP(3)", "ts - INTERVAL '2' DAY", 172800.0),
        ("TIMESTAMP(3)", "ts - INTERVAL '30' SECONDS", 30.0),
        ("AS TO_TIMESTAMP_LTZ(1, 3)", "ts - INTERVAL '5' SECOND", 5.0),
    ],
)
def test_watermark(type: str, expression: str, seconds: float) -> None:
    schema = table(f"WATERMARK FOR ts AS {expression}", f"ts {type}").schema
    assert schema.watermark == Watermark("ts", expression, seconds)


@pytest.mark.parametrize(
    ("elements", "at", "message"),
    [
        (["a INT", "a STRING"], (3, 1), "column `a` is declared twice"),
        (
            ["a INT", "b INT", "`A` AS 1"],
            (4, 1),
            "column `A` differs from `a` only in case, and column names in Spark and Delta",
        ),
        (["leader-epoch INT"], (2, 7), "expected the type of column `leader`, or AS, found '-'"),
        (
            ["'a' INT"],
            (2, 1),
            "expected a column, PRIMARY KEY or WATERMARK (names with characters other than",
        ),
        (["a INT DEFAULT 1"], (2, 7), "expected ',' or ')' after column `a`, found 'DEFAULT'"),
        (["a INT VIRTUAL"], (2, 7), "expected ',' or ')' after column `a`, found 'VIRTUAL'"),
        (["a INT COMMENT b"], (2, 15), "expected the comment in single quotes, found 'b'"),
        (["a INT METADATA FROM timestamp"], (2, 21), "expected the metadata key in single quotes"),
        (["a INT METADATA 'timestamp'"], (2, 16), "expected ',' or ')' after column `a`, found a string"),
        (["a INT METADATA PRIMARY KEY NOT ENFORCED"], (2, 16), "expected ',' or ')' after column `a`"),
        (["a AS"], (3, 1), "expected an expression after AS, found ')'"),
        (["a AS COMMENT 'x'"], (2, 6), "expected an expression after AS, found 'COMMENT'"),
        (["a INT", "PRIMARY KEY (a)"], (3, 1), "a primary key must be declared NOT ENFORCED, as in Flink"),
        (["a INT", "PRIMARY KEY (a) ENFORCED"], (3, 17), "a primary key must be declared NOT ENFORCED"),
        (
            ["a INT PRIMARY KEY"],
            (2, 7),
            "a primary key must be declared NOT ENFORCED, as in Flink, since it",
        ),
        (["a INT PRIMARY NOT ENFORCED"], (2, 15), "expected KEY after PRIMARY"),
        (["a INT", "PRIMARY KEY a NOT ENFORCED"], (3, 13), "expected '(' and the columns of the primary key"),
        (["a INT", "PRIMARY KEY () NOT ENFORCED"], (3, 14), "expected a column of the primary key"),
        (
            ["a INT PRIMARY KEY NOT ENFORCED", "PRIMARY KEY (a) NOT ENFORCED"],
            (3, 1),
            "the table already has a primary key",
        ),
        (
            ["PRIMARY KEY (a) NOT ENFORCED", "a INT PRIMARY KEY NOT ENFORCED"],
            (3, 7),
            "the table already has a primary key",
        ),
        (["aid INT", KEY], (3, 14), "the primary key names `id`, which is not a column; did you mean `aid`?"),
        (["ID INT", KEY], (3, 14), "the primary key names `id`, which is not a column; did you mean `ID`?"),
        (["zz INT", KEY], (3, 14), "the primary key names `id`, which is not a column; known names are `zz`"),
        ([KEY], (3, 1), "the table has no columns"),
        (["a INT", "PRIMARY KEY (a, a) NOT ENFORCED"], (3, 17), "the primary key names `a` twice"),
        (
            ["id INT METADATA", KEY],
            (3, 14),
            "a primary key consists of physical columns; `id` is a metadata column",
        ),
        (["id AS 1", KEY], (3, 14), "a primary key consists of physical columns; `id` is a computed column"),
        (
            ["a INT", "UNIQUE (a)"],
            (3, 1),
            "UNIQUE is not supported, as in Flink; declare the columns as",
        ),
        (["a INT UNIQUE"], (2, 7), "UNIQUE is not supported"),
        (["a INT", "CONSTRAINT u UNIQUE (a)"], (3, 14), "UNIQUE is not supported"),
        (["a INT CONSTRAINT"], (2, 7), "expected ',' or ')' after column `a`, found 'CONSTRAINT'"),
    ],
)
def test_refused(elements: list[str], at: tuple[int, int], message: str) -> None:
    error = refusal(*elements)
    assert error.message.startswith(message)
    assert place(error) == at


@pytest.mark.parametrize(
    ("watermark", "column", "message"),
    [
        (
            "r.ts AS r.ts",
            15,
            "the watermark's column must be a column of the table; for a field of `r` declare a",
        ),
        ("x AS x", 15, "the watermark names `x`, which is not a column; known names are `ts`, `n`"),
        ("n AS n", 15, "a watermark requires a column TIMESTAMP or TIMESTAMP_LTZ; `n` is INT NOT NULL"),
        (
            "ts AS SOURCE_WATERMARK()",
            21,
            "this watermark strategy is not supported; write `column` or `column - ",
        ),
        ("ts AS n - INTERVAL '1' SECOND", 21, "this watermark strategy is not supported"),
        ("ts AS ts + INTERVAL '1' SECOND", 24, "this watermark strategy is not supported"),
        ("ts AS ts - 5", 26, "this watermark strategy is not supported"),
        ("ts AS ts(1)", 21, "this watermark strategy is not supported"),
        ("ts AS ts - INTERVAL '1' DAY - INTERVAL '1' DAY", 43, "this watermark strategy is not supported"),
        (
            "ts AS ts - INTERVAL 5 SECOND",
            35,
            "expected the length of the delay, a number in single quotes",
        ),
        (
            "ts AS ts - INTERVAL '1:30' MINUTE TO SECOND",
            42,
            "intervals of more than one unit are not supported",
        ),
        (
            "ts AS ts - INTERVAL '1' DAY TO SECOND",
            39,
            "intervals of more than one unit are not supported; write the",
        ),
        ("ts AS ts - INTERVAL '-5' SECOND", 35, "the length of the delay must be a number"),
        (
            "ts AS ts - INTERVAL '1.5' MINUTE",
            35,
            "the length of the delay must be a number (whole, or a fraction of SECOND)",
        ),
        (
            "ts AS ts - INTERVAL '1' MONTH",
            39,
            "the delay in months has no fixed length, as in Flink; write it in DAY",
        ),
        (
            "ts AS ts - INTERVAL '5' MILLISECOND",
            39,
            "expected SECOND, MINUTE, HOUR or DAY, found 'MILLISECOND'",
        ),
        (
            "ts AS ts - INTERVAL '1' WEEK",
            39,
            "Flink takes a WEEK in the delay for an hour; write '7' DAY",
        ),
        ("ts AS", None, "this watermark strategy is not supported"),
        ("ts", None, "expected AS and the watermark's expression, found ')'"),
    ],
)
def test_watermark_refused(watermark: str, column: int | None, message: str) -> None:
    error = refusal("ts TIMESTAMP(3)", "n INT NOT NULL", f"WATERMARK FOR {watermark}")
    assert error.message.startswith(message)
    assert place(error) == ((4, column) if column else (5, 1))


def test_a_second_watermark_is_refused() -> None:
    error = refusal("ts TIMESTAMP(3)", "WATERMARK FOR ts AS ts", "WATERMARK FOR ts AS ts")
    assert error.message == "the table already has a watermark; Flink supports one per table"
    assert place(error) == (4, 1)


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
