"""Where the bridge reads or writes something else than Flink's formats, for a reason; docs/formats.md shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True)
class Difference:
    """A row of the table, and the vectors that it is about."""

    what: str
    flink: str
    bridge: str
    why: str
    about: re.Pattern[str]
    """Matches the format with its options, the document or the row, `=>`, and what Flink and, after `|`, the bridge
    makes of it."""


def _about(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.DOTALL)


_CDC = r"^(debezium|maxwell|canal|ogg)-json "

DIFFERENCES = (
    Difference(
        "a number that DECIMAL(p, s) has no room for, also after rounding",
        "NULL",
        "a bad record; NULL with `ignore-parse-errors`",
        "a sum without it would be wrong without a word",
        _about(r"\| .*(cannot be read as|out of range of) DECIMAL"),
    ),
    Difference(
        "more digits after the seconds than TIMESTAMP(p) has; a day that its month lacks, such as 2023-02-29, and "
        "24:00:00; in `csv` also DATE before 15 October 1582",
        "kept until the value is first grouped; another day; of the Julian calendar",
        "cut; a bad record; the day of the Gregorian calendar",
        "a Delta table keeps what it is given (docs/adr/056); Spark has no such days",
        _about(
            r"(ts|lz)[03].*=> .*'ns'.*\| .*'us'",
            r"2023-02-29|2024-02-30|24:00:00",
            r"^csv .*(0000-01-01|1582-10-10|-0001-01-01|\+10000-01-01)",
        ),
    ),
    Difference(
        "`csv`: DECIMAL with an exponent or of more than 24 characters, or beside a delimiter above the digits",
        "in quotes",
        "without",
        "later releases of Flink write none, and both read both",
        _about(r"^csv .*'decimal'.*=> b.*[\"'](-?[0-9.E+]+)[\"'].* \| b.(?:.*[,;|])?\1[,;|'\"]"),
    ),
    Difference(
        "digits outside of ASCII as numbers; the number `-0`; a line of `csv` that begins with NUL",
        "digits; -0.0, in CDC formats 0.0; not a number",
        "a bad record; 0.0, in CDC formats -0.0; the number behind it",
        "a check of every document for what nobody writes",
        _about(r"\\xd9\\xa1", r":-0(\.0)?[,}]", r"^csv .*'\\x00"),
    ),
    Difference(
        "`json` with `ignore-parse-errors`: a list, an object or no base64 in place of another value; "
        "with `fail-on-missing-field`: a name twice",
        "no row, or values of the part; no error",
        "NULL for that column; the missing field",
        "Flink's parser loses its place in the document",
        _about(
            r'^json ignore-parse-errors=true .*"\w+":(\[|\{"a":\{)',
            r'^json ignore-parse-errors=true .*"v?y2?":"',
            r"^json ignore-parse-errors=true .*\\u12\"",
            r"^json fail-on-missing-field=true .*(\"id\":1,\"id\"|\"name\":\"a\",\"name\")",
            r'^json .*\{"flag":\[\]\}',
        ),
    ),
    Difference(
        "a number with a point or an exponent as STRING in CDC formats, and in an object as STRING in `json`",
        "shortened: 1.0 is `1`, 100.0 is `1E+2`",
        "as in the document",
        "no digit of the document is lost",
        _about(_CDC + r'.*"s":-?[01]', r'^json .*"s":\{'),
    ),
    Difference(
        "CDC formats: no text as BYTES, no object as MAP, blanks around a text as DECIMAL, an update whose row before "
        "is missing or without the key, of a table with a PRIMARY KEY; `json`: NULL in MULTISET",
        "NULL; no entries; an error; an error, or a row before without a key; an error",
        "a bad record; a bad record; the number; the new row; NULL",
        "a value that is lost without a word is worse than a bad record, and the new row needs no other",
        _about(
            _CDC + r'.*"(y|map|long|money)":',
            r'^json .*"bag":\{"a":(null|"x")',
            r'"before":null.*"op(_type)?":"[uU]".*\(arrow\)$',
            r'^(maxwell|canal)-json (?!.*"old":(?![\[{]*("id":)?(null|\]))).*"type":"(update|UPDATE)".*\(arrow\)$',
        ),
    ),
    Difference(
        "bytes that are no text in UTF-8, or in the charset of `raw`",
        "U+FFFD in `raw` and `avro`; `json` also reads UTF-16; `raw` writes `?`",
        "a bad record; a publish stops",
        "the text would be another one, in the topic and in the table",
        _about(r"\| .*not valid (UTF|US)"),
    ),
    Difference(
        "`json`: a document of no bytes; a list of objects",
        "no row; an error",
        "a bad record; a row for each",
        "docs/adr/028, rule 2; Flink's own other parser reads lists",
        _about(r"^json .* b''=>", r"^json .* b'\[.*\| \[", r"^json ignore-parse-errors=true .* b'\["),
    ),
    Difference(
        "`avro`: bytes behind the record, numbers beyond TINYINT, SMALLINT or TIMESTAMP, in JSON texts as numbers and "
        "the order of a MAP; "
        "`canal-json`: `old` without a column of another row's, no database or table for a pattern",
        "ignored; another number; an error, also for its own `NaN`; by hash; NULL before; skipped",
        "a bad record; a bad record; the number; as in the row; the value; a bad record",
        "the value of the record, or none",
        _about(
            r"^avro .*\| .*(longer than its schema|out of range of)",
            r'^avro encoding=json.*\{"\w+": ?("1"|1|"NaN"|"-?Infinity")\}.*AvroTypeException',
            r"^avro encoding=json.*\[\['b', 1\], \['a', 2\]\]",
            r"^canal-json .*(\"old\":\[\{\"name\":\"x\"\}|is a pattern for it)",
        ),
    ),
)
