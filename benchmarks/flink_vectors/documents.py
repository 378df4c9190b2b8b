# ruff: noqa: E501
"""What Flink's formats are asked to decode and to encode: types, documents and rows at their limits, options.

A row for most cases has a column for each type, of which one has a value. So each is judged alone, and Spark needs few plans.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Row = tuple[str, Mapping[str, Any]]
"""A row kind, and the fields that are not null."""


@dataclass(frozen=True)
class Case:
    """A format with options and columns (name to type), and what it is asked."""

    format: str
    columns: Mapping[str, str]
    options: Mapping[str, str]
    documents: Sequence[bytes | None] = ()
    rows: Sequence[Row] = ()
    read_back: bool = False
    """Whether the documents that Flink writes are read, too."""

    def asked(self) -> dict[str, Any]:
        """The case as FlinkFormats takes it, and as the data of the tests have it."""
        documents = [None if d is None else base64.b64encode(d).decode() for d in self.documents]
        rows = [[kind, {"row": row}] for kind, row in self.rows]
        return {
            "format": self.format,
            "options": self.options,
            "columns": self.columns,
            "documents": documents,
            "rows": rows,
            "read_back": self.read_back,
        }


_DAY = 86_400_000_000_000
_LAST = 253_402_300_799_999_999_000  # 9999-12-31 23:59:59.999999
_FIRST = -62_135_596_800_000_000_000  # 0001-01-01


def _numbers(*values: str, kind: str) -> list[Any]:
    return [{kind: value} for value in values]


def _binaries(*values: bytes) -> list[Any]:
    return [{"bytes": base64.b64encode(value).decode()} for value in values]


def _tagged(kind: str, values: Sequence[Any]) -> list[Any]:
    return [{kind: value} for value in values]


def _moments(digits: int) -> list[Any]:
    """Times with up to so many digits after the point."""
    step = 10 ** (9 - digits)
    exact = [
        0,
        step,
        -step,
        1_700_000_000_123_456_000,
        1_709_164_800_000_000_000,
        -1_000_000_000,
        1_100_000_000,
        _LAST,
        _FIRST,
    ]
    return [{"ns": value // step * step} for value in exact]


_FLOATS = (
    "0.0",
    "-0.0",
    "1.5",
    "0.1",
    "1.0E10",
    "1.0E-5",
    "123456.79",
    "1.0E7",
    "9999999.0",
    "NaN",
    "Infinity",
    "-Infinity",
    "1.4E-45",
    "3.4028235E38",
)
_DOUBLES = (*_FLOATS[:12], "4.9E-324", "1.7976931348623157E308", "100.0", "1.0E-3", "12345678901234.5")
_TEXTS = [
    "",
    "a",
    " a b ",
    'q"uo\\te',
    "x,y;z",
    "ä日😀",
    "line\nbreak\r\t",
    "null",
    "NULL",
    "~",
    "#c",
    "\u0000\u0001\u001f\u007f\u2028",
    "a" * 30,
    "'",
    "/",
    "true",
    "1",
    "{}",
    "<&>",
    "\\N",
]
# A type, and values at its limits.
# fmt: off
TYPES: dict[str, tuple[str, list[Any]]] = {
    "flag": ("BOOLEAN", [True, False]),
    "tiny": ("TINYINT", [0, 1, -1, 127, -128, 7, 10, 100]),
    "small": ("SMALLINT", [0, 1, -1, 32767, -32768, 7, 10, 100]),
    "i": ("INT", [0, 1, -1, 2**31 - 1, -(2**31), 7, 10, 100]),
    "big": ("BIGINT", [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 10, 100]),
    "f": ("FLOAT", _numbers(*_FLOATS, kind="double")),
    "d": ("DOUBLE", _numbers(*_DOUBLES, kind="double")),
    "money": ("DECIMAL(10, 2)", _numbers("0.00", "1.50", "-1.05", "99999999.99", "-99999999.99", "0.01", "100.00", "10.00", "1234.56", kind="decimal")),
    "long": ("DECIMAL(38, 18)", _numbers("0", "1.000000000000000001", "-99999999999999999999.999999999999999999", "0.000000000000000001", "0.000000100000000000", "0.000000012", "100", "10000000000000000000", kind="decimal")),
    "whole": ("DECIMAL(38, 0)", _numbers("0", "1", "-15", "9" * 38, "-" + "9" * 38, "100", "1" + "0" * 37, "12345", kind="decimal")),
    "part": ("DECIMAL(3, 3)", _numbers("0.000", "0.001", "-0.999", "0.100", "0.010", "0.123", "-0.001", "0.5", kind="decimal")),
    "s": ("STRING", _TEXTS),
    "c": ("CHAR(3)", ["abc", "a", "", "äöü", "abcdef", "a  ", "日本", "x,y"]),
    "v": ("VARCHAR(3)", ["abc", "a", "", "äöü", "abcdef", "a  ", "日本", '"']),
    "y": ("BYTES", _binaries(b"", b"a", b"\x00", b"\xff\xfe", b"hello world", b"\xfb\xef\xbe", bytes(range(60)), b"ab")),
    "y2": ("BINARY(2)", _binaries(b"", b"a", b"ab", b"abc", b"\xff\xff", b"\x00\x00", b"\xfb\xef", b"xy")),
    "vy2": ("VARBINARY(2)", _binaries(b"", b"a", b"ab", b"abc", b"\xff\xff", b"\x00\x00", b"\xfb\xef", b"xy")),
    "day": ("DATE", [0, 1, -1, 19_782, -719_162, 2_932_896, -141_428, 20_000, 2_932_897, -719_163]),
    "ts0": ("TIMESTAMP(0)", _moments(0)),
    "ts3": ("TIMESTAMP(3)", _moments(3)),
    "ts6": ("TIMESTAMP(6)", _moments(6)),
    "lz0": ("TIMESTAMP_LTZ(0)", _moments(0)),
    "lz3": ("TIMESTAMP_LTZ(3)", _moments(3)),
    "lz6": ("TIMESTAMP_LTZ(6)", _moments(6)),
    "ints": ("ARRAY<INT>", _tagged("array", ([], [1], [1, None, -1], [None], [2**31 - 1], [1, 2, 3], [0], [7, 7]))),
    "sums": ("ARRAY<DECIMAL(10, 2)>", [{"array": [None if v is None else {"decimal": v} for v in values]} for values in ([], ["1.50"], ["100.00", None], ["0.00"], ["-1.05", "99999999.99"], ["10.00"], ["0.01"], ["1234.56"])]),
    "texts": ("ARRAY<STRING>", _tagged("array", ([], [""], ["a", None], ["x;y", "x,y"], ['"'], ["a", "b"], ["~"], [" a "]))),
    "pair": ("ROW<a INT, b STRING>", _tagged("row", ({}, {"a": 1}, {"b": "x"}, {"a": 1, "b": "x;y"}, {"a": 1, "b": ""}, {"b": '"'}, {"a": -1, "b": "~"}, {"a": 2**31 - 1, "b": "日"}))),
    "map": ("MAP<STRING, INT>", _tagged("map", ([], [["a", 1]], [["a", None]], [["", 1]], [["a", 1], ["b", 2]], [['"', 1]], [["日", -1]], [["b", 1], ["a", 2]]))),
    "bag": ("MULTISET<STRING>", _tagged("map", ([], [["a", 1]], [["", 2]], [["a", 1], ["b", 2]], [["日", 3]]))),
    "nested": ("ARRAY<ROW<m MAP<STRING, DECIMAL(10, 2)>, t TIMESTAMP(3), r ROW<x ARRAY<DOUBLE>>>>", _tagged("array", (
        [], [None], [{"row": {}}], [{"row": {"m": {"map": [["k", {"decimal": "10.00"}]]}, "t": {"ns": 1_700_000_000_123_000_000}}}],
        [{"row": {"r": {"row": {}}}}], [{"row": {"r": {"row": {"x": {"array": [{"double": "1.0E10"}, None]}}}}}], [{"row": {"m": {"map": [["k", None]]}}}, None]))),
}
# fmt: on
_EXACT = ("tiny", "small", "i", "big")
_DECIMALS = ("money", "long", "whole", "part")
_TIMES = ("ts0", "ts3", "ts6", "lz0", "lz3", "lz6")
_LISTS = ("ints", "sums", "texts", "pair")
_DEEP = ("map", "bag", "nested")
_BYTES = ("y", "y2", "vy2")
_PLAIN = tuple(name for name in TYPES if name not in (*_BYTES, *_LISTS, *_DEEP))
"""Columns that the bridge also reads and writes without Spark."""
_OTHERS = (*_BYTES, *_LISTS, *_DEEP)


def _columns(*left_out: str, only: Sequence[str] = tuple(TYPES)) -> dict[str, str]:
    return {name: TYPES[name][0] for name in only if name not in left_out}


def _rows(columns: Mapping[str, str], *, kinds: Sequence[str] = ("+I",)) -> list[Row]:
    made = [{name: value} for name in columns for value in TYPES[name][1]]
    return [(kinds[n % len(kinds)], row) for n, row in enumerate([{}, *made])]


_TOKENS = (
    *(
        "null",
        "true",
        "false",
        '"true"',
        '"FALSE"',
        '" true "',
        '"t"',
        "0",
        "1",
        "-1",
        "1.0",
        "1.5",
        "-1.9",
        "1e2",
        "1E-1",
        '"1"',
        '" 1 "',
    ),
    *(
        '""',
        '" "',
        '"x"',
        "{}",
        "[]",
        "[1]",
        "[null]",
        '{"a":1}',
        '"1.5"',
        '"1e2"',
        '"+1"',
        "-0",
        "-0.0",
        '"-0"',
        '"1."',
        '".5"',
        "1e400",
    ),
    *(
        '"NaN"',
        '"Infinity"',
        '"null"',
        '"0x1"',
        '"1d"',
        '"1f"',
        '"1_0"',
        '"\u0661"',
        '"1\\u0000"',
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        "12345678901234567890",
    ),
    *("NaN", "01", "+1", ".5", "1.", "'x'", "nul", "1 2", '"a\nb"'),
)
"""Spellings that each type is given; the last ones are no JSON."""

_OF_NUMBERS = (
    "127",
    "128",
    "-129",
    "32768",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    '"2147483648"',
    "2147483647.9",
    "1e10",
    "9007199254740993",
    "1.00",
    "3.4028236e38",
    "3.5e38",
    "0.1",
    "1e-400",
    "123456789.123456789",
)
_OF_DECIMALS = (
    "99999999.99",
    "99999999.994",
    "99999999.995",
    "100000000",
    "0.005",
    "0.015",
    "-0.005",
    "0.0005",
    "0.9995",
    "9" * 38,
    "9" * 39,
    '"0.005"',
    "1e-30",
    "1e37",
    '"1E2"',
    "0.1234567890123456789",
    "1.000000000000000001",
)
_OF_BYTES = (
    '"YQ=="',
    '"YQ"',
    '"YWI="',
    '"Y Q=="',
    '"YQ==\\n"',
    '"-_8="',
    '"+/8="',
    '"YQ=="x',
    '"!!!!"',
    '"YWJj"',
    '"YWJjZA=="',
    '"YQ==="',
)
_DAYS = (
    "2024-02-29",
    "2023-02-29",
    "2024-2-9",
    "0001-01-01",
    "9999-12-31",
    "10000-01-01",
    "+10000-01-01",
    "-0001-01-01",
    "0000-01-01",
    "2024-02-29 00:00:00",
    "20240229",
    " 2024-02-29",
    "2024-02-30",
    "2024-13-01",
    "1582-10-10",
    "2024-02-29T00:00:00",
    "2024-02-29Z",
)
_CLOCKS = (
    *(
        "2024-02-29 12:34:56",
        "2024-02-29T12:34:56",
        "2024-02-29 12:34:56.1",
        "2024-02-29 12:34:56.123456",
        "2024-02-29 12:34:56.123456789",
        "2024-02-29T12:34:56.123456789",
    ),
    *(
        "1969-12-31 23:59:59.999999999",
        "2024-02-29 12:34:56.1234567891",
        "2024-02-29 12:34:56.",
        "2024-02-29T12:34",
        "2024-02-29 12:34",
        "2024-02-29 24:00:00",
        "2024-02-29 12:34:60",
        "2023-02-29 12:34:56",
    ),
    *(
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.999",
        "+10000-01-01 00:00:00",
        "-0001-01-01 00:00:00",
        " 2024-02-29 12:34:56",
        "2024-02-29 1:02:03",
        "2024-02-29",
        "1700000000",
        "2024-02-29 12:34:56,5",
    ),
)
_ZONES = ("", "Z", "z", "+01:00", " UTC")


def _strings(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(json.dumps(text) for text in texts)


def _spellings(name: str) -> Sequence[str]:
    """Spellings of JSON for the type of a column."""
    if name in (*_EXACT, "f", "d"):
        return _OF_NUMBERS
    if name in _DECIMALS:
        return _OF_DECIMALS
    if name in _BYTES:
        return _OF_BYTES
    if name == "day":
        return _strings(_DAYS)
    if name in _TIMES:
        zones = _ZONES if name in ("ts3", "lz3") else ("Z",) if name.startswith("lz") else ("",)
        return _strings([clock + zone for clock in _CLOCKS for zone in zones])
    return _OF_PARTS.get(name, ())


_OF_PARTS = {
    "flag": ("true", "false", '"true"', '"FALSE"', '" true "', '"t"', "1", "0", "2", "1.5"),
    "s": (*_strings(_TEXTS), '{"b" : 1.0, "a":[ ]}', "[1, 2.50]", "1.50", "1E+2", '"\\u00e4\\/"', '"\\u0000"', "100000000000000000000000000000", "1e5", "-1.0E-7", '{"a":1,"a":2}', '{"a":"\\u00e4"}', "0.00001", "12345678901234567.0"),
    "c": _strings(["abcdef", "a"]),
    "v": _strings(["abcdef", "a"]),
    "ints": ("[1, 2]", '["1", 2.7]', '["x"]', "[[1]]", "[1,]", "[1, null, true]", "[2147483648]", '{"0":1}'),
    "sums": ('["1.50", 2, null]', "[1.005]", '["0.005", -0.005]', "[99999999.99]", "[99999999.995]", '["x"]', "[true, 1]", "[1e2]", '[" 1 "]', "[[1]]", "[{}]"),
    "texts": ('["a", null, 1, true, {"b":1}]', '[""]', '"[]"', '[["a"]]', "[1.50]"),
    "pair": ('{"a":1,"b":"x"}', '{"b":"x"}', '{"a":"x"}', '{"A":1}', '{"a":1,"a":2}', '{"a":null,"c":1}', '[1,"x"]', '"{}"', '{"a":{"b":1}}', '{"b":{"b":1}}'),
    "map": ('{"a":1,"b":null}', '{"a":"x"}', '{"a":1,"a":2}', '{"":1}', '{"null":1}', '{"a":{"b":1}}', '[["a",1]]', '{"a":1.9,"b":"7"}', '{"b":1,"a":2}'),
    "bag": ('{"a":1}', '{"a":null}', '{"a":"x"}', '{"a":-1}', '{"a":1,"b":2}'),
    "nested": ('[{"m":{"k":"1.005"},"t":"2024-02-29 12:34:56.789","r":{"x":[1,null,"2"]}}]', '[{"m":{"k":"x"}}]', '[{"t":"x"}]', '[{"r":{"x":["x"]}}]', '[{"r":[]}]', '[null,{}]', '[{"m":{"k":null}}]', '[{"r":{"x":1}}]'),
}  # fmt: skip


def _json_documents(columns: Mapping[str, str]) -> list[bytes | None]:
    return [f'{{"{name}":{token}}}'.encode() for name in columns for token in (*_TOKENS, *_spellings(name))]


_SMALL = {"id": "INT", "name": "STRING"}
_WHOLE: list[bytes | None] = [
    None, b"", b" ", b"{}", b"null", b"[]", b"1", b'"x"', b"true", b"{", b"}", b"nonsense", b"\xef\xbb\xbf{}", b'\xef\xbb\xbf{"id":1}',
    b'{"id":1,"name":"a"}', b'{"id":1}', b'{"name":"a"}', b'{"id":1,"other":{"deep":[1,{"x":2}]}}', b'{"other":1}', b'{"id":1}x', b'{"id":1} ', b'{"id":1}\n', b'{"id":1}{"id":2}',
    b'{"id":1},', b'{"id":1}]', b'{"id":1,"id":2}', b'{"name":"a","name":null}', b'{"ID":1}', b'{"id":1,}', b'{id:1}', b"{'id':1}", b'{"id":1 "name":"a"}', b'{"id":}', b'[{"id":1},{"id":2}]',
    b'[{"id":1},{"id":"x"}]', b'[{"id":1},1]', b'[{"id":1},null]', b'[[{"id":1}]]', b'[{"id":1}', b'{"name":"\xff"}', b'{"name":"\xc3\x28"}', b'{"name":"\xed\xa0\x80"}', b'{"x":"\xff","id":1}',
    b'{"name":"\\x"}', b'{"name":"\\u12"}', b'{"name":"a', b'{"id":1/*c*/}', b'//c\n{"id":1}', b'{"id":NaN}', b'{"id":1}\x00', b'{"name":"\x00"}', b'{"name":"\x1f"}', b'{"name":"a\tb"}',
    b'{"name":null,"id":null}', b'{"other":nonsense,"id":1}', b'{"other":01,"id":1}', b'{"other":1e999999,"id":1}', b'{"other":"\\x","id":1}', '{"id":1,"name":"ä"}'.encode("utf-16"), b'{"\\u0069d":1}', b'{"id":"1","name":1}', b'\t{"id":1}', b'{"id" : 1 , "name" : "a" }',
    b'{"other":' + b"[" * 400 + b"]" * 400 + b',"id":1}', b'{"other":[1,2,"id":3}',
]  # fmt: skip
"""Documents as a whole, of `_SMALL`."""


def _json() -> Iterator[Case]:
    for skips in ("false", "true"):
        given = {"ignore-parse-errors": skips}
        for columns in (_columns(only=_PLAIN), _columns(only=_OTHERS)):
            yield Case("json", columns, given, _json_documents(columns))
        yield Case("json", _SMALL, given, _WHOLE)
    strict = {"fail-on-missing-field": "true"}
    yield Case("json", _SMALL, strict, _WHOLE)
    pairs = (
        b'{"pair":{"a":1}}',
        b'{"pair":{"a":1,"b":null}}',
        b'{"pair":null}',
        b"{}",
        b'{"pair":{}}',
        b'{"pair":{"b":"x","a":1}}',
        b'{"Pair":null}',
        b'{"pair":1}',
    )
    yield Case("json", _columns(only=("pair",)), strict, pairs)
    times = _columns(only=("day", *_TIMES))
    yield Case("json", times, {"timestamp-format.standard": "ISO-8601"}, _json_documents(times), _rows(times))
    for columns in (_columns(only=(*_PLAIN, *_BYTES)), _columns(only=(*_LISTS, *_DEEP))):
        for options in (
            {},
            {"encode.ignore-null-fields": "true"},
            {"encode.decimal-as-plain-number": "true"},
        ):
            yield Case("json", columns, options, rows=_rows(columns))


_LINES: list[bytes | None] = [
    None, b"", b" ", b"1,a", b"1", b"1,", b",a", b",", b"1,a,", b"1,a,b", b"1,a,,", b"1,a\n", b"1,a\r\n", b"1,a\n2,b", b"\n1,a", b'1,"a"', b'1,"a,b"', b'1,"a""b"', b'1,"a', b'1,"a"x', b'1,a"b', b'1,"a" ', b'1, "a"', b'"1",a',
    b"#1,a", b" #1,a", b"#c\n1,a", b"1,#a", b"1;a", b"1\ta", b"1|a", b"1, a ", b" 1 ,a", b"\xef\xbb\xbf1,a", b"1,\xff", b"1,\xc3\x28", b"1,'a,b'", b"1,'a''b'", b"1,a\\,b", b'1,"a\\"b"', b"1,\\", b"1,a\\nb", b"1,\\N", b"1,~", b"~,a", b'1,"~"', b"~,~",
    b"1,n/a", b"n/a,a", b'1,"a\nb"', b"1,a\rb", b"x,a", b"1.5,a", b'1,""', b'1,""""', b"1,\x00", b"1,a\x00", b"\x001,a", b"1,  ", b'1," "', "1,ä日😀".encode(), b"1,null", b"1\x01a", b"\x00", b"1\x00", b"1\x00,\x00a\x00", b"a\x001,a", b",,", b"~", b'""', b'1,"a","b"', b"1,a b",
]  # fmt: skip
"""Lines as a whole, of `_SMALL`."""
_FIELDS = (
    *(
        "",
        " ",
        "true",
        "FALSE",
        " true ",
        "t",
        "0",
        "1",
        "-1",
        "+1",
        " 1 ",
        "1.0",
        "1.5",
        "-1.9",
        "1e2",
        "1E-1",
        "x",
        "null",
        "~",
        "NaN",
        "Infinity",
        "-0",
        "0x1",
        "1d",
        "1.",
        ".5",
        "1e400",
        "\u0661",
        "[]",
        "{}",
    ),
    *(
        "1;2",
        "1;",
        ";1",
        ";",
        "1;x",
        "1;~",
        "~;1",
        "1; 2",
        "1;x;y",
        "2147483648",
        "128",
        "32768",
        "9223372036854775808",
        "YQ==",
        "YQ",
        "YWI=",
        "-_8=",
        "Y Q==",
        "a b",
        "abcdef",
    ),
)


def _csv_texts(name: str) -> Sequence[str]:
    if name in _DECIMALS:
        return (*_FIELDS, *(t.strip('"') for t in _OF_DECIMALS))
    if name == "day":
        return (*_FIELDS, *_DAYS)
    if name in _TIMES:
        zones = ("", "Z") if name in ("ts3", "lz3") else ("Z",) if name.startswith("lz") else ("",)
        return (*_FIELDS, *(clock + zone for clock in _CLOCKS for zone in zones if "," not in clock))
    return (*_FIELDS, "3.4028236e38", "3.5e38", "0.1", "1e-400") if name in ("f", "d") else _FIELDS


def _csv_line(columns: Mapping[str, str], name: str, text: str) -> bytes:
    """A line in which one column has this text; Flink reads the null literal in place of a list or a row as its part."""
    nulls = {column: "" if column in _LISTS else "~" for column in columns}
    return ",".join((nulls | {name: text}).values()).encode()


def _written_with(options: Mapping[str, str]) -> list[bytes | None]:
    """The lines, with the delimiter and the quotes of the options."""
    delimiter = {"\\t": b"\t", "\\u0001": b"\x01"}.get(
        options.get("field-delimiter", ","), options.get("field-delimiter", ",").encode()
    )
    quote = options.get("quote-character", '"').encode()
    lines = [None if line is None else line.replace(b",", delimiter).replace(b'"', quote) for line in _LINES]
    return [*lines, *_LINES]


def _csv() -> Iterator[Case]:
    columns = _columns(*_DEEP)
    for skips in ("false", "true"):
        for part in (_columns(only=_PLAIN), _columns(only=_BYTES), _columns(only=_LISTS)):
            lines = [_csv_line(part, name, text) for name in part for text in _csv_texts(name)]
            yield Case("csv", part, {"null-literal": "~", "ignore-parse-errors": skips}, lines)
        yield Case("csv", _SMALL, {"ignore-parse-errors": skips}, _LINES)
    yield Case("csv", columns, {"null-literal": "~"}, rows=_rows(columns))
    yield Case("csv", columns, {}, rows=_rows(columns))
    texts = {name: TYPES[name][0] for name in ("s", "texts", "pair", "sums", "ts3", "y", "d", "money", "i")}
    for options in (
        {"field-delimiter": ";", "array-element-delimiter": ","},
        {"field-delimiter": "\\t"},
        {"field-delimiter": "\\u0001"},
        {"field-delimiter": "|", "quote-character": "'"},
        {"disable-quote-character": "true"},
        {"escape-character": "\\"},
        {"escape-character": "\\", "disable-quote-character": "true"},
        {"null-literal": "n/a"},
        {"null-literal": "~", "allow-comments": "true"},
    ):
        yield Case("csv", _SMALL, options, _written_with(options))
        yield Case("csv", texts, options, rows=_rows(texts))
    plain = _columns(only=_DECIMALS)
    for scientific in ("false", "true"):
        yield Case("csv", plain, {"write-bigdecimal-in-scientific-notation": scientific}, rows=_rows(plain))


def _raw() -> Iterator[Case]:
    sizes = (
        [b"\x00" * n for n in range(10)]
        + [b"\xff" * n for n in (1, 2, 4, 8)]
        + [b"\x01\x02\x03\x04\x05\x06\x07\x08"[:n] for n in (1, 2, 4, 8)]
    )
    texts = [
        b"a",
        "ä日😀".encode(),
        b"\xff",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbfa",
        "ä日".encode("utf-16"),
        "aä".encode("utf-16-le"),
        b"\x00",
        b"a\x00b",
    ]
    floats = [
        b"\x3f\xc0\x00\x00",
        b"\x7f\xc0\x00\x00",
        b"\x7f\xc0\x00\x01",
        b"\x7f\xf8\x00\x00\x00\x00\x00\x00",
        b"\x80\x00\x00\x00\x00\x00\x00\x00",
    ]
    documents = [None, *sizes, *texts, *floats]
    for name in ("flag", "tiny", "small", "i", "big", "f", "d", "s", "c", "v", "y", "y2", "vy2"):
        columns = _columns(only=(name,))
        yield Case("raw", columns, {}, documents, _rows(columns))
        if name in ("small", "i", "big", "f", "d"):
            yield Case("raw", columns, {"endianness": "little-endian"}, documents, _rows(columns))
        if name == "s":
            for charset in ("US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32"):
                # The bridge refuses a text with other characters, which ends the job for all rows.
                rows = [row for row in _rows(columns) if _has(charset, row[1].get(name, ""))]
                yield Case("raw", columns, {"charset": charset}, documents, rows)


def _has(charset: str, text: str) -> bool:
    return text.encode(charset, "replace") == text.encode(charset, "ignore")


def _avro() -> Iterator[Case]:
    mapped = {"timestamp_mapping.legacy": "false"}
    yield Case("avro", _columns(only=_PLAIN), mapped, rows=_rows(_columns(only=_PLAIN)), read_back=True)
    for encoding in ("binary", "json"):
        given = {"encoding": encoding}
        for columns, options in (
            (_columns("ts0", "ts6", "lz0", "lz3", "lz6"), given),
            (_columns(), {**given, **mapped}),
        ):
            yield Case("avro", columns, options, rows=_rows(columns), read_back=True)
        documents = _AVRO_JSON if encoding == "json" else _AVRO_BINARY
        if encoding == "json":
            zeros = [f'{{"d":{{"double":{number}}}}}'.encode() for number in ("-0", "-0.0", "1e400", "1.0")]
            yield Case("avro", _columns(only=("d",)), given, zeros)
        yield Case(
            "avro",
            {
                **_SMALL,
                "tiny": "TINYINT",
                "day": "DATE",
                "ts3": "TIMESTAMP(3)",
                "money": "DECIMAL(10, 2)",
                "ints": "ARRAY<INT>",
                "map": "MAP<STRING, INT>",
            },
            given,
            documents,
        )


_NULLS = b"\x00" * 8
_AVRO_BINARY: list[bytes | None] = [
    None, b"", _NULLS, _NULLS[:7], _NULLS + b"\x00", b"\x02\x02" + _NULLS[1:], b"\x04\x02" + _NULLS[1:], b"\x01" + _NULLS[1:], b"\x02\xfe\xff\xff\xff\x0f" + _NULLS[1:], b"\x02\x80\x80\x80\x80\x10" + _NULLS[1:],
    b"\x00\x02\x02a" + _NULLS[2:], b"\x00\x02\x00" + _NULLS[2:], b"\x00\x02\x02\xff" + _NULLS[2:], b"\x00\x02\x01" + _NULLS[2:], b"\x00\x02\x10a" + _NULLS[2:], b"\x00\x02\x06\xe6\x97\xa5" + _NULLS[2:], b"\x00\x02\x06\xed\xa0\x80" + _NULLS[2:],
    b"\x00\x00\x02\xfe\x01" + _NULLS[3:], b"\x00\x00\x02\x80\x02" + _NULLS[3:], b"\x00\x00\x02\x81\x02" + _NULLS[3:], b"\x00\x00\x00\x02\x02" + _NULLS[4:], b"\x00\x00\x00\x02\xff\xff\xff\xff\x0f" + _NULLS[4:],
    b"\x00\x00\x00\x00\x02\x02" + _NULLS[5:], b"\x00\x00\x00\x00\x02\x01" + _NULLS[5:], b"\x00\x00\x00\x00\x02" + b"\xff" * 9 + b"\x01" + _NULLS[5:],
    b"\x00\x00\x00\x00\x00\x02\x02\x01" + _NULLS[6:], b"\x00\x00\x00\x00\x00\x02\x00" + _NULLS[6:], b"\x00\x00\x00\x00\x00\x02\x0c\x01\x00\x00\x00\x00\x00" + _NULLS[6:], b"\x00\x00\x00\x00\x00\x02\x02\xff" + _NULLS[6:], b"\x00\x00\x00\x00\x00\x02\x04\x00\x01" + _NULLS[6:],
    b"\x00\x00\x00\x00\x00\x00\x02\x00\x00", b"\x00\x00\x00\x00\x00\x00\x02\x02\x02\x02\x00\x00", b"\x00\x00\x00\x00\x00\x00\x02\x01\x04\x02\x02\x00\x00", b"\x00\x00\x00\x00\x00\x00\x02\x04\x02\x02\x00\x00\x00", b"\x00\x00\x00\x00\x00\x00\x02\x02\x02\x02\x02\x02\x04\x00\x00",
    b"\x00\x00\x00\x00\x00\x00\x00\x02\x00", b"\x00\x00\x00\x00\x00\x00\x00\x02\x02\x02a\x02\x02\x00", b"\x00\x00\x00\x00\x00\x00\x00\x02\x04\x02a\x02\x02\x02a\x02\x04\x00", b"\x00\x00\x00\x00\x00\x00\x00\x02\x02\x02a\x00\x00",
]  # fmt: skip
"""A byte for each of eight nullable columns, with values in place of one."""


def _avro_object(**fields: Any) -> bytes:
    names = ("id", "name", "tiny", "day", "ts3", "money", "ints", "map")
    return json.dumps({name: fields.get(name) for name in names}).encode()


_AVRO_JSON: list[bytes | None] = [
    None, b"", b"{}", b"null", _avro_object(), _avro_object(id={"int": 1}), _avro_object(id=1), _avro_object(id={"long": 1}), _avro_object(id={"int": "1"}), _avro_object(id={"int": 1.5}), _avro_object(id={"int": 1.0}), _avro_object(id={"int": 2**31}),
    _avro_object(name={"string": "ä"}), _avro_object(name={"string": 1}), _avro_object(name="a"), _avro_object(tiny={"int": 127}), _avro_object(tiny={"int": 128}), _avro_object(day={"int": 1}), _avro_object(ts3={"long": -1}),
    _avro_object(money={"bytes": "\u0001"}), _avro_object(money={"bytes": "\u00ff"}), _avro_object(money={"bytes": ""}), _avro_object(money={"bytes": "\u0100"}), _avro_object(ints={"array": [{"int": 1}, None]}), _avro_object(ints={"array": []}), _avro_object(ints={"array": [1]}),
    _avro_object(map={"map": {"a": {"int": 1}, "b": None}}), _avro_object(map={"map": {}}), _avro_object() + b"x", _avro_object() + b" ", _avro_object() + _avro_object(), _avro_object()[:-1], b'{"id":null}', b'{"other":1,' + _avro_object()[1:],
    b'{"name":null,"id":{"int":1},' + _avro_object()[27:], b"nonsense", b"[]",
]  # fmt: skip


_DRAWN = 16


def _images(columns: Mapping[str, str], draw: random.Random) -> Iterator[str]:
    """A row for each spelling of a column's type, and for some that each type is given."""
    for name in columns:
        for token in (*draw.sample(_TOKENS, _DRAWN), *_spellings(name)):
            yield f'{{"{name}":{token}}}'
    yield from ("{}", "null")


_ODD: list[bytes | None] = [
    None, b"", b" ", b"{}", b"null", b"[]", b"1", b"{", b"nonsense", b"\xef\xbb\xbf{}", b'{"id":1}', b'[{"id":1}]', b'{"payload":null}', b'{"payload":{}}', b'{"schema":1,"payload":{"op":"c","after":{"id":1}}}',
]  # fmt: skip
_A, _B = '{"id":1,"name":"a"}', '{"id":1,"name":"b"}'
_DEBEZIUM = [
    *(f'{{"before":null,"after":{_A},"op":"{op}"}}' for op in ("c", "r", "u", "d", "t", "m", "x", "C", "")),
    *(f'{{"before":{_A},"after":{_B},"op":"{op}"}}' for op in ("c", "r", "u", "d", "t", "m", "x")),
    *(f'{{"before":{_A},"after":null,"op":"{op}"}}' for op in ("c", "r", "u", "d")),
    *(f'{{"before":{{}},"after":{{}},"op":"{op}"}}' for op in ("c", "u", "d")),
    f'{{"after":{_A}}}', f'{{"after":{_A},"op":null}}', f'{{"after":{_A},"op":1}}', f'{{"after":[{_A}],"op":"c"}}', '{"after":"x","op":"c"}', '{"op":"c"}', '{"op":"u"}', '{"op":"d"}', f'{{"after":{_A},"op":"c","op":"d"}}', f'{{"op":"c","after":{_A},"after":{_B}}}',
    f'{{"after":{_A},"op":"c"}}x', f'{{"after":{_A},"op":"c","source":{{"ts_ms":"x"}}}}', f'{{"after":{_A},"op":"c","ts_ms":"x"}}', f'{{"before":"x","after":{_A},"op":"c"}}', f'{{"before":{{"id":"x"}},"after":{_A},"op":"c"}}', f'{{"before":{{"id":"x"}},"after":{_A},"op":"u"}}',
    f'{{"before":{_A},"after":{{"id":"x"}},"op":"u"}}', f'{{"before":{_A},"after":{{"id":"x"}},"op":"d"}}', f'{{"payload":{{"after":{_A},"op":"c"}}}}', f'{{"schema":{{}},"payload":{{"before":{_A},"after":{_B},"op":"u"}}}}', f'{{"schema":null,"payload":{{"after":{_A},"op":"c"}},"after":{_B},"op":"d"}}', f'{{"Op":"c","After":{_A}}}',
]  # fmt: skip
_MAXWELL = [
    *(f'{{"data":{_B},"type":"{type}"}}' for type in ("insert", "update", "delete", "bootstrap-insert", "bootstrap-start", "table-create", "INSERT", "")),
    *(f'{{"data":{_B},"old":{old},"type":"update"}}' for old in ('{"name":"a"}', "{}", "null", '{"name":null}', '{"id":null}', '{"id":2,"name":"x"}', '[{"name":"a"}]', '"x"', '{"id":"x"}', '{"other":1}', '{"Name":"a"}')),
    *(f'{{"data":{data},"type":"insert"}}' for data in ("null", "{}", "[]", f"[{_A}]", '"x"', '{"id":"x"}')),
    f'{{"data":{_B}}}', '{"type":"insert"}', '{"type":"update"}', '{"type":"delete"}', f'{{"data":{_B},"type":null}}', f'{{"data":{_B},"type":1}}', '{"data":null,"old":null,"type":"update"}', f'{{"data":{_B},"old":{{"name":"a"}},"type":"insert"}}', f'{{"data":{_B},"type":"insert","database":1,"ts":"x"}}',
    f'{{"data":{_B},"old":{{"id":1}},"type":"delete"}}', '{"data":{"name":"b"},"old":{"name":"a"},"type":"update"}', '{"data":{"id":1},"old":{"name":"a"},"type":"update"}', f'{{"data":{_B},"type":"insert"}} x',
]  # fmt: skip
_CANAL = [
    *(f'{{"data":[{_B}],"type":"{type}"}}' for type in ("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "TRUNCATE", "QUERY", "insert", "")),
    *(f'{{"data":[{_B}],"old":{old},"type":"UPDATE"}}' for old in ('[{"name":"a"}]', "[{}]", "null", "[null]", '[{"name":null}]', '[{"id":null}]', '{"name":"a"}', "[]", '[{"name":"a"},{"name":"c"}]', '"x"', '[{"id":"x"}]', '[{"Name":"a"}]')),
    *(f'{{"data":{data},"type":"INSERT"}}' for data in ("null", "[]", "[null]", _A, f"[{_A},{_B}]", '"x"', '[{"id":"x"}]', f'[{_A},{{"id":"x"}}]', '["x"]', "[{}]")),
    f'{{"data":[{_A},{_B}],"old":[{{"name":"x"}},{{"id":7}}],"type":"UPDATE"}}', f'{{"data":[{_A},{_B}],"old":[{{"name":"x"}}],"type":"UPDATE"}}', f'{{"data":[{_A},{_B}],"type":"DELETE"}}', f'{{"data":[{_B}]}}', '{"type":"INSERT"}', '{"type":"UPDATE"}', '{"type":"DELETE"}', '{"data":null,"type":"UPDATE"}', '{"data":null,"type":"DELETE"}',
    f'{{"data":[{_B}],"type":null}}', f'{{"data":[{_B}],"type":1}}', '{"data":null,"type":"CREATE","sql":"x"}', f'{{"data":[{_B}],"old":[{{"name":"a"}}],"type":"DELETE"}}', f'{{"data":[{_B}],"type":"INSERT"}} x',
    *(f'{{"data":[{_B}],"type":"INSERT","database":{database},"table":{table}}}' for database in ('"shop"', '"shop2"', "null", '"SHOP"', "1") for table in ('"orders"', '"orders_old"', "null")), f'{{"data":[{_B}],"type":"INSERT","database":"shop"}}',
]  # fmt: skip
_OGG = [
    document.replace('"op":"c"', '"op_type":"I"')
    .replace('"op":"u"', '"op_type":"U"')
    .replace('"op":"d"', '"op_type":"D"')
    .replace('"op":', '"op_type":')
    for document in _DEBEZIUM
]


def _changes() -> Iterator[Case]:
    draw = random.Random(0)
    kinds = ("+I", "-U", "+U", "-D")
    times = _columns(only=("day", *_TIMES))
    shapes = {
        "debezium-json": (_DEBEZIUM, ('{{"after":{0},"op":"c"}}', '{{"before":{0},"op":"d"}}')),
        "maxwell-json": (_MAXWELL, ('{{"data":{0},"type":"insert"}}', '{{"data":{{}},"old":{0},"type":"update"}}')),
        "canal-json": (_CANAL, ('{{"data":[{0}],"type":"INSERT"}}', '{{"data":[{{}}],"old":[{0}],"type":"UPDATE"}}')),
        "ogg-json": (_OGG, ('{{"after":{0},"op_type":"I"}}', '{{"before":{0},"op_type":"D"}}')),
    }  # fmt: skip
    for format, (documents, wrapped) in shapes.items():
        whole = [*_ODD, *map(str.encode, documents)]
        for first, skips in enumerate(("false", "true")):
            given = {"ignore-parse-errors": skips}
            for columns in (_columns(only=_PLAIN), _columns(only=_OTHERS)):
                images = enumerate(_images(columns, draw), first)
                inner = [wrapped[n % 2].format(image).encode() for n, image in images]
                yield Case(format, columns, given, inner, () if first else _rows(columns, kinds=kinds))
            yield Case(format, _SMALL, given, whole)
        for columns in (_columns(only=_PLAIN), _columns(only=_OTHERS)):
            for options in (
                {"encode.ignore-null-fields": "true"},
                {"encode.decimal-as-plain-number": "true"},
            ):
                yield Case(format, columns, options, rows=_rows(columns, kinds=kinds))
        inner = [wrapped[0].format(image).encode() for image in _images(times, draw)]
        iso = {"timestamp-format.standard": "ISO-8601"}
        yield Case(format, times, iso, inner, _rows(times, kinds=kinds))
        if format == "debezium-json":
            with_schema = [f'{{"schema":{{}},"payload":{document}}}'.encode() for document in documents]
            yield Case(format, _SMALL, {"schema-include": "true"}, [*whole, *with_schema])
        if format == "canal-json":
            for pattern in ("shop", "shop.*", "(?i)shop"):
                yield Case(format, _SMALL, {"database.include": pattern}, whole)
            yield Case(format, _SMALL, {"database.include": "shop", "table.include": "orders|x"}, whole)


def cases() -> list[Case]:
    """All cases, each document and row once."""
    made = [*_json(), *_csv(), *_raw(), *_avro(), *_changes()]
    return [replace(case, documents=list(dict.fromkeys(case.documents))) for case in made]
