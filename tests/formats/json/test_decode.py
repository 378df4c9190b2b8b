"""What flink-json's parser path makes of a token, value by value. One Spark job per set of options."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from bridge.formats import catalog
from bridge.schema import ArrayType, MapType
from tests.formats.support import Outcome, decode_all, row_type, scalar

_FIELDS = {
    "flag": scalar("BOOLEAN"),
    "tiny": scalar("TINYINT"),
    "small": scalar("SMALLINT"),
    "int": scalar("INT"),
    "big": scalar("BIGINT"),
    "float": scalar("FLOAT"),
    "double": scalar("DOUBLE"),
    "money": scalar("DECIMAL", 10, 3),
    "text": scalar("STRING"),
    "bytes": scalar("BYTES"),
    "day": scalar("DATE"),
    "time": scalar("TIMESTAMP", 3),
    "instant": scalar("TIMESTAMP_LTZ", 0),
    "list": ArrayType(scalar("INT")),
    "map": MapType(scalar("STRING"), scalar("INT")),
    "row": row_type(flag=scalar("BOOLEAN"), text=scalar("STRING"), list=ArrayType(scalar("DATE"))),
}
_ROW = row_type(**_FIELDS)
_NOON = datetime(2020, 2, 29, 12, 0)

_GOOD: list[tuple[str, str, Any]] = [
    # every token is a BOOLEAN
    ("flag", "true", True),
    ("flag", '" TRUE "', True),
    ("flag", '"trueA"', False),
    ("flag", "1", False),
    # numbers are cut, texts are not
    ("int", "112.913", 112),
    ("int", "-1e3", -1000),
    ("int", '" +7 "', 7),
    ("big", "-9223372036854775808", -(2**63)),
    ("big", "9223372036854775807.5", 2**63 - 1),
    ("tiny", '"-128"', -128),
    ("small", "32767", 32767),
    ("float", "1", 1.0),
    ("double", '" -1.5e3d "', -1500.0),
    ("double", '"Infinity"', float("inf")),
    ("double", '"NaN"', "NaN"),
    ("double", "1e400", float("inf")),
    # half up, at the scale
    ("money", "1.0005", Decimal("1.001")),
    ("money", "-1.0005", Decimal("-1.001")),
    ("money", "1.00049999999999999999999", Decimal("1.000")),
    ("money", '" 1e3 "', Decimal("1000.000")),
    ("money", "9999999", Decimal("9999999.000")),
    # STRING takes any token as it is written
    ("text", "1.10", "1.10"),
    ("text", "-0", "-0"),
    ("text", "1E400", "1E400"),
    ("text", "123456789012345678901234567890", "123456789012345678901234567890"),
    ("text", "true", "true"),
    ("text", '"1.10"', "1.10"),
    ("text", '"\\u0001\\"\\\\\\u0002"', '\x01"\\\x02'),
    ("text", '"a\tb"', "a\tb"),
    ("text", '{ "k" : [ 1, "\\u00e9\\"" , null ] }', '{"k":[1,"é\\"",null]}'),
    ("bytes", '"AQID"', b"\1\2\3"),
    ("bytes", '""', b""),
    ("day", '"2020-02-29"', date(2020, 2, 29)),
    ("time", '"2020-02-29 12:00:00"', _NOON),
    ("time", '"2020-02-29 12:00:00.123987654"', _NOON.replace(microsecond=123000)),
    ("instant", '"2020-02-29 12:00:00.9Z"', _NOON),
    ("list", "[1, null, 2.9]", [1, None, 2]),
    ("map", '{"a": 1, "b": null, "a": "3"}', {"b": None, "a": 3}),
    ("row", '{"flag": "abc"}', {"flag": False, "text": None, "list": None}),
    ("row", "null", None),
]

_BAD: list[tuple[str, str]] = [
    ("tiny", "128"),
    ("tiny", "1.0"),
    ("small", '"32768"'),
    ("int", '"abc"'),
    ("int", '"1.5"'),
    ("int", "2147483648"),
    ("int", "2147483647.5"),
    ("int", "true"),
    ("big", '"long"'),
    ("big", "9223372036854775808"),
    ("float", '"112.013.123"'),
    ("double", '"inf"'),
    ("money", '"abc"'),
    ("money", '"1,5"'),
    ("money", "10000000"),
    ("money", "9999999.9996"),
    ("money", "1e999999999"),
    ("money", "true"),
    ("bytes", '"AQI"'),
    ("bytes", "5"),
    ("day", '"20191112"'),
    ("day", '"2021-02-29"'),
    ("day", '"12021-02-28"'),
    ("time", '"2020-02-29T12:00:00"'),
    ("time", '"2020-02-29 12:00"'),
    ("time", '"2020-02-29 12:00:00Z"'),
    ("instant", '"2020-02-29 12:00:00"'),
    ("instant", "1582977600"),
    ("list", "7"),
    ("map", "[]"),
    ("row", '"x"'),
]


def _document(name: str, token: str) -> bytes:
    return f'{{"other": [1.5, {{"text": 2}}], "{name}": {token}}}'.encode()


def _decode(spark: SparkSession, payloads: list[bytes], **options: Any) -> list[Outcome]:
    decoder = catalog.get("json").decoder(_ROW, {k.replace("_", "-"): v for k, v in options.items()})
    return decode_all(spark, decoder, payloads)


def _only(outcome: Outcome) -> Any:
    """The single row of a good outcome."""
    rows, error = outcome
    assert error is None and rows is not None
    [(kind, row)] = rows
    assert kind == "+I"
    return row


def test_good_tokens(spark: SparkSession) -> None:
    outcomes = _decode(spark, [_document(name, token) for name, token, _ in _GOOD])
    actual = [
        _only(o)[name] if o[1] is None else o[1] for (name, _, _), o in zip(_GOOD, outcomes, strict=True)
    ]
    assert list(zip(_GOOD, actual, strict=True)) == [(vector, vector[2]) for vector in _GOOD]


def test_bad_tokens_are_errors_that_name_the_field(spark: SparkSession) -> None:
    outcomes = _decode(spark, [_document(name, token) for name, token in _BAD])
    for (name, token), (rows, error) in zip(_BAD, outcomes, strict=True):
        kind = _FIELDS[name].flink().partition("(")[0].partition("<")[0]
        assert (rows, error) == (None, f"field '{name}' cannot be read as {kind}"), token


def test_bad_fields_become_null_and_bad_documents_stay_errors_when_parse_errors_are_ignored(
    spark: SparkSession,
) -> None:
    nested = _document("row", '{"list": ["2020-02-30", "2020-02-28"], "text": 5}')
    payloads = [_document(name, token) for name, token in _BAD] + [nested, b"not valid json", b"[{},7]"]
    *fields, inside, garbage, mixed = _decode(spark, payloads, ignore_parse_errors=True)
    assert [_only(o)[name] for (name, _), o in zip(_BAD, fields, strict=True)] == [None] * len(_BAD)
    assert _only(inside)["row"] == {"flag": None, "text": "5", "list": [None, date(2020, 2, 28)]}
    assert garbage == (None, "neither a JSON object nor an array of objects")
    assert mixed == (None, "neither a JSON object nor an array of objects")
    assert catalog.get("json").decoder(_ROW, {"ignore-parse-errors": True}).skips_errors


def test_errors_inside_name_the_way_to_the_field(spark: SparkSession) -> None:
    payloads = [b'{"row":{"list":["2020-02-30"]}}', b'{"map":{"k":"x"}}', b'[{},{"int":""}]']
    assert _decode(spark, payloads) == [
        (None, "field 'row.list[]' cannot be read as DATE"),
        (None, "field 'map{}' cannot be read as INT"),
        (None, "field 'int' cannot be read as INT"),
    ]


def test_iso_8601(spark: SparkSession) -> None:
    good = [_document("time", '"2020-02-29T12:00:00.5"'), _document("instant", '"2020-02-29T12:00:00.5Z"')]
    bad = [_document("time", '"2020-02-29 12:00:00"'), _document("time", '"2020-02-29T12:00:00Z"')]
    a, b, *refused = _decode(spark, good + bad, **{"timestamp_format.standard": "ISO-8601"})
    assert _only(a)["time"] == _NOON.replace(microsecond=500000)
    assert _only(b)["instant"] == _NOON
    assert refused == [(None, "field 'time' cannot be read as TIMESTAMP")] * 2


def test_a_missing_field_fails_only_when_asked_to(spark: SparkSession) -> None:
    row = row_type(a=scalar("INT"), r=row_type(b=scalar("STRING")))
    payloads = [b'{"a":null,"r":null}', b'{"r":{"b":"x"}}', b'{"a":1,"r":{}}', b"[]"]
    lax = decode_all(spark, catalog.get("json").decoder(row, {}), payloads)
    assert [_only(o) for o in lax[:3]] == [
        {"a": None, "r": None},
        {"a": None, "r": {"b": "x"}},
        {"a": 1, "r": {"b": None}},
    ]
    strict = decode_all(spark, catalog.get("json").decoder(row, {"fail-on-missing-field": True}), payloads)
    assert strict[1:] == [(None, "field 'a' is missing"), (None, "field 'r.b' is missing"), ([], None)]
    assert _only(strict[0]) == {"a": None, "r": None}


def test_documents_that_are_no_object(spark: SparkSession) -> None:
    cut, deep = b'{"int":1', b'{"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    malformed = [
        cut,
        deep,
        b'{"int":1,}',
        b"{'int':1}",
        b'{"int":NaN}',
        b'{"int":01}',
        b'{"x":{"y":[1}}',
        b"[{]",
    ]
    no_object = [b"12", b'"x"', b"null", b"[1]", b"[null]"]
    outcomes = _decode(spark, [*malformed, *no_object, b"", b" \n", b'\xff{"int":1}'])
    errors = [error for rows, error in outcomes if rows is None]
    assert errors == [
        *["malformed JSON, or nested more than 1000 deep"] * len(malformed),
        *["neither a JSON object nor an array of objects"] * len(no_object),
        *["empty document"] * 2,
        "not valid UTF-8",
    ]


def test_arrays_duplicates_and_what_stands_around_a_document(spark: SparkSession) -> None:
    payloads = [
        b'[{"int":1,"text":"a"},{"int":"2"}]',
        b'{"int":1,"int":2}',
        b'{"text":"a","text":null}',
        b'\xef\xbb\xbf{"int":3}',
        b' \n{"int":4} trailing',
    ]
    many, *single = _decode(spark, payloads)
    assert many[0] is not None and [row["int"] for _, row in many[0]] == [1, 2]
    assert [_only(o)["int"] for o in single] == [2, None, 3, 4]
    assert _only(single[1])["text"] is None
