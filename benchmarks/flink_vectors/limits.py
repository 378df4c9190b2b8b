"""Texts at the limits of each cast, and arguments at the limits of functions of texts."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["limits"]

_TYPES = (
    *("TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(18, 0)", "DECIMAL(30, 2)"),
    *("BOOLEAN", "DATE", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"),
)
# fmt: off
_NUMBERS = (
    "", " ", ".", "+", "-", "+.", "-.", " . ", "..", "--", "+-", "-5", "+5", "- 5", " 5 ", "5\t", "\t5", "05",
    "1.", ".5", "1.5", "1.2.3", "1.x", ".x", "x", "6C", "66C", "6CC", "C6", "6 C", "6C ", " 6C", "6+", "6.C",
    "6_", "1_0", "12,5", "1-2", "1 2", "6\xe9", "\u0663", "0x10", "1d", "1f", "1D", "1L", "123456789012C",
    "1e3", "1E3", "1e-3", "1e+3", "1e", "1ex", "1e.", "1e+", "1e+x", "1e3x", "1e3.", "e", "-e", "1e400",
    "1.5e2", "NaN", "nan", "NAN", "+NaN", "Infinity", "-Infinity", "inf", "-inf", "INFINITY", "0x1p3",
    "2147483648", "2147483647.9", "-2147483648.9", "9223372036854775807", "123456789012345678C", "0.129C",
    "0.005", "127.9",
)
_BOOLEANS = (
    "true", "TRUE", "\ttrue", "true\t", "t", "T", "yes", "on", "1", "1.0", "0", "no", "n", "tru",
)
_TIMES = (
    "2024", "24", " 2 ", "2 2", " 2 2", "2 x", " 2 2A", "2024-", "2024-1", "2024-1-2", "2024-1-2-3", "20240102",
    "2024-02-30", "2024-13-01", "2024-01-32", "0000-01-02", "12024-01-02", "+2024-01-02", "-2024-01-02",
    "2024-01-02T10:00:00", "2024-01-02 ", " 2024-01-02", " 2024-01-02 x", "\t2024-01-02", "2024-01-02\t",
    "2024-01-02\tx", "\t2024-01-02 x", "2024-01-02x", "2024-01-02 10", "2024-01-02 10:00", "2024-1-2 1:0:0",
    "2024-01-02 24:00:00", "2024-01-02 24:00:00.0", "2024-01-02 24:00:00.5", "2024-01-02 24:30:00",
    "2024-02-30 24:0:0", "2024-01-02 25:00:00", "2024-01-02 23:60:00", "2024-01-02 10:00:60",
    "2024-01-02 10:00:00.", "2024-01-02 10:00:00.1234567891", "2024-01-02 10:00:00Z", "0000-01-02 10:00:00",
    "\t2024-01-02 10:00:00", "2024-01-02 10:00:00 ", "2024-01-02  10:00:00", " 2024-01-02 10:00:00",
)
# fmt: on
_CALLS = (
    *("TRANSLATE(c_text, c_part, CAST(NULL AS STRING))", "TRANSLATE(c_text, '', CAST(NULL AS STRING))"),
    *("TRANSLATE(c_text, 'ab', c_part)", "TRANSLATE(c_text, CAST(NULL AS STRING), c_part)"),
    *("SPLIT_INDEX(c_text, '', 0)", "SPLIT_INDEX(c_text, '', 1)", "SPLIT_INDEX(c_time_text, '', 1)"),
    *("SPLIT_INDEX('a b  c', SUBSTRING(c_text, 100), 2)", "SPLIT_INDEX(c_text, '', c_count)"),
    *("SPLIT(c_text, NULLIF(c_part, c_part))", "SPLIT(SUBSTRING(c_text, 100), c_part)"),
    *("LOCATE(c_part, c_text, -2147483648)", "LOCATE(c_part, c_text, c_i)", "LOCATE(c_part, c_text, c_i2)"),
    *("LOCATE('', c_text, 2)", "LOCATE('', c_text, 100)", "LOCATE('', c_text, 0)", "INSTR(c_text, '', 2)"),
    *("ROUND(ROUND(c_m2), -1)", "ROUND(c_n0, -1)", "TRUNCATE(CAST(c_i AS DECIMAL(10, 0)), -1)"),
    *(
        "SPLIT_INDEX('a\tb\u00a0c\u2003d' || REPEAT('', rid), REPEAT('', rid), rid)",
        "ROUND(CAST(c_i AS DECIMAL(10, 0)))",
    ),
)
_URLS = (
    *(
        "foo://h/x?a=1",
        "HTTP://H/p?a=1#r",
        "file:/a/b",
        "file:///a/b",
        "mailto:a@b",
        "http:",
        "http:/x",
        "http://",
    ),
    *("jar:file:/a!/b", " http://h/p", "http://h/p ", "//h/p", "/p?a=1", "?a=1", "h:80/p", "http://h:x/p"),
    *("http://[::1]:80/p", "http://h/p?a=1&a=2", "http://h/ p", "https://u:p@h:1/p?q#f", "http://h?a=%zz"),
    *(
        "http://h/p?A=1&a=2",
        "http://h?",
        "http://h#",
        "http://日本/p",
        "http://h/p?b&a=",
        "jar:x",
        "http://@h/",
    ),
)
_PARTS = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO")
_ANGLES = ("c_d", "-c_d", "c_f", "c_d2", "0")


def limits() -> Iterator[str]:
    """Expressions over columns: no constants, which Flink's planner computes in another way."""
    for type in _TYPES:
        texts = _BOOLEANS if type == "BOOLEAN" else _TIMES if type.startswith(("DATE", "TIME")) else _NUMBERS
        yield from (f"TRY_CAST('{text}' || REPEAT('', rid) AS {type})" for text in texts)
    for text in _TIMES:
        yield from (
            f"{name}('{text}' || REPEAT('', rid))" for name in ("TO_DATE", "TO_TIMESTAMP", "UNIX_TIMESTAMP")
        )
    for url in _URLS:
        yield from (f"PARSE_URL('{url}' || REPEAT('', rid), '{part}')" for part in _PARTS)
        yield f"PARSE_URL('{url}' || REPEAT('', rid), 'QUERY', 'a')"
    yield from (f"ATAN2({y}, {x})" for y in _ANGLES[:3] for x in _ANGLES)
    yield from _CALLS
