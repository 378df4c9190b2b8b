"""Texts at the limits of each cast, and arguments at the limits of functions of texts."""

from __future__ import annotations

from collections.abc import Iterator

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
_MORE_TIMES = (
    "2024-02-30 12:00:00", "2023-02-29 12:00:00", "2024-01-02 25:61:61", "2024-01-02 10:00:-5", "2024-1-2 1:2:3.5",
    "2024-04-31 00:00:00", "2024-00-01 00:00:00", "2024-01-00 00:00:00", "24-01-02 00:00:00", "2024-01-02 100:0:0",
    "2024-02-30 12:30", "2024/02/30 12:30", "2024/1/2 3:4", "2024/02/29 12:30", "2024/13/01 00:00", "20240230123000",
    "20230229000000", "20241301000000", "20240102030405", "20240102030405999", "2024-02-31", "2024/02/31",
    "1969-12-31 23:59:59.5", "1969-12-31 23:59:59.9996", "2024-02-30 23:59:59.123", "2024-01-02 10:00:00.1",
    "2024-01-02 10:00:00.123456", "2024-01-02 10:00:00,123",
)
_FORMATS = (
    "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd", "yyyy/MM/dd HH:mm", "yyyyMMddHHmmss",
    "yyyy-M-d H:m:s", "yyyy/MM/dd",
)
_DIGITS = tuple(f"{name}({n})" for name in ("TIMESTAMP", "TIMESTAMP_LTZ") for n in (0, 1, 2, 3, 6))
_FRACTIONS = (
    "1969-12-31 23:59:58.5", "1969-12-31 23:59:58.999999", "1969-12-31 23:59:58.0006", "1969-12-31 24:00:00.6",
    "2024-01-02 10:00:58.999999", "1969-02-30 23:59:58.96", "1969-12-31 23:59:58",
)
_BY_FORMATS = (
    "CAST('2024-02-30' AS DATE)",
    "CAST('2024-02-30 10:00:00' AS TIMESTAMP(3))",
    "CAST('2024-02-31' AS TIMESTAMP(3))",
    "CAST('2023-02-29 24:00:00' AS TIMESTAMP(3))",
    "CAST('2024-01-02 24:00:00.00' AS TIMESTAMP_LTZ(3))",
    "CAST('2024-02' AS DATE)",
    "CAST('2024' AS DATE)",
    "CAST('2024-01-02 10:00:00.' AS TIMESTAMP(3))",
    "CAST('2024-1-2 1:2:3' AS TIMESTAMP(3))",
    "CAST('2024-2-9' AS DATE)",
    "CAST('9999-12-31 24:00:00' AS TIMESTAMP(3))",
    "TO_TIMESTAMP('30.02.2024' || REPEAT('', rid), 'dd.MM.yyyy')",
    "TO_TIMESTAMP('29 Feb 2023' || REPEAT('', rid), 'dd MMM yyyy')",
    "TO_TIMESTAMP('31.04.2024 24:00' || REPEAT('', rid), 'dd.MM.yyyy HH:mm')",
    "TO_TIMESTAMP('31.04.2024 24:01' || REPEAT('', rid), 'dd.MM.yyyy HH:mm')",
    "TO_TIMESTAMP('20240230' || REPEAT('', rid), 'yyyyMMdd')",
    "TO_TIMESTAMP('2024-02-30T12:00:00' || REPEAT('', rid), 'yyyy-MM-dd''T''HH:mm:ss')",
    "TO_TIMESTAMP('2024-02-30 12:00:00.1234' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss.SSSS')",
    "TO_TIMESTAMP('2024-02-30 12:00:00.1' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss.S')",
    "TO_TIMESTAMP('2024-02-30 12:00:00.12' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss.S')",
    "TO_TIMESTAMP('2024-2-30 2:0:0' || REPEAT('', rid), 'yyyy-M-d H:m:s')",
    "TO_TIMESTAMP('2024-02-30 24:00:00.000' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss.SSS')",
    "TO_TIMESTAMP('2024-02-30 24:00:00.100' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss.SSS')",
    "TO_TIMESTAMP('+202-1-2' || REPEAT('', rid), 'yyyy-MM-dd')",
    "TO_TIMESTAMP('2024-+1-+2 +1:+2:+3' || REPEAT('', rid), 'yyyy-MM-dd')",
    "TO_TIMESTAMP('2024-01-02 10:00:00.5 ' || REPEAT('', rid), 'yyyy-MM-dd')",
    "TO_TIMESTAMP('2024-01-02 10:00:00.1234567899' || REPEAT('', rid), 'yyyy-MM-dd')",
    "TO_TIMESTAMP('2024-01-02 10:00:00.+5' || REPEAT('', rid), 'yyyy-MM-dd')",
    "TO_TIMESTAMP('2024-01-02 10:00:00.5x' || REPEAT('', rid), 'yyyy-MM-dd')",
    "TO_TIMESTAMP('12:30 2024-02-30' || REPEAT('', rid), 'HH:mm yyyy-MM-dd')",
    "TO_TIMESTAMP('2024-02' || REPEAT('', rid), 'yyyy-MM')",
    "TO_TIMESTAMP('2024-12-31 23:59:60' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss')",
    "TO_TIMESTAMP('9999-12-31 24:00:00' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss')",
    "UNIX_TIMESTAMP('2024010203040' || REPEAT('', rid), 'yyyyMMddHHmmss')",
    "UNIX_TIMESTAMP('2024 1 2 3 4 5' || REPEAT('', rid), 'yyyyMMddHHmmss')",
    "UNIX_TIMESTAMP('2024010' || REPEAT('', rid), 'yyyyMMdd')",
    "UNIX_TIMESTAMP('2024-1-2' || REPEAT('', rid), 'yyyyMMdd')",
    "UNIX_TIMESTAMP('2024-1' || REPEAT('', rid), 'yyyyMMdd')",
    "UNIX_TIMESTAMP('20240102123' || REPEAT('', rid), 'yyyyMMddHHmm')",
    "UNIX_TIMESTAMP('2024010212 3' || REPEAT('', rid), 'yyyyMMddHHmm')",
    "UNIX_TIMESTAMP('20240102-1-2' || REPEAT('', rid), 'yyyyMMddHHmm')",
    "UNIX_TIMESTAMP(' 2024010212-3' || REPEAT('', rid), 'yyyyMMddHHmm')",
    "UNIX_TIMESTAMP('2024-01-02 10:00:00.123456789' || REPEAT('', rid), 'yyyy-MM-dd HH:mm:ss.SSS')",
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
    for text in (*_TIMES, *_MORE_TIMES):
        made = f"'{text}' || REPEAT('', rid)"
        for name in ("TO_TIMESTAMP", "TO_DATE", "UNIX_TIMESTAMP"):
            yield from (f"{name}({made}, '{format}')" for format in _FORMATS)
        yield f"DATE_FORMAT({made}, 'yyyy-MM-dd HH:mm:ss.SSS')"
        yield f"CONVERT_TZ({made}, 'UTC', 'Asia/Tokyo')"
    for text in _FRACTIONS:
        yield from (f"TRY_CAST('{text}' || REPEAT('', rid) AS {type})" for type in _DIGITS)
        yield from (f"CAST('{text}' AS {type})" for type in _DIGITS)
    yield from _BY_FORMATS
    for url in _URLS:
        yield from (f"PARSE_URL('{url}' || REPEAT('', rid), '{part}')" for part in _PARTS)
        yield f"PARSE_URL('{url}' || REPEAT('', rid), 'QUERY', 'a')"
    yield from (f"ATAN2({y}, {x})" for y in _ANGLES[:3] for x in _ANGLES)
    yield from _CALLS
