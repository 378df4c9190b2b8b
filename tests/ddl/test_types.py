"""All Flink types in all spellings; types that are out of range or have no counterpart in Spark."""

from __future__ import annotations

import pytest

from bridge.schema import ArrayType, DataType, MapType, RowField, RowType, ScalarType
from tests.ddl.helpers import place, refusal, type_of

INT = ScalarType("INT")
STRING = ScalarType("STRING")


@pytest.mark.parametrize(
    ("text", "name", "parameters"),
    [
        ("CHAR", "CHAR", (1,)),
        ("char(3)", "CHAR", (3,)),
        ("CHARACTER(3)", "CHAR", (3,)),
        ("VARCHAR", "VARCHAR", (1,)),
        ("VARCHAR(20)", "VARCHAR", (20,)),
        ("CHARACTER VARYING(20)", "VARCHAR", (20,)),
        ("VARCHAR(2147483647)", "STRING", ()),
        ("STRING", "STRING", ()),
        ("BOOLEAN", "BOOLEAN", ()),
        ("BINARY", "BINARY", (1,)),
        ("BINARY(8)", "BINARY", (8,)),
        ("VARBINARY", "VARBINARY", (1,)),
        ("VARBINARY(8)", "VARBINARY", (8,)),
        ("BINARY VARYING(8)", "VARBINARY", (8,)),
        ("VARBINARY(2147483647)", "BYTES", ()),
        ("BYTES", "BYTES", ()),
        ("DECIMAL", "DECIMAL", (10, 0)),
        ("DECIMAL(5)", "DECIMAL", (5, 0)),
        ("DECIMAL(38, 38)", "DECIMAL", (38, 38)),
        ("DEC(10,3)", "DECIMAL", (10, 3)),
        ("NUMERIC(10, 3)", "DECIMAL", (10, 3)),
        ("TINYINT", "TINYINT", ()),
        ("SMALLINT", "SMALLINT", ()),
        ("INT", "INT", ()),
        ("integer", "INT", ()),
        ("BIGINT", "BIGINT", ()),
        ("FLOAT", "FLOAT", ()),
        ("DOUBLE", "DOUBLE", ()),
        ("DOUBLE PRECISION", "DOUBLE", ()),
        ("DATE", "DATE", ()),
        ("TIMESTAMP", "TIMESTAMP", (6,)),
        ("TIMESTAMP(0)", "TIMESTAMP", (0,)),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP", (3,)),
        ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ", (6,)),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ", (3,)),
        ("TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ", (6,)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ", (3,)),
    ],
)
def test_scalar(text: str, name: str, parameters: tuple[int, ...]) -> None:
    assert type_of(text) == ScalarType(name, parameters)
    assert type_of(f"{text} NULL") == ScalarType(name, parameters)
    assert type_of(f"{text} NOT NULL") == ScalarType(name, parameters, nullable=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ARRAY<INT>", ArrayType(INT)),
        ("ARRAY<INT NOT NULL> NOT NULL", ArrayType(INT.required(), nullable=False)),
        ("ARRAY<ARRAY<INT>>", ArrayType(ArrayType(INT))),
        ("INT ARRAY", ArrayType(INT)),
        ("INT NOT NULL ARRAY NOT NULL", ArrayType(INT.required(), nullable=False)),
        ("INT ARRAY ARRAY", ArrayType(ArrayType(INT))),
        ("MAP<STRING, INT NOT NULL>", MapType(STRING, INT.required())),
        ("MULTISET<STRING>", MapType(STRING, INT)),
        ("STRING MULTISET NOT NULL", MapType(STRING, INT, nullable=False)),
        (
            "ROW<a INT, `b c` STRING NOT NULL>",
            RowType((RowField("a", INT), RowField("b c", STRING.required()))),
        ),
        (
            "ROW(a INT 'how many', b STRING COMMENT 'it''s')",
            RowType((RowField("a", INT), RowField("b", STRING))),
        ),
        (
            "ROW<`timestamp` ARRAY<ROW<value INT>>, name MAP<STRING, STRING>> NOT NULL",
            RowType(
                (
                    RowField("timestamp", ArrayType(RowType((RowField("value", INT),)))),
                    RowField("name", MapType(STRING, STRING)),
                ),
                nullable=False,
            ),
        ),
    ],
)
def test_nested(text: str, expected: DataType) -> None:
    assert type_of(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (
            "TIME",
            3,
            "type TIME: Delta has no TIME type; declare STRING (or INT for milliseconds of the day)",
        ),
        ("TIME(3) WITHOUT TIME ZONE", 3, "type TIME: Delta has no TIME"),
        ("ARRAY<TIME(0)>", 9, "type TIME: Delta has no TIME"),
        (
            "MAP<STRING, INTERVAL DAY(3) TO SECOND(6)>",
            15,
            "type INTERVAL: Flink's formats cannot write intervals",
        ),
        ("INTERVAL YEAR", 3, "type INTERVAL: Flink's formats cannot write intervals; declare BIGINT"),
        ("ROW<a INT, b RAW('java.lang.String', 'AAA=')>", 16, "type RAW: RAW is Flink's own serialisation"),
        ("RAW", 3, "type RAW: RAW is Flink's own serialisation; declare BYTES"),
        ("NULL", 3, "type NULL: a column of type NULL has no values; leave it out"),
        (
            "VARIANT",
            3,
            "type VARIANT: the bridge does not read or write VARIANT (in Flink since 2.1); declare STRING",
        ),
        (
            "TIMESTAMP(3) WITH TIME ZONE",
            3,
            "type TIMESTAMP: Flink's formats do not support TIMESTAMP WITH TIME ZONE",
        ),
        ("TIMESTAMP(9)", 3, "type TIMESTAMP: Spark keeps microseconds; declare TIMESTAMP(6)"),
        ("TIMESTAMP_LTZ(7)", 3, "type TIMESTAMP_LTZ: Spark keeps microseconds; declare TIMESTAMP_LTZ(6)"),
        ("TIMESTAMP(10)", 13, "expected the precision of TIMESTAMP from 0 to 9, found '10'"),
        ("DECIMAL(39)", 11, "expected the precision of DECIMAL from 1 to 38, found '39'"),
        ("DECIMAL(0)", 11, "expected the precision of DECIMAL from 1 to 38, found '0'"),
        ("DECIMAL(4, 5)", 14, "expected the scale of DECIMAL (at most its precision) from 0 to 4, found '5'"),
        ("DECIMAL(4.5)", 11, "expected the precision of DECIMAL from 1 to 38, found '4.5'"),
        ("VARCHAR(0)", 11, "expected the length of VARCHAR from 1 to 2147483647, found '0'"),
        ("CHAR(2147483648)", 8, "expected the length of CHAR from 1 to 2147483647, found '2147483648'"),
        ("BINARY()", 10, "expected the length of BINARY from 1 to 2147483647, found ')'"),
        ("TEXT", 3, "unknown type `TEXT`; did you mean `STRING`?"),
        ("STRUCT<a INT>", 3, "unknown type `STRUCT`; did you mean `ROW`?"),
        ("BIGNT", 3, "unknown type `BIGNT`; did you mean `BIGINT`?"),
        ("XML", 3, "unknown type `XML`; known names are `ARRAY`, `BIGINT`"),
        (
            "`my`.`type`",
            3,
            "`my` is a user-defined type, which the bridge does not support; declare its fields as ROW<...>",
        ),
        ("", 3, "expected the type of column `c`, or AS"),
        ("INT NOT", 10, "expected NULL after NOT"),
        ("ARRAY", 8, "expected '<' after ARRAY"),
        ("ARRAY<INT", 12, "expected '>' to close ARRAY<"),
        ("MAP<INT>", 10, "expected ',' and the type of the map's values, found '>'"),
        ("ROW INT", 7, "expected '<' or '(' after ROW, found 'INT'"),
        ("ROW<INT, STRING>", 10, "expected the type of field `INT`, found ','"),
        ("ROW<a INT, A STRING>", 14, "field `A` is declared twice"),
        ("ROW<>", 7, "expected a field name"),
    ],
)
def test_refused(text: str, column: int, message: str) -> None:
    error = refusal(f"c {text}")
    assert error.message.startswith(message)
    # What is missing at the end of the line is found missing at the parenthesis in the next one.
    assert place(error) == ((2, column) if column <= len(f"c {text}") else (3, 1))
