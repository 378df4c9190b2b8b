"""The bytes flink-csv 2.1 writes, and what it refuses."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.format_rules.csv_options import CsvOptions
from bridge.formats import catalog
from bridge.schema import ArrayType, DataType, MapType
from tests.formats.support import encode_all, row_type, scalar

_ROW = row_type(
    a=scalar("STRING"),
    b=scalar("DOUBLE"),
    c=scalar("DECIMAL", 20, 8),
    d=scalar("TIMESTAMP_LTZ", 3),
    e=scalar("BYTES"),
    f=ArrayType(scalar("DECIMAL", 10, 2)),
    g=row_type(p=scalar("STRING"), q=scalar("DATE")),
)
_LONG = "+/v7" * 20
"""More than Spark writes as base64 in one line."""
_MOMENT = datetime(1970, 1, 1, 0, 2, 3, 100_000)
_ROWS: list[Any] = [
    (
        'a "b',
        1e10,
        Decimal("100000"),
        _MOMENT,
        b"\xfb\xff",
        [Decimal("1.50"), None, Decimal(100)],
        ("x", date(2018, 10, 12)),
    ),
    ("", -0.0, Decimal("-1.2E-7"), None, b"abc", [], ("a b", None)),
    ("x" * 24, None, None, None, None, None, None),
    ("\U0001f600" * 13, float("nan"), Decimal(0), None, b"", None, (None, None)),
    ("a\\b", None, None, None, None, None, None),
    ("a|b", None, None, None, b"\xfb" * 60, None, None),
]


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (
            {"write-bigdecimal-in-scientific-notation": True},
            [
                '"a ""b",1.0E10,1E+5,"1970-01-01 00:02:03.1Z","+/8=","1.5;;1E+2",x;2018-10-12',
                ',-0.0,-1.2E-7,,YWJj,,"a b;"',
                "x" * 24 + ",,,,,,",
                '"' + "\U0001f600" * 13 + '",NaN,0,,,,;',
                '"a\\b",,,,,,',
                f'a|b,,,,"{_LONG}",,',
            ],
        ),
        (
            {"null-literal": "N", "escape-character": "\\"},
            [
                '"a ""b",1.0E10,100000.00000000,"1970-01-01 00:02:03.1Z","+/8=",1.50;N;100.00,x;2018-10-12',
                ',-0.0,-0.00000012,N,YWJj,,"a b;N"',
                "x" * 24 + ",N,N,N,N,N,N",
                '"' + "\U0001f600" * 13 + '",NaN,0.00000000,N,,N,N;N',
                '"a\\\\b",N,N,N,N,N,N',
                f'a|b,N,N,N,"{_LONG}",N,N',
            ],
        ),
        (
            {"field-delimiter": "|", "quote-character": "'", "array-element-delimiter": "/"},
            [
                "'a \"b'|1.0E10|100000.00000000|'1970-01-01 00:02:03.1Z'|'+/8='|'1.50//100.00'|'x/2018-10-12'",
                "|-0.0|-0.00000012||'YWJj'||'a b/'",
                "'" + "x" * 24 + "'||||||",
                "'" + "\U0001f600" * 13 + "'|NaN|0.00000000||||'/'",
                "'a\\b'||||||",
                f"'a|b'||||'{_LONG}'||",
            ],
        ),
        (
            {"disable-quote-character": True},
            [
                'a "b,1.0E10,100000.00000000,1970-01-01 00:02:03.1Z,+/8=,1.50;;100.00,x;2018-10-12',
                ",-0.0,-0.00000012,,YWJj,,a b;",
                "x" * 24 + ",,,,,,",
                "\U0001f600" * 13 + ",NaN,0.00000000,,,,;",
                "a\\b,,,,,,",
                f"a|b,,,,{_LONG},,",
            ],
        ),
    ],
)
def test_lines_are_written_as_flink_writes_them(
    spark: SparkSession, options: dict[str, Any], lines: list[str]
) -> None:
    """Quotes where Jackson sets them, numbers as Java writes them."""
    written = encode_all(spark, catalog.get("csv").encoder(_ROW, options), _ROW, _ROWS)
    assert [line.decode() for line in written if line is not None] == lines


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"quote-character": '"', "disable-quote-character": True},
            "Format cannot define a quote character and disabled quote character at the same time.",
        ),
        (
            {"field-delimiter": ",,"},
            "Option 'csv.field-delimiter' must be a string with single character, but was: ,,",
        ),
        ({"quote-character": ""}, "Option 'csv.quote-character' must be a string with single character"),
        ({"escape-character": "\\t"}, "Option 'csv.escape-character' must be a string with single character"),
        ({"array-element-delimiter": "\U0001f600"}, "Option 'csv.array-element-delimiter' must be a string"),
        ({"field-delimiter": "\\n"}, "must not be a line break"),
    ],
)
def test_an_illegal_option_is_refused_in_flinks_words(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=re.escape(words)):
        CsvOptions.of(options)


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("\\t", "\t"),
        ("\t", "\t"),
        ("\\u0001", "\x01"),
        ("\\1", "\x01"),
        ("\\\\", "\\"),
        (";", ";"),
        ("\\'", "'"),
    ],
)
def test_the_delimiter_may_be_written_as_java_escapes_it(text: str, delimiter: str) -> None:
    assert CsvOptions.of({"field-delimiter": text}).delimiter == delimiter


_INT = scalar("INT")


@pytest.mark.parametrize(
    ("type", "error", "words"),
    [
        (
            MapType(scalar("STRING"), _INT),
            DefinitionError,
            "Unsupported type 'MAP<STRING, INT>' for field 'a'.",
        ),
        (
            ArrayType(ArrayType(_INT)),
            DefinitionError,
            "Only simple types are supported in the second level nesting of fields 'a' but was: ARRAY<INT>",
        ),
        (row_type(b=row_type(c=_INT)), DefinitionError, "nesting of fields 'a' but was: ROW<`c` INT>"),
        (row_type(b=_INT, B=_INT), DefinitionError, "fields 'b' and 'B' differ by case at most"),
        (scalar("TIME", 0), UnsupportedError, "format 'csv': Delta has no TIME"),
    ],
)
@pytest.mark.parametrize("side", ["decoder", "encoder"])
def test_types_beyond_a_line_are_refused(
    side: str, type: DataType, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        getattr(catalog.get("csv"), side)(row_type(a=type), {})
