"""The bytes flink-json writes."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.formats import catalog
from bridge.schema import ArrayType, MapType, RowType
from tests.formats.support import encode_all, row_type, scalar

_DECIMALS = row_type(a=scalar("DECIMAL", 20, 0), b=scalar("DECIMAL", 11, 9), c=scalar("DECIMAL", 9, 2))


def _encode(spark: SparkSession, row: RowType, rows: list[Any], **options: Any) -> list[str]:
    encoder = catalog.get("json").encoder(row, {k.replace("_", "-"): v for k, v in options.items()})
    return [made.decode() for made in encode_all(spark, encoder, row, rows) if made is not None]


def _d(*texts: str) -> tuple[Decimal, ...]:
    return tuple(Decimal(t) for t in texts)


def test_decimals_of_all_digits_are_written_whole(spark: SparkSession) -> None:
    nines = "9" * 38
    row = row_type(a=scalar("DECIMAL", 38, 38), b=scalar("DECIMAL", 38, 0))
    rows = [_d(f"0.{nines}", nines), _d(f"-0.{nines}", f"-{nines}")]
    assert _encode(spark, row, rows) == [f'{{"a":0.{nines},"b":{nines}}}', f'{{"a":-0.{nines},"b":-{nines}}}']


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            [
                '{"a":4.5462186404924617E+17,"b":2.7E-8,"c":1E+2}',
                '{"a":-1.2E+3,"b":-0.000001,"c":-0.5}',
                '{"a":0,"b":-1E-9,"c":10.05}',
                '{"a":12345678901234567891,"b":1.1,"c":1.2E+2}',
            ],
        ),
        (
            {"encode.decimal_as_plain_number": True},
            [
                '{"a":454621864049246170,"b":0.000000027,"c":100.00}',
                '{"a":-1200,"b":-0.000001000,"c":-0.50}',
                '{"a":0,"b":-0.000000001,"c":10.05}',
                '{"a":12345678901234567891,"b":1.100000000,"c":120.00}',
            ],
        ),
    ],
)
def test_decimals_lose_their_trailing_zeros_unless_they_are_plain(
    spark: SparkSession, options: dict[str, Any], expected: list[str]
) -> None:
    rows = [
        _d("454621864049246170", "0.000000027", "100.00"),
        _d("-1200", "-0.000001000", "-0.50"),
        _d("0", "-0.000000001", "10.05"),
        _d("12345678901234567891", "1.100000000", "120.00"),
    ]
    assert _encode(spark, _DECIMALS, rows, **options) == expected


def test_decimals_with_and_without_exponent_on_every_level(spark: SparkSession) -> None:
    """Marks of our own in the data are data; a name or text that looks like a marked number stays a text."""
    tiny, whole = scalar("DECIMAL", 38, 38), scalar("DECIMAL", 38, 0)
    row = row_type(
        t=scalar("STRING"),
        a=ArrayType(whole),
        m=MapType(scalar("STRING"), tiny),
        r=row_type(d=scalar("DECIMAL", 8, 7)),
    )
    huge = "99999999999999999999999999999999999990"
    rows = [
        ("x", [*_d("1", "10", huge), None], {"k": Decimal("1E-38"), "0": Decimal(0)}, _d("1E-7")),
        ("\x01" * 3 + "10", _d("-20"), {"\x017": Decimal("0.5"), "\x01": None}, _d("0.000001")),
        ('"\x01100"', _d("200"), {}, (None,)),
        (None, None, None, None),
        ("\x0110", _d("0", "7"), {"\x0110": Decimal("0.10")}, _d("1.0000000")),
    ]
    mark = "\\u0001"
    assert _encode(spark, row, rows) == [
        f'{{"t":"x","a":[1,1E+1,{huge[:1]}.{huge[1:-1]}E+37,null],"m":{{"k":1E-38,"0":0}},"r":{{"d":1E-7}}}}',
        f'{{"t":"{mark * 3}10","a":[-2E+1],"m":{{"{mark}7":0.5,"{mark}":null}},"r":{{"d":0.000001}}}}',
        f'{{"t":"\\"{mark}100\\"","a":[2E+2],"m":{{}},"r":{{"d":null}}}}',
        '{"t":null,"a":null,"m":null,"r":null}',
        f'{{"t":"{mark}10","a":[0,7],"m":{{"{mark}10":0.1}},"r":{{"d":1}}}}',
    ]


_MIXED = row_type(
    text=scalar("STRING"),
    price=scalar("DECIMAL", 4, 2),
    row=row_type(n=scalar("INT"), time=scalar("TIMESTAMP", 3)),
    list=ArrayType(scalar("DECIMAL", 4, 2)),
    map=MapType(scalar("STRING"), scalar("DOUBLE")),
)


def test_nulls_are_written_unless_ignored_and_stay_inside_maps_and_arrays(spark: SparkSession) -> None:
    rows = [
        (None, None, None, None, None),
        ('é"\\/\x01\x1f\n', Decimal("1.50"), (None, None), [None, Decimal("2.00")], {"k": None}),
    ]
    assert _encode(spark, _MIXED, rows) == [
        '{"text":null,"price":null,"row":null,"list":null,"map":null}',
        '{"text":"é\\"\\\\/\\u0001\\u001F\\n","price":1.5,"row":{"n":null,"time":null},"list":[null,2],'
        '"map":{"k":null}}',
    ]
    assert _encode(spark, _MIXED, rows, **{"encode.ignore_null_fields": True}) == [
        "{}",
        '{"text":"é\\"\\\\/\\u0001\\u001F\\n","price":1.5,"row":{},"list":[null,2],"map":{"k":null}}',
    ]


_MOMENTS = row_type(
    day=scalar("DATE"),
    time=scalar("TIMESTAMP", 6),
    millis=scalar("TIMESTAMP", 3),
    instants=ArrayType(scalar("TIMESTAMP_LTZ", 0)),
)


@pytest.mark.parametrize(("standard", "between"), [("SQL", " "), ("ISO-8601", "T")])
def test_moments_have_no_more_digits_than_they_need(spark: SparkSession, standard: str, between: str) -> None:
    rows = [
        (date(999, 1, 2), datetime(2020, 2, 29, 12), datetime(2020, 2, 29, 12, 0, 0, 100400), []),
        (None, datetime(2020, 2, 29, 12, 0, 0, 120), None, [datetime(2020, 2, 29, 12, 0, 0, 999999)]),
    ]
    expected = [
        '{"day":"0999-01-02","time":"2020-02-29 12:00:00","millis":"2020-02-29 12:00:00.1","instants":[]}',
        '{"day":null,"time":"2020-02-29 12:00:00.00012","millis":null,"instants":["2020-02-29 12:00:00Z"]}',
    ]
    actual = _encode(spark, _MOMENTS, rows, **{"timestamp_format.standard": standard})
    assert actual == [text.replace("29 12", f"29{between}12") for text in expected]


def test_other_scalars_are_written_as_java_does(spark: SparkSession) -> None:
    row = row_type(
        **{
            "f": scalar("FLOAT"),
            "d": ArrayType(scalar("DOUBLE")),
            "b": scalar("BYTES"),
            "ok": scalar("BOOLEAN"),
            "t": scalar("TINYINT"),
            'na"me\x1f': scalar("DECIMAL", 2, 1),
        }
    )
    rows = [
        (1e10, [float("nan"), float("-inf"), 1.0, 1e-5, 123456789.5], b"\x00\xff", True, -1, Decimal("1.0"))
    ]
    assert _encode(spark, row, rows) == [
        '{"f":1.0E10,"d":["NaN","-Infinity",1.0,1.0E-5,1.234567895E8],"b":"AP8=","ok":true,"t":-1,'
        '"na\\"me\\u001F":1}'
    ]
