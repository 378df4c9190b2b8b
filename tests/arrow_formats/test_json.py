"""Arrow's reader of json gives what Spark's paths give, or leaves the documents to them.

What is looked for in the bytes of JSON documents.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.arrow_formats.json import Lines, checked_lines
from bridge.definition import FormatSpec
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array, by_arrow, compare, made, spec
from tests.refusals import refusal

_TYPES = {
    "i": "BIGINT",
    "n": "INT",
    "sm": "SMALLINT",
    "t": "TINYINT",
    "e": "FLOAT",
    "f": "DOUBLE",
    "b": "BOOLEAN",
    "s": "STRING",
    "v": "VARCHAR(5)",
    "m": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 9)",
    "k": "DECIMAL(20, 0)",
    "d": "DATE",
    "ts": "TIMESTAMP(3)",
    "z": "TIMESTAMP_LTZ(6)",
    "l": "ARRAY<INT>",
    "r": "ROW<a INT, b ARRAY<ROW<c DATE>>>",
}

_ODD = [
    b'{"i": 1.0}', b'{"i": 1e3}', b'{"i": "1"}', b'{"i": -0}', b'{"i": 01}', b'{"i": +1}',
    b'{"i": 9223372036854775808}',
    b'{"t": 128}', b'{"sm": 32768}', b'{"n": 2147483648}', b'{"i": true}', b'{"i": [1]}',
    b'{"i": {}}', b'{"i": ""}',
    b'{"f": NaN}', b'{"f": Infinity}', b'{"f":-Inf}', b'{"x": NaN}', b'{"x": [-Infinity]}',
    b'{"f": "NaN"}', b'{"f": "1.5"}',
    b'{"f": 1e400}', b'{"f": 1.7976931348623159e308}', b'{"f": 1e-400}', b'{"f": -0}',
    b'{"f": .5}', b'{"f": 5.}',
    b'{"b": 1}', b'{"b": "true"}', b'{"b": "x"}', b'{"s": 5}', b'{"s": 1.10}', b'{"s": true}',
    b'{"s": {"a": 1}}', b'{"s": [1]}',
    b'{"s": "\\ud800"}', b'{"s": "\\ud83d\\ude00"}', b'{"s": "\\u0000"}', b'{"s": "\\x"}',
    b'{"s": "a\tb"}', b'{"s": "a\nb"}',
    b'{"s": "\xff"}', b'{"\xff": 1}', b"{\"s\": '1'}", b"{'s': 1}", b'{"s": "\xed\xa0\x80"}',
    b'{"s": "\xc0\x80"}',
    b'{"m": 1e2}', b'{"m": 1.1000000}', b'{"m": 1.239}', b'{"m": 123456789.1}', b'{"m": "1.5"}',
    b'{"m": "+5"}', b'{"m": "5."}',
    b'{"m": ""}', b'{"m": " 1"}', b'{"m": 1E400}', b'{"m": "1e2"}', b'{"m": "1e400"}',
    b'{"m": 0e-9}', b'{"m": -0.0}',
    b'{"w": 0.1234567890123}', b'{"w": 1234567890123456.5}', b'{"w": 12345678901234567.0}',
    b'{"w": 1e20}', b'{"w": 1e23}',
    b'{"w": 123456789012345.123}', b'{"k": 12345678901234567890.0}', b'{"k": 1.5}',
    b'{"k": "12345678901234567890"}',
    b'{"k": 123456789012345678, "f": 1.5}', b'{"k": 1e19}', b'{"w": 999999999999999.9}',
    b'{"w": "0.1234567890"}',
    b'{"d": "2026-02-30"}', b'{"d": "2026-2-3"}', b'{"d": 5}', b'{"d": ""}',
    b'{"d": "2026-11-23 "}', b'{"d": "2026-11-23T00"}', b'{"d": "12026-11-23"}',
    b'{"d": "0999-01-01"}',
    b'{"ts": "2026-11-23T10:00:00"}', b'{"ts": "2026-11-23 10:00:00.1239"}',
    b'{"ts": "2026-11-23 24:00:00"}',
    b'{"ts": "2026-11-23 10:00:60"}', b'{"ts": "2026-11-23 10:00"}',
    b'{"ts": "2026-11-23 10:00:00Z"}', b'{"ts": 1700000000}',
    b'{"ts": "2026-02-29 10:00:00"}', b'{"ts": "2026-11-23 10:00:00."}',
    b'{"z": "2026-11-23 10:00:00"}',
    b'{"z": "2026-11-23 10:00:00+01:00"}', b'{"z": "2026-11-23 10:00:00.1234567Z"}',
    b'{"z": "2026-11-23 10:00:00z"}',
    b'{"i": 1, "i": 2}', b'{"x": 1, "x": 2}', b'{"x": {"i": 1, "i": 2}}', b'{"i": null, "i": 2}',
    b'{"I": 1, "i": 2}', b'{"": 1}',
    b"", b" ", b"null", b"5", b'"{}"', b"[]", b'[{"i": 1}]', b"{", b"}", b"{}}", b"{}{}", b"{} {}",
    b'{"i": 1}{"i": 2}', b"{}\n{}",
    b' {"i": 1}', b'{"i": 1} ', b'{"i": 1}\n', b'\xef\xbb\xbf{"i": 1}',
    '{"i": 1}'.encode("utf-16-le"), b'{"i": 1}\x00', b'\x00{}',
    b'{"i": 1,}', b'{"i": 1 "s": ""}', b'{"i" 1}', b"{i: 1}", b'{"i": 1} // c }', b'{/* c */}',
    b'{"i": tru}', b'{"i": nul}',
    b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", b'{"a": ' + b"[" * 1200 + b"]" * 1200 + b"}",
    b'{"a": ' + b"1" * 999 + b"}", b'{"a": ' + b"1" * 1200 + b"}",
    b'{"a": "' + b"1" * 1200 + b'"}', b'{"s": "' + b"x" * 5000 + b'"}',
    b'{"m": 1234567890}', b'{"m": 123456789.1}', b'{"m": 99999999.995}', b'{"w": 123456789012345678901234567890}',
    b'{"w": 99999999999999999999999999999999999999}', b'{"m": 1e0002}', b'{"m": "1e0002"}', b'{"m": "\\u0031e0002"}',
    b'{"l": [1, null, 2.5]}', b'{"l": [1, "2"]}', b'{"l": {}}', b'{"l": [[1]]}', b'{"l": [null]}', b'{"l": []}',
    b'{"r": {"a": 1, "a": 2}}', b'{"r": {"x": [{"a": 1}], "b": null}}', b'{"r": {}}', b'{"r": null}', b'{"r": []}',
    b'{"e": -0}', b'{"e": -0.0}', b'{"f": -0.0}', b'{"f": -0.0, "s": "-0"}', b'{"e": 1e39}', b'{"e": 16777217}',
    b'{"f": 2.2250738585072012e-308}', b'{"e": 7e-46}', b'{"e": 1.17549428e-38}',
    b'{"\\u0069": 5}', b'{"s": "NaN"}', b'{"s": "a, NaN ]"}', b'{"x": NaN}', b'{"x": 1e400}', b'{"x": "\\ud800"}',
]  # fmt: skip


def given(types: dict[str, str] | None = None, **options: Any) -> FormatSpec:
    return spec("json", types or _TYPES, **options)


def test_odd_documents(spark: SparkSession) -> None:
    assert compare(spark, given(), _ODD) >= 30


def test_timestamps_of_either_standard(spark: SparkSession) -> None:
    sql = [b'{"ts": "2026-11-23 10:00:00.12"}', b'{"z": "2026-11-23 10:00:00Z"}']
    iso = [document.replace(b"3 1", b"3T1") for document in sql]
    other = [b'{"ts": "2026-11-23T10:00"}', b'{"z": "2026-11-23T10:00Z"}', b'{"z": "2026-11-23T10:00:00"}']
    as_iso = FormatSpec("json", {"timestamp-format.standard": "ISO-8601"}, given().row, ())
    assert compare(spark, as_iso, [*sql, *iso, *other]) == len(iso)
    assert by_arrow(as_iso, [*sql, *other]) == [None] * 5
    assert None in by_arrow(given(), iso) and None not in by_arrow(given(), sql)


def test_a_missing_field_is_null_unless_it_fails(spark: SparkSession) -> None:
    types = {"a": "INT", "r": "ROW<b INT>"}
    documents = [
        b'{"a":1,"r":{"b":2}}',
        b'{"a":1,"r":{}}',
        b'{"r":{"b":2}}',
        b'{"a":1}',
        b'{"a":null,"r":{"b":2}}',
    ]
    assert compare(spark, given(types), documents) == len(documents)
    strict = given(types, fail_on_missing_field=True)
    assert compare(spark, strict, documents) == 1
    with pytest.raises(NotThisWay) as needed:
        made(strict).decode(array(documents[:2]))
    assert str(needed.value) == "field 'r.b' is null or missing"


def test_bad_documents_need_a_full_decode_when_parse_errors_are_ignored(spark: SparkSession) -> None:
    documents = [b'{"a":1}', b'{"a":"x"}', b'{"a":', b'{"a":1.5}']
    assert compare(spark, given({"a": "INT"}, ignore_parse_errors=True), documents) == 1


def test_a_row_without_fields() -> None:
    decoder = made(given({"a": "INT"}))
    none = FormatSpec("json", {}, type(decoder.row)(()), ())  # type: ignore[attr-defined]
    table = made(none).decode(array([b"{}", b'{"a": {"b": [1]}}']))
    assert (table.num_rows, table.num_columns) == (2, 0)
    for bad in (b'{"a":}', b"{}{}", b'{"a": NaN}'):
        with pytest.raises(NotThisWay):
            made(none).decode(array([bad]))


def test_a_batch_is_read_row_by_row_in_its_order() -> None:
    documents = [json.dumps({"i": n, "s": "x" * (n % 50)}).encode() for n in range(50_000)]
    expected = [{"i": n, "s": "x" * (n % 50)} for n in range(50_000)]
    two_lines = b'{"i": 1,\n"s": "y"}'
    rows = made(given()).decode(array([*documents, two_lines])).select(["i", "s"]).to_pylist()
    assert rows == [*expected, {"i": 1, "s": "y"}]
    # Longer than a block of Arrow's reader.
    parts = b'{"i": 1, "l": [%s]}' % b",".join([b"7"] * 1_000_000)
    table = made(given()).decode(array([*documents, parts, *documents]))
    assert table.num_rows == 100_001 and table["i"].to_pylist()[49_998:50_003] == [49_998, 49_999, 1, 0, 1]
    assert table["l"][50_000].as_py() == [7] * 1_000_000
    assert all(column.num_chunks == 1 for column in table.columns)


@pytest.mark.parametrize(
    "documents",
    [
        [b'{"i": 1}{"i": 2}', b""],
        [b'{"i": 1}\n{"i": 2}', b" "],
        [b'{"i": 1}\n{"i": 2}', b"{}"],
        [b'{"i": 1}{"i": 2}', b'{"i": 3}\0}', b"{}"],
        [b'{"s": "a', b'b"}'],
        [b'{"s": "a}', b'{b"}'],
        [b'{"x": [{}', b"{}]}"],
        [b'{"x": {}', b"{}}"],
    ],
)
def test_documents_do_not_make_up_for_each_other(documents: list[bytes]) -> None:
    with pytest.raises(NotThisWay):
        made(given()).decode(array(documents))


def test_no_payload_gives_no_row_of_all_columns() -> None:
    assert made(given()).decode(array([])).equals(arrow_schema(given().row).empty_table())


def test_types_do_not_depend_on_values() -> None:
    for documents in ([b"{}"], [b'{"r": {"b": [{}]}, "w": "1", "l": [1]}'], [b'{"r": null}'] * 3):
        table = made(given()).decode(array(documents))
        assert table.schema == arrow_schema(given().row)
        table.validate(full=True)


@pytest.mark.parametrize(
    "document", [b'{"i": "secret"}', b'{"d": "secret"}', b'{"m": 33333333333333.7}', b"secret"]
)
def test_a_reason_has_no_payload(document: bytes) -> None:
    with pytest.raises(NotThisWay) as needed:
        made(given()).decode(array([document]))
    assert str(needed.value) and not any(part in repr(needed.value) for part in ("secret", "333"))
    assert needed.value.__context__ is None or needed.value.__suppress_context__


@pytest.mark.parametrize(
    "type", ["BYTES", "MAP<STRING, INT>", "ARRAY<BYTES>", "ROW<a INT, b MAP<STRING, INT>>"]
)
def test_types_that_are_left_to_spark(type: str) -> None:
    found = given({"x": "INT", "a": type})
    assert (
        refusal(lambda: arrow_decoder(found))
        == f"field 'a' of a json document is {found.row.fields[1].type.flink()}"
    )


def test_a_decoder_is_sent_to_workers() -> None:
    decoder = made(given())
    sent = pickle.loads(pickle.dumps(decoder))
    assert sent == decoder and sent.decode(array([b'{"i": 1}']))["i"].to_pylist() == [1]


def test_workers_import_little() -> None:
    program = """
import sys, bridge.arrow_formats.json
print([m for m in ("pyspark", "pydantic", "pandas", "fastavro", "bridge.options", "bridge.config") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_years_that_python_does_not_know_are_left_to_spark() -> None:
    documents = [b'{"d": "0000-01-01"}', b'{"d": "-0001-01-01"}', b'{"ts": "0000-01-01 00:00:00"}']
    assert by_arrow(given(), documents) == [None] * 3


_NAN = "a document has a number that is not finite"
_NUMBER = "a document may have a number of more than 1,000 characters"
_NAME = "a document has a name of more than 50,000 characters"
_DEEP = "a document is nested 1,000 deep or more"
_DECIMAL = "a document may have a decimal with an unusual exponent or many zeros"
_OBJECT = "a document is not one object"


def lines(*documents: bytes, of: str = "DECIMAL(38, 18)") -> Lines:
    types = {"a": of, "id": "STRING", "small": "DOUBLE", "c": "DECIMAL(4, 2)"}
    return checked_lines(pa.array(documents, pa.binary()), spec("json", types).row)


def nested(depth: int) -> bytes:
    return b'{"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", _OBJECT),
        (b"[{}]", _OBJECT),
        (b" {}", _OBJECT),
        (b"{}\n", _OBJECT),
        (b"\xef\xbb\xbf{}", _OBJECT),
        ("{}".encode("utf-16-le"), _OBJECT),
        (b'{"a":"\xff"}', "a document is not valid UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "a document is not valid UTF-8"),
        (b'{"a":"\xc0\x80"}', "a document is not valid UTF-8"),
        (b"{}\x00{}", "a document has a NUL"),
        (b'{"a":NaN}', _NAN),
        (b'{"a" : -Inf }', _NAN),
        (b'{"a":[Infinity],"b":": NaN"}', _NAN),
        (b'{"a":"\\"","b":\nNaN}', _NAN),
        (b'{"a":1e0003}', _DECIMAL),
        (b'{"a":"1.E-0003"}', _DECIMAL),
        (b'{"a":1e-20}', _DECIMAL),
        (b'{"a":1E-999999999}', _DECIMAL),
        (b'{"a":-0.1234567890123456789e-1}', _DECIMAL),
        (b'{"id":"1e-0020","a":".1234567890123456789e-1"}', _DECIMAL),
        (rb'{"small":1e-20,"\u0061":1e-20}', _DECIMAL),
        (b'{"a":1e-20,"a":1}', _DECIMAL),
        (b'{"c":1e-20,"a":{}}{}', _DECIMAL),
        (b'{"a":".1234567890123456789e-1"}', _DECIMAL),
        (rb'{"a":"1e\u002d99"}', _DECIMAL),
        (rb'{"a":"\u0031\u0065+0003"}', _DECIMAL),
        (rb'{"a":"1e\u00300\u00303"}', _DECIMAL),
        (b'{"a":"' + b"0" * 100 + b'1"}', _DECIMAL),
        (b'{"a":"' + rb"\u0030" * 100 + b'1"}', _DECIMAL),
        (b'{"a":' + b"7" * 1001 + b"}", _NUMBER),
        (b'{"a":-1.' + b"1" * 500 + b"e" + b"3" * 500 + b"}", _NUMBER),
        (b'{"' + b"n" * 50_001 + b'":1}', _NAME),
        (b'{"a":{"' + b'\\"' * 50_001 + b'":1}}', _NAME),
        (nested(1001), _DEEP),
        (nested(1001).replace(b'"x"', b'"]]]]"'), _DEEP),
    ],
)
def test_documents_that_need_a_full_decode(document: bytes, reason: str) -> None:
    for documents in ([document], [b'{"a":1}', document, b"{}"]):
        with pytest.raises(NotThisWay) as needed:
            lines(*documents)
        assert str(needed.value) == reason


@pytest.mark.parametrize(
    "document",
    [
        b'{"a":"Information, Infinity and NaN","b":": NaN,", "c": "[-Inf]"}',
        b'{"a":"\\\\","NaN":"\\":Inf,"}',
        b'{"id":"a1e00-4e0012-4e-4211"}',
        b'{"a":1.123456789012345678e-19,"b":-5E-7,"c":1e37}',
        rb'{"phone":"\u002B491e003","name":"\u00e9"}',
        b'{"a":1e003}',
        rb'{"a":"1\udc00","small":1e-20}',
        b'{"a":' + b"7" * 300 + b"}",
        b'{"a":"' + b"x7" * 20_000 + b'","b":[' + b'{"c":1},' * 9000 + b'"]"]}',
        b'{"a" : "' + b"x" * 100_000 + b'", "b":"' + b'\\"' * 50_000 + b'"}',
        nested(900) + b" " * 300 + b"}",
        '{"ä":"名😀"}'.encode(),
    ],
    ids=range(12),
)
def test_documents_that_are_no_reason(document: bytes) -> None:
    assert lines(document, b"{}").data == document + b"\n{}"


@pytest.mark.parametrize("of", ["ARRAY<DECIMAL(38, 18)>", "ROW<i INT, d ARRAY<ROW<m DECIMAL(38, 18)>>>"])
def test_decimals_in_arrays_and_rows(of: str) -> None:
    odd = b'["1e-0020",2]' if of.startswith("ARRAY") else b'{"d":[{},{"m":1e-20}]}'
    with pytest.raises(NotThisWay, match=_DECIMAL):
        lines(b'{"a":%b}' % odd, of=of)
    lines(b'{"id":%b}' % odd, of=of)


@pytest.mark.parametrize(
    "document",
    [
        b'{"id":"0854231e-3989-4e95-8797-534338196446","c":1}',
        b'{"id":"12e00345","c":"5.00"}',
        b'{"id":"' + b"0" * 150 + b'"}',
        b'{"small":1.5e-25,"other":1e-999,"id":"1"}',
        b'{"id":"-1e-40","other":{"a":1e-999},"others":["1e-40"]}',
    ],
    ids=["a UUID", "an id in hexadecimal digits", "a text of zeros", "a DOUBLE", "a number of another field"],
)
def test_no_other_field_is_taken_for_a_decimal(document: bytes) -> None:
    assert lines(document, b"{}").data == document + b"\n{}"
    with pytest.raises(NotThisWay, match=_DECIMAL):
        lines(document, b'{"c":1e-30}')


def test_decimals_are_looked_for_only_where_there_are_some() -> None:
    document = b'{"a":1e0003}'
    row = spec("json", {"a": "DOUBLE"}).row
    assert checked_lines(pa.array([document], pa.binary()), row).data == document


def test_documents_are_in_blocks_only_where_each_is_one_line() -> None:
    many = [b'{"a":%d}' % n for n in range(100_000)]
    small = lines(*many)
    assert small.data.split(b"\n") == many and small.block_size < len(small.data) // 4
    for document in (b'{"a":\n1}', b'{"a":\r1}'):
        assert lines(*many, document).block_size > len(small.data)
    parts = b'{"a":["' + b'","'.join([b"x" * 1000] * 500) + b'"]}'
    assert lines(*many, parts).block_size > len(parts)
