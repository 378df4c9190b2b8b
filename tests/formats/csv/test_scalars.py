"""What flink-csv makes of the text of a field: scalars, arrays and rows, as Flink 2.1 unless a line says otherwise."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.schema import ArrayType
from tests.formats.csv_lines import read, short
from tests.formats.support import row_type, scalar

_NESTED = row_type(
    x=ArrayType(scalar("INT")),
    y=row_type(p=scalar("STRING"), q=scalar("INT")),
    z=ArrayType(scalar("STRING")),
)

_MOMENT = datetime(2018, 10, 12, 12, 12, 12)
_BAD = "error"
_SCALARS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tiny": (scalar("TINYINT"), {"127": 127, "128": _BAD, "-128": -128}),
    "big": (scalar("BIGINT"), {"9223372036854775807": 2**63 - 1, "9223372036854775808": _BAD, "": _BAD}),
    "flag": (scalar("BOOLEAN"), {"true": True, " TRUE ": True, "yes": False, "": False, "1": False}),
    "float": (scalar("FLOAT"), {"1.5": 1.5, " NaN ": "NaN", "nan": _BAD, "1f": 1.0, "1e99": float("inf")}),
    "double": (
        scalar("DOUBLE"),
        {"1e3": 1e3, "0x1p3": 8.0, "-Infinity": float("-inf"), "inf": _BAD, "INFINITY": _BAD, "": _BAD},
    ),
    "money": (
        scalar("DECIMAL", 5, 2),
        {
            "1.005": Decimal("1.01"),
            "1E2": Decimal("100.00"),
            "5.": Decimal("5.00"),
            "999.995": _BAD,  # Flink: null
            " 1": _BAD,
            "1e99999": _BAD,
            "": _BAD,
        },
    ),
    "day": (
        scalar("DATE"),
        {
            "2018-10-12": date(2018, 10, 12),
            "2018-2-3": date(2018, 2, 3),
            "2018-02-31": _BAD,  # Flink: March 3rd
            " 2018-10-12": _BAD,
            "18-10-12": _BAD,
        },
    ),
    "moment": (
        scalar("TIMESTAMP", 3),
        {
            "2018-10-12 12:12:12": _MOMENT,
            " 2018-10-12 12:12:12.1239 ": _MOMENT.replace(microsecond=123_000),
            "2018-10-12T12:12:12": _BAD,
            "2018-10-12 12:12": _BAD,
        },
    ),
    "seconds": (scalar("TIMESTAMP", 0), {"2018-10-12 12:12:12.999": _MOMENT}),
    "instant": (
        scalar("TIMESTAMP_LTZ", 6),
        {"2018-10-12 12:12:12.5Z": _MOMENT.replace(microsecond=500_000), "2018-10-12 12:12:12": _BAD},
    ),
    "bytes": (scalar("BYTES"), {"awML": b"k\x03\x0b", " aw== ": b"k", "": b"", "awM": _BAD, "a wM": _BAD}),
}


def test_scalars_are_converted_as_flink_does(spark: SparkSession) -> None:
    """All types in one row; a bad one is an error with its name, or null where errors are ignored."""
    row = row_type(**{name: type for name, (type, _) in _SCALARS.items()})
    good = {n: next(t for t, v in texts.items() if v != _BAD) for n, (_, texts) in _SCALARS.items()}
    tried = [(name, text) for name, (_, texts) in _SCALARS.items() for text in texts]
    lines = [",".join((good | {name: text}).values()) for name, text in tried]
    strict, lenient = read(spark, row, lines, {}), read(spark, row, lines, {"ignore-parse-errors": True})
    for (name, text), actual, ignored in zip(tried, strict, lenient, strict=True):
        type, texts = _SCALARS[name]
        if texts[text] == _BAD:
            assert actual == f"field '{name}' cannot be read as {type.name}", text
            assert ignored[row.names.index(name)] is None, text
        else:
            assert actual[row.names.index(name)] == texts[text], text
            assert ignored == actual


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            {
                "1;2,a;1,x;y": ([1, 2], {"p": "a", "q": 1}, ["x", "y"]),
                ", , ": ([], None, []),
                '"1; 2","a; 1"," x;"""': ([1, 2], {"p": "a", "q": 1}, [" x", '"']),
                "1,a;1;2,x": ([1], {"p": "a", "q": 1}, ["x"]),
                "1;;2,a;1,": "field 'x[]' cannot be read as INT",
                "1,a;1x,": "field 'y.q' cannot be read as INT",
                "1,a,x": "field 'y': " + short(2, 1),
            },
        ),
        (
            {"null-literal": "N", "array-element-delimiter": "|"},
            {
                "1|N,N|N,a|N": ([1, None], {"p": None, "q": None}, ["a", None]),
                "N,N|2,N": ([None], {"p": None, "q": 2}, [None]),
            },
        ),
        (
            {"trim-spaces": True, "empty-string-as-null": True},
            {
                "1; 2, a ; 1 , x;;y ": ([1, 2], {"p": "a", "q": 1}, ["x", None, "y"]),
                '"1; 2"," a; 1"," x;"': ([1, 2], {"p": "a", "q": 1}, ["x", None]),
                ", , ": ([], None, []),
                "1,;2,": ([1], {"p": None, "q": 2}, []),
            },
        ),
        (
            {"ignore-parse-errors": True},
            {"1;x,a,y": ([1, None], {"p": "a", "q": None}, ["y"]), "1": ([1], None, None)},
        ),
    ],
)
def test_arrays_and_rows_lie_between_delimiters(
    spark: SparkSession, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The null literal is looked for in elements alone; a row may have too many, as in Flink."""
    assert dict(zip(expected, read(spark, _NESTED, expected, options), strict=True)) == expected
