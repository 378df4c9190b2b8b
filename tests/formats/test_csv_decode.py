"""What flink-csv reads; the outcomes are those of Flink 2.1 unless a line says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.formats import registry
from bridge.formats.base import DOUBTFUL
from bridge.formats.csv.decode import MALFORMED
from bridge.schema import ArrayType, RowType
from tests.formats.support import decode_all, row_type, scalar

_PAIR = row_type(a=scalar("STRING"), b=scalar("INT"))
_TEXTS = row_type(a=scalar("STRING"), b=scalar("STRING"))
_NESTED = row_type(
    x=ArrayType(scalar("INT")),
    y=row_type(p=scalar("STRING"), q=scalar("INT")),
    z=ArrayType(scalar("STRING")),
)
_NOT_INT = "field 'b' cannot be read as INT"


def _read(spark: SparkSession, row: RowType, payloads: Any, options: Mapping[str, Any]) -> list[Any]:
    """The values of the row, or the error; a glance has the same or is in doubt."""
    decoder, documents = registry.get("csv").decoder(row, options), [p.encode() for p in payloads]
    found = decode_all(spark, decoder, documents)
    glanced = decode_all(spark, decoder, documents, glance=True, steps=True)
    for document, known, seen in zip(documents, found, glanced, strict=True):
        assert seen in (known, (None, DOUBTFUL)), document
    return [error if rows is None else tuple(rows[0][1].values()) for rows, error in found]


def _short(expected: int, found: int) -> str:
    return f"Row length mismatch. {expected} fields expected but was {found}."


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
            '"\0","1"': ("\0", 1),
            '"a\0b",1': ("a\0b", 1),
            'a"b,1': ('a"b', 1),
            '"a,""\r\n",1': ('a,"\r\n', 1),
            '"","1"': ("", 1),
            "#x,1": ("#x", 1),
            "a,": _NOT_INT,
            "a,1.0": _NOT_INT,
            "a,1\x7f": _NOT_INT,
            "a,99999999999": _NOT_INT,
            "a": _short(2, 1),
            "\na,1": _short(2, 1),
            "": _short(2, 1),
            "a,1,x": _short(2, 3),
            "a,1,,": _short(2, 4),
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
            "": _short(2, 1),
            "a,1,x": _short(2, 3),
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
            " ": _short(2, 1),
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
        {"a,1,": _short(2, 3), "a,1, \r": _short(2, 3), "a,1": ("a", 1)},
    ),
    "a comma at the end": ({"allow-trailing-comma": True}, {"a,1,": ("a", 1), "a,1,x": _short(2, 3)}),
    "more than columns": (
        {"ignore-trailing-unmappable": True, "allow-trailing-comma": False},
        {"a,1,x,y": ("a", 1), "a,1,": ("a", 1), 'a,1,"x': MALFORMED, "a": _short(2, 1), "a,x,y": _NOT_INT},
    ),
    "fewer than columns": (
        {"fail-on-missing-columns": True, "ignore-parse-errors": True},
        {"a": _short(2, 1), "a,x": ("a", None), "a,1": ("a", 1), "a,1,x": _short(2, 3)},
    ),
    "comments": (
        {"allow-comments": True},
        {
            "#c\na,1": ("a", 1),
            "  #c\r\n\n  a,1": ("a", 1),
            "a#,1": ("a#", 1),
            "#only": MALFORMED,
            "": _short(2, 1),
        },
    ),
}


def test_a_glance_takes_quotes_for_what_they_are(spark: SparkSession) -> None:
    """Every line of up to six characters of those that count, and longer ones that are not in doubt."""
    decoder = registry.get("csv").decoder(_TEXTS, {})
    lines = ["".join(cs).encode() for n in range(7) for cs in product('a," ', repeat=n)]
    looks, glances = (
        decode_all(spark, decoder, lines, glance=glance, steps=glance) for glance in (False, True)
    )
    different = [x for x, a, b in zip(lines, looks, glances, strict=True) if a != b and b != (None, DOUBTFUL)]
    assert different == []
    neat = [b"a,b", b'"a,b",c', b'"a ""b""",c', b'"","x y"', b",", b'a,""']
    assert None not in [rows for rows, _ in decode_all(spark, decoder, neat, glance=True, steps=True)]


def test_a_glance_knows_the_usual_texts(spark: SparkSession) -> None:
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
    decoder = registry.get("csv").decoder(row, {"null-literal": "-"})
    good = b'true,-7,1.5e3,12.30,2020-02-29,2020-02-29 12:00:01.25,2020-02-29 12:00:01Z,"aGk=",a;-;c,p;5'
    nulls = b"-,-,-,-,-,-,-,-,a,p;5"
    found = decode_all(spark, decoder, [good, nulls], glance=True, steps=True)
    assert found == decode_all(spark, decoder, [good, nulls])
    assert [error for _, error in found] == [None, None]
    usual = good.decode().split(",")
    odd = {
        0: ["True", "1"],
        1: [" 1", "1.0", "", "99999999999999999999"],
        2: ["nan", "inf", "1 x"],
        3: [" 1", "1 ", "1\t", "\u0661", "1e9999", "0x1", "100000000"],
        4: ["2020-2-9", "2020-02-30", "0000-01-01", " 2020-02-29", "2020-02-29T", "+2020-02-2"],
        5: ["2020-02-29T12:00:01", "2020-02-29 12:00:1", "2020-02-29 12:00:01.1234", "2020-02-29 12:00:01Z"],
        6: ["2020-02-29 12:00:01", "2020-02-29 12:00:01+01:00", "2020-02-29 12:00:01.5Z"],
        7: ["a", "aGk"],
        8: ["", " "],
        9: ["p", "p;x", "p;5;6", ""],
    }
    lines = [
        ",".join([*usual[:i], text, *usual[i + 1 :]]).encode() for i, texts in odd.items() for text in texts
    ]
    looks, glances = (
        decode_all(spark, decoder, lines, glance=glance, steps=glance) for glance in (False, True)
    )
    for line, known, seen in zip(lines, looks, glances, strict=True):
        assert seen in (known, (None, DOUBTFUL)), line


@pytest.mark.parametrize("name", _LINES)
def test_a_line_is_taken_apart_as_jackson_does(spark: SparkSession, name: str) -> None:
    """Quotes, escapes, delimiters, comments; a bad line names its field and shows nothing of it."""
    options, wanted = _LINES[name]
    assert dict(zip(wanted, _read(spark, _PAIR, wanted, options), strict=True)) == wanted


def test_a_document_of_no_bytes_is_a_line_with_one_empty_field(spark: SparkSession) -> None:
    """design.md 5.2; Flink refuses it. A line break alone is the same."""
    assert _read(spark, row_type(a=scalar("STRING")), ["", "\n"], {}) == [("",), ("",)]
    assert _read(spark, row_type(a=scalar("INT")), [""], {"null-literal": ""}) == [(None,)]


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
    strict, lenient = _read(spark, row, lines, {}), _read(spark, row, lines, {"ignore-parse-errors": True})
    for (name, text), found, ignored in zip(tried, strict, lenient, strict=True):
        type, texts = _SCALARS[name]
        if texts[text] == _BAD:
            assert found == f"field '{name}' cannot be read as {type.name}", text
            assert ignored[row.names.index(name)] is None, text
        else:
            assert found[row.names.index(name)] == texts[text], text
            assert ignored == found


@pytest.mark.parametrize(
    ("options", "wanted"),
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
                "1,a,x": "field 'y': " + _short(2, 1),
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
    spark: SparkSession, options: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """The null literal is looked for in elements alone; a row may have too many, as in Flink."""
    assert dict(zip(wanted, _read(spark, _NESTED, wanted, options), strict=True)) == wanted
