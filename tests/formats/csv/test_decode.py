"""What flink-csv reads; the outcomes are those of Flink 2.1 unless a line says otherwise."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE, FastPathDecoder
from bridge.formats.csv.decode import MALFORMED
from bridge.schema import ArrayType
from tests.formats.csv_lines import read, short
from tests.formats.support import decode_all, row_type, scalar

_PAIR = row_type(a=scalar("STRING"), b=scalar("INT"))
_TEXTS = row_type(a=scalar("STRING"), b=scalar("STRING"))
_NOT_INT = "field 'b' cannot be read as INT"


_LINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": (
        {},
        {
            "a,1": ("a", 1),
            "a, 1 ": ("a", 1),
            " a ,+5": (" a ", 5),
            "\ufeffa,1": ("a", 1),
            "a,1\nb,2": ("a", 1),
            "a,1,": ("a", 1),
            "a,1, \r": ("a", 1),
            '"a" ,1': ("a", 1),
            '1,"2"': ("1", 2),
            '"\0","1"': "not valid UTF-8: it begins as a document in UTF-16 does",
            "a\0,\x001\0": "not valid UTF-8: it begins as a document in UTF-16 does",
            "\0a\0,\x001": "not valid UTF-8: it begins as a document in UTF-16 does",
            '"a\0b",1': ("a\0b", 1),
            'a"b,1': ('a"b', 1),
            '"a,""\r\n",1': ('a,"\r\n', 1),
            '"","1"': ("", 1),
            "#x,1": ("#x", 1),
            "a,": _NOT_INT,
            "a,1.0": _NOT_INT,
            "a,1\x7f": _NOT_INT,
            "a,99999999999": _NOT_INT,
            "a": short(2, 1),
            "\na,1": short(2, 1),
            "": short(2, 1),
            "a,1,x": short(2, 3),
            "a,1,,": short(2, 4),
            '"a"x,1': MALFORMED,
            '"a': MALFORMED,
            'a,"' + "1" * 20_000: MALFORMED,
            '"' + 'y""' * 20_000 + '",1': ('y"' * 20_000, 1),
        },
    ),
    "ignoring": (
        {"ignore-parse-errors": True},
        {
            "a,x": ("a", None),
            "a": ("a", None),
            "\na": ("", None),
            "": short(2, 1),
            "a,1,x": short(2, 3),
            '"a': MALFORMED,
        },
    ),
    "null literal": (
        {"null-literal": "null"},
        {"null,null": (None, None), '"null",1': (None, 1), ",5": ("", 5), "Null,5": ("Null", 5)},
    ),
    "empty null literal": ({"null-literal": ""}, {",": (None, None), '"",1': (None, 1)}),
    "escape": (
        {"escape-character": "\\"},
        {
            "a\\,b,1": ("a,b", 1),
            "\\n\\0\\x,2": ("\n\0x", 2),
            '"a\\"b""\\\\n",1': ('a"b"\\n', 1),
            '\\"a,1': ('"a', 1),
            "a\\": MALFORMED,
            '"a\\': MALFORMED,
        },
    ),
    "a quote that escapes": ({"escape-character": '"'}, {'"a""b",1': ('a"b', 1), 'a"n,1': ("a\n", 1)}),
    "tab and apostrophe": (
        {"field-delimiter": "\\t", "quote-character": "'"},
        {"a\t1": ("a", 1), "'a\tb''' \t1": ("a\tb'", 1), '"a"\t1': ('"a"', 1)},
    ),
    "a control character for quote": ({"quote-character": "\x01"}, {"\x01a,\x1f#\x01 ,1": ("a,\x1f#", 1)}),
    "bar": ({"field-delimiter": "|"}, {"a|1": ("a", 1), '"a|b"|1': ("a|b", 1), "a,b|1": ("a,b", 1)}),
    "no quotes": ({"disable-quote-character": True}, {'"a",1': ('"a"', 1), '"a,1\n"': ('"a', 1)}),
    "trimmed": (
        {"trim-spaces": True},
        {
            " a ,\t1 ": ("a", 1),
            ' " a " , 1': (" a ", 1),
            '"a", "1" ': ("a", 1),
            "  , 1": ("", 1),
            "a b\x01,1": ("a b", 1),
            ' "a"x,1': MALFORMED,
            "a, 1,  ": ("a", 1),
            " ": short(2, 1),
        },
    ),
    "trimmed and escaped": (
        {"trim-spaces": True, "escape-character": "\\"},
        {" \\ a\\  ,1": (" a", 1), ' "a\\"" ,1': ('a"', 1), ' "\\"a" ,1': ('"a', 1)},
    ),
    "trimmed at tabs": (
        {"trim-spaces": True, "field-delimiter": "\t"},
        {" a \t 1 ": ("a", 1), "\t1": ("", 1)},
    ),
    "empty is null": (
        {"empty-string-as-null": True, "null-literal": "-"},
        {",": (None, None), '"",""': (None, None), "-,1": (None, 1), " ,1": (" ", 1)},
    ),
    "trimmed and empty is null": (
        {"empty-string-as-null": True, "trim-spaces": True},
        {" , ": (None, None), '" ",1': (" ", 1)},
    ),
    "no comma at the end": (
        {"allow-trailing-comma": False},
        {"a,1,": short(2, 3), "a,1, \r": short(2, 3), "a,1": ("a", 1)},
    ),
    "a comma at the end": ({"allow-trailing-comma": True}, {"a,1,": ("a", 1), "a,1,x": short(2, 3)}),
    "more than columns": (
        {"ignore-trailing-unmappable": True, "allow-trailing-comma": False},
        {"a,1,x,y": ("a", 1), "a,1,": ("a", 1), 'a,1,"x': MALFORMED, "a": short(2, 1), "a,x,y": _NOT_INT},
    ),
    "fewer than columns": (
        {"fail-on-missing-columns": True, "ignore-parse-errors": True},
        {"a": short(2, 1), "a,x": ("a", None), "a,1": ("a", 1), "a,1,x": short(2, 3)},
    ),
    "comments": (
        {"allow-comments": True},
        {
            "#c\na,1": ("a", 1),
            "  #c\r\n\n  a,1": ("a", 1),
            "a#,1": ("a#", 1),
            "#only": MALFORMED,
            "": short(2, 1),
        },
    ),
}


def test_the_fast_path_reads_quotes_as_the_full_decode_does(spark: SparkSession) -> None:
    """Every line of up to six relevant characters, and longer ones that the fast path covers."""
    decoder = catalog.get("csv").decoder(_TEXTS, {})
    lines = ["".join(cs).encode() for n in range(7) for cs in product('a," ', repeat=n)]
    full, fast = (decode_all(spark, decoder, lines, fast=by_fast) for by_fast in (False, True))
    different = [
        x for x, a, b in zip(lines, full, fast, strict=True) if a != b and b != (None, NEEDS_FULL_DECODE)
    ]
    assert different == []
    neat = [b"a,b", b'"a,b",c', b'"a ""b""",c', b'"","x y"', b",", b'a,""']
    assert None not in [rows for rows, _ in decode_all(spark, decoder, neat, fast=True)]


def test_the_fast_path_covers_the_usual_texts(spark: SparkSession) -> None:
    row = row_type(
        b=scalar("BOOLEAN"),
        i=scalar("BIGINT"),
        d=scalar("DOUBLE"),
        e=scalar("DECIMAL", 10, 2),
        f=scalar("DATE"),
        g=scalar("TIMESTAMP", 3),
        h=scalar("TIMESTAMP_LTZ", 0),
        x=scalar("BYTES"),
        s=ArrayType(scalar("STRING")),
        r=row_type(p=scalar("STRING"), q=scalar("INT")),
    )
    decoder = catalog.get("csv").decoder(row, {"null-literal": "-"})
    good = b'true,-7,1.5e3,12.30,2020-02-29,2020-02-29 12:00:01.25,2020-02-29 12:00:01Z,"aGk=",a;-;c,p;5'
    nulls = b"-,-,-,-,-,-,-,-,a,p;5"
    actual = decode_all(spark, decoder, [good, nulls], fast=True)
    assert actual == decode_all(spark, decoder, [good, nulls])
    assert [error for _, error in actual] == [None, None]
    usual = good.decode().split(",")
    odd = {
        0: ["True", "1"],
        1: [" 1", "1.0", "", "99999999999999999999"],
        2: ["nan", "inf", "1 x"],
        3: [" 1", "1 ", "1\t", "\u0661", "1e9999", "0x1", "100000000"],
        4: [
            "2020-2-9",
            "2020-02-30",
            " 2020-02-29",
            "2020-02-29T",
            "+2020-02-2",
        ],
        5: ["2020-02-29T12:00:01", "2020-02-29 12:00:1", "2020-02-29 12:00:01.1234", "2020-02-29 12:00:01Z"],
        6: ["2020-02-29 12:00:01", "2020-02-29 12:00:01+01:00", "2020-02-29 12:00:01.5Z"],
        7: ["a", "aGk"],
        8: ["", " "],
        9: ["p", "p;x", "p;5;6", ""],
    }
    lines = [
        ",".join([*usual[:i], text, *usual[i + 1 :]]).encode() for i, texts in odd.items() for text in texts
    ]
    full, fast = (decode_all(spark, decoder, lines, fast=by_fast) for by_fast in (False, True))
    for line, full_outcome, fast_outcome in zip(lines, full, fast, strict=True):
        assert fast_outcome in (full_outcome, (None, NEEDS_FULL_DECODE)), line


def test_the_fast_path_agrees_on_years_that_python_has_not(spark: SparkSession) -> None:
    """Spark compares: Python has no date before 0001 or after 9999."""
    decoder = catalog.get("csv").decoder(row_type(f=scalar("DATE")), {})
    assert isinstance(decoder, FastPathDecoder)
    lines = spark.createDataFrame([(bytearray(b"0000-01-01"),), (bytearray(b"+10000-01-01"),)], "x binary")
    both = decoder.decode_fast(lines, F.col("x"), "fast").withColumn("full", decoder.decode(F.col("x")))
    is_open = (F.col("fast.rows").isNull()) & (F.col("fast.error") == NEEDS_FULL_DECODE)
    assert both.where(~(F.col("fast").eqNullSafe(F.col("full")) | is_open)).count() == 0
    assert both.where("full.error IS NOT NULL").count() == 0


@pytest.mark.parametrize("name", _LINES)
def test_a_line_is_taken_apart_as_jackson_does(spark: SparkSession, name: str) -> None:
    """Quotes, escapes, delimiters, comments; a bad line names its field and shows nothing of it."""
    options, expected = _LINES[name]
    assert dict(zip(expected, read(spark, _PAIR, expected, options), strict=True)) == expected


def test_a_document_of_no_bytes_is_a_line_with_one_empty_field(spark: SparkSession) -> None:
    """ADR 028, rule 2; Flink refuses it. A line break alone is the same."""
    assert read(spark, row_type(a=scalar("STRING")), ["", "\n"], {}) == [("",), ("",)]
    assert read(spark, row_type(a=scalar("INT")), [""], {"null-literal": ""}) == [(None,)]
