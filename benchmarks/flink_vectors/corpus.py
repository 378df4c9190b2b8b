# ruff: noqa: E501
"""The inputs of Flink's vectors: a table with a column for each kind of argument, at its limits."""

from __future__ import annotations

import base64
import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.flink_vectors.comparisons import comparisons
from benchmarks.flink_vectors.limits import limits
from benchmarks.flink_vectors.nested import nested
from bridge.expressions.signatures import SIGNATURES, Signature

ROWS = 12
_NESTED = 200
LITERALS = 8
"""The least number of constants for each function, operator and pair of a cast."""
_T = "STRING"
# fmt: off
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "text": (_T, ["hello", None, "", " a  b ", "äö€日本😀", "A1b2-C3", "aXbXc", "k1=v1,k2=v2", "foobar", "ſß İ", "a&b\\c", "hello.World"]),
    "text2": (_T, ["l", "x", "a", None, "日本", "", "bXc", "world", "oo", "ß", "&", "."]),
    "part": (_T, ["l", "x", "", " ", "ö", "b", "X", ",", None, "oo", "\\", "."]),
    "chars": (_T, ["h", "ab", " ", " a", None, "A3", "cXa", "", "rf", "ß", "a", "hd"]),
    "separator": (_T, [",", "", None, "~", "日", "--", "$", "|", "\\", " ", ".", "%"]),
    "count": ("INT", [2, 0, -1, None, 1, 3, -3, 100, -100, 4, 5, -2]),
    "count_t": ("TINYINT", [2, 0, -1, None, 1, 3, -3, 100, -100, 4, 5, -2]),
    "count_h": ("SMALLINT", [1, 3, None, -1, 0, 2, 100, -3, 5, -100, 4, -2]),
    "count2": ("INT", [3, 1, 2, -1, None, 0, 10, -2, 1, 2, 4, 1]),
    "regex": (_T, ["l+", "(a)(c)?", "(", "(\\w)\\s", "[日-本]", "\\d", "X|$", "=(.)", None, "o{2}(.)", "\\\\", ""]),
    "replacement": (_T, ["<$1>", "$", "", "\\", "$0", "x", "日", None, "\\1", "${a}", "$1", "."]),
    "group": ("INT", [0, 1, 2, -1, None, 3, 1, 0, 1, 0, 5, 1]),
    "base64": (_T, ["aGVsbG8gd29ybGQ=", None, "", "a", "####", "aGk", "8J+YgA==", "aGVs bG8=", "gA==", "YQ==", "YWI=", "YWJj"]),
    "hex": (_T, ["68656C6C6F", None, "", "6", "zz", "e697a5", "FF", "0g", "F", "00", "abc", "4142"]),
    "charset": (_T, ["UTF-8", "utf-8", "US-ASCII", None, "UTF-16BE", "ISO-8859-1", "nope", "UTF-16LE", "UTF-16", "", "UTF-8", "UTF-8"]),
    "url": (_T, ["http://user@facebook.com:80/path/p1.php?query=1&b=2#Ref1", None, "", "not a url", "https://example.com", "ftp://h/a%20b?x=%41", "http://日本.jp/?q=ä", "a%2Bb+c%zz", "a+b%20c", "%E6%97%A5", "http://h?query=&b", "http://h/p?query=a=b"]),
    "urlpart": (_T, ["HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "nope", None, "QUERY", "QUERY"]),
    "urlkey": (_T, ["query", "b", "query", None, "x", "q", "", "q", "x", "y", "b", "query"]),
    "pairs": (_T, ["k1=v1,k2=v2", None, "", "a", "a=", "=b", "a=1,a=2", "a=b=c", "x:1;y:2", ",", "日=本", "a =1, b= 2"]),
    "integer": ("BIGINT", [97, None, 0, -1, 255, 353, 2**31, -(2**31), 2**63 - 1, -(2**63), 48, 8364]),
    "bits": ("INT", [256, None, 224, 384, 512, 256, 256, 256, 256, 256, 256, 256]),
    "numeral": (_T, ["1", None, "", "-1.5", "1e3", " 2", "abc", "0x1", "1.", ".5", "+7", "١"]),
    "t": ("TINYINT", [0, None, 1, -1, 127, -128, 2, 3, -7, 100, 10, 5]),
    "h": ("SMALLINT", [0, 1, None, -1, 32767, -32768, 2, 3, -7, 100, 10, 5]),
    "i": ("INT", [-7, 0, 1, None, 2147483647, -2147483648, 5, 123456, -1, 42, 10, 2]),
    "i2": ("INT", [2, 3, -1, 4, 2147483647, -1, None, -1000, 7, 10, -2147483648, 2]),
    "l": ("BIGINT", [5000000000, 0, 1, -1, None, 9223372036854775807, -9223372036854775808, 123456789012, 7, -7, 10, 2]),
    "l2": ("BIGINT", [2, 3, 5, -1, 4, 1, -1, None, 10, 3, -10, 9223372036854775807]),
    "f": ("FLOAT", ["0.0", "1.5", "-2.5", "3.4028235E38", "1.4E-45", None, "NaN", "Infinity", "-Infinity", "0.1", "1.0E10", "16777216"]),
    "d": ("DOUBLE", ["0.0", "1.5", "-2.5", "1e300", "4.9E-324", "NaN", None, "Infinity", "-Infinity", "0.1", "1234567.891", "-0.0"]),
    "d2": ("DOUBLE", ["2.0", "-1.0", "0.5", "0.0", "1.0", "10.0", "-0.5", "100.0", "3.0", None, "1e-7", "2.5"]),
    "m": ("DECIMAL(10, 2)", ["-2.50", "0.00", "1.25", "99999999.99", "-99999999.99", "0.01", "2.50", None, "1.50", "-1.49", "1234.56", "10.00"]),
    "m2": ("DECIMAL(38, 18)", ["1.000000000000000001", "0", "-1.5", "99999999999999999999.999999999999999999", "-99999999999999999999.999999999999999999", "2.5", "0.000000000000000001", "3", None, "10", "-0.5", "7"]),
    "n0": ("DECIMAL(38, 0)", ["1", "0", "-15", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "25", "12345", "3", "2", None, "-5", "7"]),
    "digits": ("INT", [0, 1, 2, -1, -2, 3, 0, 1, 20, 1, None, -20]),
    "b": ("BOOLEAN", [True, False, None, True, False, True, False, True, False, True, None, False]),
    "b2": ("BOOLEAN", [True, False, True, None, False, False, True, True, None, False, None, True]),
    "bytes": ("BYTES", ["68656c6c6f", "", None, "00", "ff", "e697a5", "c3", "7f80", "6162", "f09f9880", "31", "74727565"]),
    "ch": ("CHAR(4)", ["true", None, "12  ", "-1.5", "1e3 ", "abcd", "    ", "2024", "+0.4", "日本語x", " off", "127 "]),
    "vc": ("VARCHAR(19)", ["2024-02-29 12:34:56", "2024-02-29", None, "", "17", " -3.7 ", "FALSE", "1e400", "äö", "9223372036854775808", "y", "2023-02-29"]),
    "bi": ("BINARY(2)", ["6869", None, "0000", "ffff", "c3a4", "3132", "2020", "7f80", "c328", "4e61", "000a", "2d31"]),
    "vb": ("VARBINARY(4)", ["68656c6c", "", None, "00", "ff", "f09f9880", "c3", "312e35", "74727565", "e697", "20", "c3a4"]),
    "day": ("DATE", ["2024-02-29", "1970-01-01", None, "0001-01-01", "9999-12-31", "2021-01-03", "2020-12-31", "1582-10-15", "1899-12-31", "2026-03-29", "2000-01-01", "2023-01-01"]),
    "ts": ("TIMESTAMP(3)", ["2026-03-29 02:30:05.678", "1970-01-01 00:00:00.000", "1969-12-31 23:59:59.999", None, "9999-12-31 23:59:59.999", "0001-01-01 00:00:00.000", "2024-02-29 12:00:00.000", "2024-12-29 20:55:30.100", "2021-01-03 00:00:00.001", "1900-01-01 13:14:15.016", "2000-01-01 23:00:00.000", "2023-12-31 11:59:59.500"]),
    "ts6": ("TIMESTAMP(6)", ["2026-03-29 02:30:05.678901", "1970-01-01 00:00:00.000001", "1969-12-31 23:59:59.999999", "2024-02-29 12:00:00", None, "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "2024-12-29 20:55:30.1", "2021-01-03 00:00:00.001", "1900-01-01 13:14:15.016", "2000-01-01 23:00:00", "2023-12-31 11:59:59.5"]),
    "lz": ("TIMESTAMP_LTZ(3)", ["2026-03-29 02:30:05.678", "1970-01-01 00:00:00.000", "1969-12-31 23:59:59.999", "2024-02-29 12:00:00.000", "2001-01-01 01:01:01.001", None, "2024-12-29 20:55:30.100", "2021-01-03 00:00:00.001", "1900-01-01 13:14:15.016", "2000-01-01 23:00:00.000", "2023-12-31 11:59:59.500", "0001-01-01 00:00:00.000"]),
    "pattern": (_T, ["yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd", "HH:mm", "yyyy/MM/dd", None, "YYYY-MM-dd", "dd.MM.yyyy", "E, d MMM yyyy", "yyyy-MM-dd'T'HH:mm:ss.SSS", "q", "D", "yyMMdd"]),
    "time_text": (_T, ["2024-02-29 12:34:56", "2024-02-29", "10:00", "2024/02/03", "nonsense", "2024-13-01", "29.02.2024", None, "2024-02-29T12:34:56.789", "", "2020", "2023-02-29 00:00:00"]),
    "time_text2": (_T, ["2024-02-29 12:34:56.123456", "2024-2-9", "10:00:00", "2024-02-29 12", "2020-01-01T10:00:00+05:00", "0001-01-01", "99999-01-01", "-0001-01-01", " 2024-01-01 ", "2024-01-01 00:00", "1969-12-31 23:59:59", "9999-12-31 23:59:59.999"]),
    "seconds": ("BIGINT", [44, 0, -1, None, 1700000000, -62135596800, 253402300799, 86399, 86400, 951782400, 1e3, -86401]),
    "zone": (_T, ["UTC", "Europe/Berlin", "America/New_York", "nope", "GMT+3", "Asia/Tokyo", "UTC", None, "+02:00", "PST", "UTC", "Z"]),
    "zone2": (_T, ["Asia/Tokyo", "UTC", "UTC", "UTC", "UTC", "America/Los_Angeles", None, "UTC", "UTC", "UTC", "Europe/Berlin", "UTC"]),
    "json": (_T, ['{"a": 1, "b": {"c": [1, 2, "x"]}}', None, "", "[1, 2]", "nonsense", '{"a": null}', '{"a": true, "b": 1.50}', '"text"', '{"a": "日\\u00e4\\n"}', "{", '{"a": {"x": 1}, "a b": 2}', "17"]),
    "bool_text": (_T, ["true", "FALSE", " true ", "t", "no", "1", "0", None, "yes", "on", "TRUE", "tru"]),
    "flag": ("BOOLEAN", [True, False, None, True, False, True, False, True, False, True, False, False]),
}
ARRAYS: dict[str, tuple[str, list[Any]]] = {
    "texts": ("ARRAY<STRING>", [["a", "b", "c"], ["b", None], None, [""], ["x", "x", "l"], ["日", "a", "ß"], ["l", "oo", "bXc"], ["1", "10", "2"], [None], ["z"], ["&", "B", "a"], ["a", "A", "a", None, "c"]]),
    "texts2": ("ARRAY<STRING>", [["b", "d", "e"], ["b", None], ["a"], None, ["l"], ["a", "b", "c"], ["l", "l", "x"], ["10", "2", "3"], ["q"], ["z", "z"], ["B", "a", None], ["a", "A", "b", "c", "d"]]),
    "integers": ("ARRAY<INT>", [[3, 1, 2], [1, None], None, [0], [2, 2], [-1, 5], [2147483647, -2147483648], [10, 9, 8, 7], [None], [7], [1, 3, 1], [5, None, 4]]),
    "one": ("ARRAY<STRING>", [["a"], [None], None, [""], ["日"], ["x", "y"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
    "map": ("MAP<STRING, STRING>", [{"a": "1", "b": "2"}, {"a": None}, None, {"": ""}, {"x": "1"}, {"日": "本"}, {"l": "hello"}, {"k": "v", "k2": "v2"}, {"oo": "z"}, {"1": "1"}, {"&": "#"}, {"a": "3", "z": "26"}]),
    "map2": ("MAP<STRING, STRING>", [{"b": "3", "c": "4"}, {"a": "1"}, {"q": "1"}, None, {"x": None}, {"日": "語"}, {"m": "n"}, {"k": "w"}, {"p": "z"}, {"2": "1"}, {"&": "!"}, {"b": "3", "a": "26"}]),
}
# fmt: on

_BINARIES = ("BYTES", "BINARY(2)", "VARBINARY(4)")
_FIELD = re.compile("{(" + "|".join(COLUMNS | ARRAYS) + ")}")
NO_CONSTANTS = ("NaN", "Infinity", "-Infinity")
"""Flink's planner folds constants and cannot represent these."""


def column(name: str, row: int) -> str:
    """A value as Flink SQL has it, with its type."""
    type, values = (COLUMNS | ARRAYS)[name]
    value = values[row]
    if value is None:
        return f"CAST(NULL AS {type})"
    if name in ARRAYS:
        made = _constructed(value)
        if made in ("ARRAY[NULL]", "MAP['a', NULL]", "MAP['x', NULL]"):  # Flink takes no NULL alone
            made = made.replace("NULL", "CAST(NULL AS STRING)")
        return f"CAST({made} AS {type})"
    if type in _BINARIES:
        return f"CAST(X'{value}' AS {type})"
    if isinstance(value, bool):
        return str(value).upper()
    text = str(value).replace("'", "''")
    if type == _T:
        return f"CAST('{text}' AS STRING)"
    return (
        f"CAST('{text}' AS {type})"
        if not isinstance(value, (int, float))
        else f"CAST({int(value)} AS {type})"
    )


def literal(name: str, row: int) -> str:
    """A value as a user writes it."""
    type, values = (COLUMNS | ARRAYS)[name]
    value = values[row]
    if type == _T and value is not None:
        return "'" + str(value).replace("'", "''") + "'"
    if type == "INT" and value is not None:
        return str(value)
    return column(name, row)


def _constructed(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return f"MAP[{', '.join(_constructed(part) for pair in value.items() for part in pair)}]"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_constructed, value))}]"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def columns() -> str:
    """The columns of the table `inputs`, as its CREATE TABLE has them."""
    return "rid INT, " + ", ".join(f"c_{name} {type}" for name, (type, _) in (COLUMNS | ARRAYS).items())


def documents() -> Iterator[str]:
    """The rows of the table `inputs`, as Flink's json format reads them."""
    for row in range(ROWS):
        values = {f"c_{name}": _in_json(type, of[row]) for name, (type, of) in (COLUMNS | ARRAYS).items()}
        yield json.dumps({"rid": row, **values}, ensure_ascii=False)


def _in_json(type: str, value: Any) -> Any:
    if value is None:
        return None
    if type in _BINARIES:
        return base64.b64encode(bytes.fromhex(value)).decode()
    return (
        f"{value}Z" if type.startswith("TIMESTAMP_LTZ") else int(value) if isinstance(value, float) else value
    )


_NUMBERS = ("i", "t", "h", "l", "f", "d", "m", "m2", "n0")
_SECOND = {
    **{"text": "text2", "i": "i2", "l": "l2", "d": "d2", "count": "count2"},
    **{"texts": "texts2", "map": "map2", "zone": "zone2", "b": "b2"},
}
_KINDS: dict[str, tuple[str, ...]] = {
    "number": _NUMBERS,
    "exact": ("t", "i", "l", "m", "n0", "h"),
    "real": ("d2", "d", "i", "m", "t", "h", "l", "f"),
    "count": ("count", "count_t", "count_h"),
    "seconds": ("seconds", "i", "t", "h"),
    "moment": ("ts", "ts6", "lz"),
    "day": ("day", "ts", "lz"),
    "time_text": ("time_text", "time_text2"),
    "integer": ("integer", "i", "t", "h"),
    "literal": (),
    "texts": ("texts", "integers"),
    "item": ("text", "i"),
    "urlkey": ("urlkey",),
}
_CONSTANT = ("regex", "pattern", "digits", "zone", "charset", "bits", "group", "flag")
"""Kinds that Spark takes as constants only, so that each of their values is tried."""
_OTHERS = {
    "day": "DATE '1970-01-01'",
    "ts": "{ts6}",
    "ts6": "TIMESTAMP '2024-02-29 12:00:00'",
    "lz": "{lz}",
    "b": "{b2}",
    "bytes": "X'00'",
    "bi": "{vb}",
    "vb": "{bytes}",
    "ch": "{vc}",
    "vc": "{text}",
    "texts": "{texts2}",
    "map": "{map2}",
}
_LITERALS = {"STR_TO_MAP": ["',', '='", "';', ':'"], "TO_TIMESTAMP_LTZ": ["0", "3"]}
_PATHS = ("'$.a'", "'lax $.b.c[0]'", "'strict $.a'", "'$'", "'$.a.x'", "'$[1]'", "'$[''a b'']'", "'$.b.c[*]'")
_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_PARTS = (
    *("DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH", "MILLISECOND", "MICROSECOND", "NANOSECOND"),
    *("DECADE", "CENTURY", "MILLENNIUM"),
)
_CAST_TO = (
    *(
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(5, 1)",
        "DECIMAL(38, 10)",
    ),
    *("STRING", "VARCHAR(3)", "CHAR(4)", "BYTES", "DATE", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)"),
    *("TIMESTAMP_LTZ(0)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)"),
)
_CAST_FROM = (
    *("text", "numeral", "bool_text", "time_text", "time_text2", "ch", "vc", "b", *_NUMBERS),
    *("bytes", "bi", "vb", "day", "ts", "ts6", "lz", "texts", "map"),
)


def _family(type: str) -> str:
    """Of types that Flink casts to each other. Each is cast to text and from text."""
    name = re.split("[(<]", type)[0]
    if name in (_T, "CHAR", "VARCHAR"):
        return "text"
    if name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return "time"
    if name in ("BYTES", "BINARY", "VARBINARY"):
        return "bytes"
    return name if name in ("ARRAY", "MAP") else "number"


def _casts() -> Iterator[str]:
    every = COLUMNS | ARRAYS
    for verb, source, to in itertools.product(("CAST", "TRY_CAST"), _CAST_FROM, _CAST_TO):
        families = {_family(every[source][0]), _family(to)}
        if len(families) == 1 or _family(to) == "text" or ("text" in families and source not in ARRAYS):
            yield f"{verb}({{{source}}} AS {to})"


_TWICE = "MAP_FROM_ARRAYS(ARRAY[{text}, {text}], ARRAY[{i}, {i2}])"
_MAPS = (
    *(_TWICE, f"CARDINALITY({_TWICE})", f"MAP_KEYS({_TWICE})"),
    *(
        f"MAP_FROM_ARRAYS(ARRAY[{keys}], ARRAY[{{i}}, {{i2}}])"
        for keys in ("{text}, {text2}", "{d}, {d2}", "{d}, {d}")
    ),
    "MAP_FROM_ARRAYS(ARRAY[{i}, {i2}], ARRAY[{text}, {text2}])",
    *(
        f"MAP_FROM_ARRAYS(ARRAY[{keys}], ARRAY[1, 2])"
        for keys in ("{d}, -{d}", "{bytes}, {bytes}", "{ts}, {ts}")
    ),
    *("MAP_FROM_ARRAYS({texts}, ARRAY[1])", "MAP_FROM_ARRAYS({texts}, {integers})"),
    "MAP_UNION(MAP_FROM_ARRAYS(ARRAY[{d}], ARRAY[1]), MAP_FROM_ARRAYS(ARRAY[{d}], ARRAY[5]))",
    *("MAP_UNION({map}, MAP_FROM_ARRAYS(ARRAY[{text}], ARRAY[{text2}]))", "MAP_UNION({map}, {map2}, {map})"),
)


_CASTS = (
    *(f"CAST({{texts}} AS ARRAY<{to}>)" for to in ("INT", "VARCHAR(1)", "CHAR(2)")),
    *(
        f"CAST({{integers}} AS ARRAY<{to}>)"
        for to in ("TINYINT", "STRING", "BIGINT", "DECIMAL(5, 1)", "BOOLEAN", "DATE")
    ),
    *(
        f"CAST(ARRAY[{{{item}}}] AS ARRAY<{to}>)"
        for item, to in (
            *(("numeral", "INT"), ("l", "INT"), ("d", "INT"), ("m", "INT"), ("b", "INT"), ("f", "DOUBLE")),
            *(("d", "DECIMAL(5, 1)"), ("m", "DECIMAL(5, 1)"), ("m", "STRING"), ("b", "STRING")),
            *(("bytes", "STRING"), ("ts6", "STRING"), ("ts6", "TIMESTAMP(3)"), ("ts6", "DATE")),
            *(("time_text", "DATE"), ("texts", "ARRAY<INT>"), ("map", "MAP<STRING, INT>")),
        )
    ),
    *("CAST(ARRAY[{l}, NULL] AS ARRAY<SMALLINT>)", "CAST(ARRAY[{l}] AS MAP<INT, INT>)"),
    *(
        "CAST(ARRAY[ROW({l}, {numeral})] AS ARRAY<ROW<a INT, b INT>>)",
        "CAST(ARRAY[{numeral}] AS ARRAY<INT>)[1]",
    ),
    *("TRY_CAST(ARRAY[{numeral}, '1'] AS ARRAY<INT>)", "TRY_CAST(ARRAY[{d}] AS ARRAY<DECIMAL(5, 1)>)"),
    *("TRY_CAST(ARRAY[{time_text}, '2024-01-01'] AS ARRAY<DATE>)", "TRY_CAST(ARRAY[{l}] AS ARRAY<INT>)"),
    *(
        "CAST({map} AS MAP<STRING, VARCHAR(1)>)",
        "CAST({map} AS MAP<STRING, INT>)",
        "CAST({map} AS ARRAY<STRING>)",
    ),
    *("TRY_CAST({map} AS MAP<STRING, INT>)", "CAST({map} AS MAP<BYTES, STRING>)"),
    "CAST(MAP_FROM_ARRAYS(ARRAY[{l}], ARRAY[{m}]) AS MAP<TINYINT, INT>)",
    "CAST(MAP_FROM_ARRAYS(ARRAY[{i}, {i2}], ARRAY[1, 2]) AS MAP<TINYINT, STRING>)",
    *("CAST(ROW({l}, {m}) AS ROW<a INT, b STRING>)", "CAST(ROW({l}, {numeral}) AS ROW<a INT, b INT>)"),
    *("TRY_CAST(ROW({l}, {numeral}) AS ROW<a INT, b INT>)", "CAST(ROW({l}) AS ROW<a INT, b INT>)"),
    *(
        "CAST(ROW({texts}, {i}) AS ROW<a ARRAY<INT>, b STRING>)",
        "ARRAY_JOIN(CAST({integers} AS ARRAY<STRING>), ',')",
    ),
)


_TIME_TEXTS = (
    *("TRY_CAST('999-1-1 00:00:00' AS TIMESTAMP(3))", "TRY_CAST('2023-04-31 10:00:00' AS TIMESTAMP(3))"),
    *("TRY_CAST('2023-04-32 10:00:00' AS TIMESTAMP(3))", "TRY_CAST('2023-02-29' AS DATE)"),
    *("TRY_CAST('99-2-3' AS DATE)", "TRY_CAST('999-12' AS DATE)", "TO_TIMESTAMP('2023/02/29', 'yyyy/MM/dd')"),
    *("TO_TIMESTAMP('2023-04-31 10:00:00')", "TO_TIMESTAMP('999-1-1 00:00:00')"),
    *("TO_TIMESTAMP(' 2024-02-29 1:2:3.5 ', 'dd.MM.yyyy')", "TO_TIMESTAMP('999-1-1', 'dd.MM.yyyy')"),
    *(
        f"UNIX_TIMESTAMP('{text}', '{pattern}')"
        for text, pattern in (
            *(("29/Feb/2024:12:34:56 +0100", "dd/MMM/yyyy:HH:mm:ss Z"), ("02:03 PM", "hh:mm a")),
            *(("29/Feb/2024:12:34:56 +0100 x", "dd/MMM/yyyy:HH:mm:ss Z"), ("02:03 PM.", "hh:mm a")),
            *(("2024-02-29 1:2:3", "yyyy-MM-dd HH:mm:ss"), ("24-02-29", "yyyy-MM-dd")),
            *(("2024-02-29T10:11:12Z", "yyyy-MM-dd''T''HH:mm:ss"), ("20240229x", "yyyyMMdd")),
            *(("2024-02-29 25:61:61.999", "yyyy-MM-dd HH:mm:ss"), ("2024 -1 0", "yyyy MM dd")),
            *(
                ("1969-12-31 23:59:59.500", "yyyy-MM-dd HH:mm:ss.SSS"),
                ("1969-12-31 23:59:59.5", "yyyy-MM-dd HH:mm:ss.S"),
            ),
        )
    ),
    *(
        f"TO_DATE('{text}', 'yyyyMMdd')"
        for text in ("20240229", "202402291", "2024022", "2024 229", "20241301")
    ),
    *("TO_DATE('2024-02-29 25:00', 'yyyy-MM-dd HH:mm')", "TO_DATE('-1', 'H')"),
    *(
        "DATE_FORMAT('2024-2-9 1:2:3.9', 'yyyyMMdd HHmmss SSS')",
        "DATE_FORMAT('2024-02-29 25:00:00 x', 'yyyyMMdd HH')",
    ),
)


def templates() -> Iterator[str]:
    """Expressions whose columns are in braces."""
    for signature in SIGNATURES:
        yield from _calls(signature)
    yield from _operators()
    yield from _casts()
    yield from _TIME_TEXTS
    yield from (f"TRY_CAST('{text}' AS DECIMAL(5, 1))" for text in ("x", "T", "%", "-", " t", "xy", "\u00e4"))
    yield from (
        "MAP['a', {i}, {text}, {i2}]",
        "MAP[{text}, {d}, {text2}, 1]['l']",
        "MAP[{text2}, ARRAY[{i}, 1]]",
    )
    yield from (
        "OVERLAY({text} PLACING {text2} FROM 2 FOR 2147483647)",
        "SPLIT_INDEX({text}, {part}, 2147483647)",
    )
    yield from ("ARRAY_SLICE({texts}, 2147483647, 2147483647)", "ARRAY_SLICE({texts}, 1, 2147483647)")
    yield from ("SUBSTRING({text}, 2, 2147483647)", "LEFT({text}, 2147483647)", "RIGHT({text}, 2147483647)")
    yield from ("CARDINALITY(MAP[{i}, {text}, {i2}, {text2}])", "MAP[{i}, {m}, {l}, {i2}]")
    yield from ("CAST({m} * {m2} AS STRING)", "1 / ({m} * {m})", "CEILING({m}) / {m}", "{m} * {i} / {m2}")
    yield from ("COALESCE({n0}, {m2})", "CASE WHEN {b} THEN {n0} ELSE {m2} END", "IF({b}, {n0}, {m2})")
    yield from ("GREATEST({n0}, {m2})", "IFNULL({n0}, {m2})", "ARRAY[{n0}, {m2}]", "ARRAY[{i}, {m2}]")
    yield from ("TO_TIMESTAMP_LTZ({seconds})", "TO_TIMESTAMP_LTZ({time_text})")
    yield from (
        f"{{json}} IS {test}" for test in ("JSON", "JSON OBJECT", "JSON ARRAY", "JSON SCALAR", "NOT JSON")
    )


def _calls(signature: Signature) -> Iterator[str]:
    name = signature.name
    for length in range(signature.least + signature.is_open, len(signature.kinds) + 1 + signature.is_open):
        chosen = signature.kinds_of(length)
        if "unit" in chosen or "value" in chosen:
            continue  # among the operators, or tried with other kinds
        if "path" in chosen:
            for path in _PATHS:
                yield f"{name}({{json}}, {path})"
            continue
        if "literal" in chosen:
            place = chosen.index("literal")
            for literals in _LITERALS[name]:
                for first in itertools.product(*(_KINDS.get(k, (k,)) for k in chosen[:place])):
                    yield f"{name}({', '.join(f'{{{f}}}' for f in first)}, {literals})"
            continue
        alternatives = max((_KINDS.get(k, (k,)) for k in chosen), key=len, default=())
        for n in range(max(1, len(alternatives)) if name != "ARRAY_JOIN" else 1):
            seen: set[str] = set()
            arguments = []
            for kind in chosen:
                options = _KINDS.get(kind, (kind,))
                found = options[min(n, len(options) - 1)]
                found = _SECOND.get(found, found) if found in seen else found
                seen.add(found)
                arguments.append(found)
            yield f"{name}({', '.join(f'{{{a}}}' for a in arguments)})"
            if set(chosen) & set(_CONSTANT):
                for row in range(ROWS):
                    yield f"{name}({', '.join(_constant(a, row) for a in arguments)})"


def _constant(argument: str, row: int) -> str:
    return literal(argument, row) if argument.rstrip("2") in _CONSTANT else f"{{{argument}}}"


def _operators() -> Iterator[str]:
    pairs = [
        *(("t", "t"), ("t", "i"), ("i", "i2"), ("l", "l2"), ("i", "l"), ("d", "d2"), ("f", "d"), ("f", "f")),
        *(
            ("m", "m"),
            ("m", "m2"),
            ("n0", "n0"),
            ("i", "m"),
            ("m", "d"),
            ("l", "m2"),
            ("m2", "m"),
            ("h", "i2"),
        ),
        *(("i", "h"), ("l", "t"), ("f", "m"), ("m", "f"), ("d", "f")),
    ]
    for (left, right), sign in itertools.product(pairs, "+-*/%"):
        yield f"{{{left}}} {sign} {{{right}}}"
    for number in _NUMBERS:
        yield f"-{{{number}}}"
    compared = [
        *(("text", "text2"), ("i", "i2"), ("l", "m"), ("d", "d2"), ("f", "d"), ("b", "b2"), ("day", "ts")),
        *(("ts", "ts6"), ("bytes", "bytes"), ("m", "m2"), ("i", "d")),
        *(
            ("t", "h"),
            ("h", "t"),
            ("d", "f"),
            ("day", "day"),
            ("lz", "ts"),
            ("ts", "lz"),
            ("vc", "ch"),
            ("bi", "vb"),
            ("m", "l"),
            ("texts", "texts2"),
        ),
    ]
    for left, right in compared:
        for sign in ("=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
            yield f"{{{left}}} {sign} {{{right}}}"
    yield from (
        "{i} BETWEEN {i2} AND {count}",
        "{i} NOT BETWEEN {i2} AND {count}",
        "{i} BETWEEN SYMMETRIC {i2} AND {count}",
    )
    yield from (
        "{text} IN ('hello', 'x', '')",
        "{text} NOT IN ('hello', {text2})",
        "{i} IN (5, -7, NULL)",
        "{d} IN (1.5, 2)",
    )
    for pattern in ("'%l%'", "'a_b%'", "'%'", "''", "'_'", "'%!%%' ESCAPE '!'", "'a&b\\c'", "'.*'"):
        yield f"{{text}} LIKE {pattern}"
        yield f"{{text}} NOT LIKE {pattern}"
    yield from ("{b} AND {b2}", "{b} OR {b2}", "NOT {b}")
    for test in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
        yield f"{{b}} IS {test}"
        yield f"{{b}} IS NOT {test}"
    yield from ("{text} IS NULL", "{i} IS NOT NULL")
    yield from ("{text} || {text2}", "{text} || CAST({i} AS STRING)")
    yield from ("CASE WHEN {b} THEN {i} ELSE {l} END", "CASE {text} WHEN 'hello' THEN 1 WHEN '' THEN 2 END")
    yield from (
        "CASE WHEN {b} THEN {m} WHEN {b2} THEN {i} END",
        "IF({b}, {text}, {text2})",
        "IF({b}, {i}, {m})",
        "IF({b}, {i}, {d})",
    )
    for time in ("ts", "ts6", "day", "lz"):
        for unit in ("SECOND", "HOUR", "DAY", "MONTH", "YEAR"):
            yield f"{{{time}}} + INTERVAL '1' {unit}"
            yield f"{{{time}}} - INTERVAL '13' {unit}"
        for length in (
            "'-25' HOUR",
            "'1:30' HOUR TO MINUTE",
            "'-1 2' DAY TO HOUR",
            "'1-2' YEAR TO MONTH",
            "-'1' DAY",
        ):
            yield f"{{{time}}} + INTERVAL {length}"
            yield f"{{{time}}} - INTERVAL {length}"
        for unit in _UNITS:
            yield f"TIMESTAMPADD({unit}, {{count}}, {{{time}}})"
            yield f"TIMESTAMPDIFF({unit}, {{{time}}}, TIMESTAMP '2024-02-29 12:00:00')"
            yield f"FLOOR({{{time}}} TO {unit})"
            yield f"CEIL({{{time}}} TO {unit})"
        for unit in (*_UNITS, *_PARTS):
            yield f"EXTRACT({unit} FROM {{{time}}})"
    yield from (f"TIMESTAMPADD(HOUR, {{{count}}}, {{ts}})" for count in ("count_t", "count_h"))
    yield from (f"TIMESTAMPDIFF({unit}, {{ts}}, {{ts6}})" for unit in _UNITS)
    yield from (f"TIMESTAMPDIFF({unit}, {{day}}, {{ts}})" for unit in ("MONTH", "QUARTER", "YEAR"))
    yield from (
        f"TIMESTAMPDIFF({unit}, {{{time}}}, {{day}})" for unit in ("DAY", "MONTH") for time in ("day", "ts")
    )
    yield from ("POSITION({text2} IN {text})", "TRIM({text})", "TRIM(BOTH {chars} FROM {text})")
    yield from ("TRIM(LEADING {chars} FROM {text})", "TRIM(TRAILING {chars} FROM {text})")
    yield from (
        "OVERLAY({text} PLACING {text2} FROM {count})",
        "OVERLAY({text} PLACING {text2} FROM {count} FOR {count2})",
    )
    yield from ("SUBSTRING({text} FROM {count})", "SUBSTRING({text} FROM {count} FOR {count2})")
    yield from (
        "{texts}[1]",
        "{texts}[2]",
        "{texts}[4]",
        "{map}['a']",
        "{map}[{text2}]",
        "{integers}[{count}]",
    )
    yield from ("ROW({i}, {text})", "ARRAY[{i}, {i2}]", "ARRAY[{text}, {text2}]", "MAP[{text2}, {i}]")
    yield from ("IS_ALPHA('äö')", "IS_DIGIT('١')", "INSTR({text}, {text2}, 2)", "INSTR({text}, 'o', 1, 2)")
    yield from (
        "SUBSTR({text}, -2)",
        "SUBSTRING({text}, 2, 3)",
        "LPAD({text}, 8, '*')",
        "TO_BASE64(REPEAT({text}, 20))",
    )
    yield from (
        "DATE_FORMAT({ts}, 'yyyy-MM-dd HH:mm:ss.SSS')",
        "SPLIT({text}, ',')",
        "REPLACE({text}, 'o', '0')",
    )
    yield from ("CAST(SIGN({i}) AS STRING)", "CAST({i} + {l} AS STRING)", "CAST({m} * {m} AS STRING)")
    yield from _MAPS
    yield from _CASTS
    yield from (f"TRY_{cast}" for cast in _CASTS if cast.startswith("CAST(") and cast.endswith(")"))
    for value in ("day", "ts", "ts6", "lz", "b", "bytes", "bi", "vb", "ch", "vc", "texts", "map"):
        other = _OTHERS[value]
        yield from (f"COALESCE({{{value}}}, {other})", f"IFNULL({{{value}}}, {other})")
        if value != "map":
            yield f"NULLIF({{{value}}}, {other})"
    yield from (
        "TO_TIMESTAMP({time_text}) IS NULL",
        "UPPER(SUBSTRING({text}, {count})) || '-' || CAST({m} AS STRING)",
    )


def expressions(seed: int = 0) -> list[str]:
    """All templates over the columns, and drawn rows of them as a user writes constants: one of each, two of what is no
    cast, and so many that each of `key_of` has eight if it has so many; then drawn expressions in one another,
    comparisons of each pair of types, and texts at their limits."""
    found: dict[str, None] = {}
    of_key: dict[str, set[str]] = defaultdict(set)
    others: dict[str, list[tuple[str, int]]] = defaultdict(list)
    every = COLUMNS | ARRAYS
    for template in templates():
        draw = random.Random(f"{seed} {template}")  # another template changes no draw
        names, key = _FIELD.findall(template), key_of(template)
        found[_FIELD.sub(r"c_\1", template)] = None
        rows = [r for r in range(ROWS) if not any(every[n][1][r] in NO_CONSTANTS for n in names)]
        drawn = draw.sample(rows, 0 if not names else 1 if "CAST(" in template else 2)
        of_key[key] |= {_filled(template, row) for row in drawn}
        found |= dict.fromkeys(_filled(template, row) for row in drawn)
        others[key] += ((template, row) for row in rows if names)
    for key, left in others.items():
        random.Random(f"{seed} {key}").shuffle(left)
        for template, row in left:
            if len(of_key[key]) < LITERALS:
                of_key[key].add(_filled(template, row))
        found |= dict.fromkeys(sorted(of_key[key]))
    return list(found | dict.fromkeys([*nested(_NESTED, seed), *comparisons(), *limits()]))


def key_of(template: str) -> str:
    """The function, the operator or the pair of types of a cast, which has literals enough."""
    every = COLUMNS | ARRAYS
    is_cast = template.startswith(("CAST", "TRY"))
    plain = template if is_cast else re.sub(r"CAST\(NULL AS [^)]*\)+", "{}", template)
    if "CAST(" in plain:
        return re.sub(r"\([\d, ]+\)", "", _FIELD.sub(lambda name: every[name[1]][0], plain))
    return re.sub(r"{\w+}|'(?:[^']|'')*'|\b\d+\b|\b(?:TRUE|FALSE)\b", "{}", plain)


def _filled(template: str, row: int) -> str:
    return _FIELD.sub(partial(_literal_of, row=row), template)


def _literal_of(name: re.Match[str], row: int) -> str:
    return literal(name[1], row)
