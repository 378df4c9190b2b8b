"""Where the bridge reads or writes something else than Flink's formats, for a reason; docs/formats.md shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A row of the table, and the vectors that it is about."""

    what: str
    flink: str
    bridge: str
    why: str
    about: tuple[re.Pattern[str], ...]
    """Each matches the format with its options, the document or the row, `=>`, and what Flink and, after `|`, the
    bridge makes of it: both outcomes, so that it hides no other one."""

    def is_about(self, text: str) -> bool:
        """Whether the difference is this one."""
        return any(self.matching(text))

    def matching(self, text: str) -> Iterator[re.Pattern[str]]:
        """Yield the patterns that match."""
        return (pattern for pattern in self.about if pattern.search(text))


def _about(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.DOTALL) for pattern in patterns)


_CDC = r"^(?:debezium|maxwell|canal|ogg)-json "
_ROWS, _NONE = r"=> \[\[", r"=> \[\] \| "
_REFUSED = r"=> (?:\{'error'|\[\] )"
_OLD_OF_LAST = r"\S* of (?:\w+, )*(\w+) b'.*\"old\":\[?\{\"\1\":"
"""Of the columns the last one is outside the key, see `vectors.decode`."""
_EMPTY, _ARROW = r"\{'row': \{\}\}", r".*\(arrow\)$"
_ERROR_OF = r" \| \{'error': \"field '[\w.\[\]]+'"

DIFFERENCES = (
    Difference(
        "a number that its type has no room for: DECIMAL(p, s), also after rounding; in `avro` also TINYINT, SMALLINT "
        "and TIMESTAMP",
        "NULL; in `avro` another number",
        "a bad record; NULL with `ignore-parse-errors`",
        "a sum without it would be wrong without a word",
        _about(
            rf"{_ROWS}(?:(?!'decimal'| \| ).)*{_ERROR_OF} cannot be read as DECIMAL",
            rf"^avro .*{_ROWS}.*\| \{{'error': \"field '\w+': out of range of (?:TINYINT|SMALLINT|DECIMAL)",
        ),
    ),
    Difference(
        "more digits after the seconds than TIMESTAMP(p) has",
        "kept until the value is first grouped",
        "cut",
        "a Delta table keeps what it is given (docs/adr/056)",
        _about(
            r"=> .*'(?:ts|lz)0': \{'ns': (\d+)(?!0{9}\})\d{9}\}.* \| .*'us': (?:\1)000000\}",
            r"=> .*'(?:ts|lz)3': \{'ns': (\d+)(?!0{6}\})\d{6}\}.* \| .*'us': (?:\1)000\}",
            r"=> .*'(?:ts|lz)0': \{'ns': -1\}.* \| .*'us': -1000000\}",
            r"=> .*'(?:ts|lz)3': \{'ns': -1\}.* \| .*'us': -1000\}",
        ),
    ),
    Difference(
        "a day that its month lacks, such as 2023-02-29, and 24:00:00; in `csv` also DATE before 15 October 1582 or "
        "with a sign",
        "another day; of the Julian calendar, or an error",
        "a bad record; the day of the Gregorian calendar",
        "Spark has no such days",
        _about(
            rf"(?:2023-02-29|2024-02-30|24:00:00).*{_ROWS}.*'(?:ns|day)': (?!.* \| .*(?:'us'|'day': -?\d))",
            r"^csv .*0000-01-01.*'day': -719162\}.* \| .*'day': -719528\}",
            r"^csv .*1582-10-10.*'day': -141422\}.* \| .*'day': -141432\}",
            rf"^csv .*\+10000-01-01.*=> (?:\{{'error'|\[\['\+I', {_EMPTY}).* \| .*'day': 2932897\}}",
            rf"^csv .*-0001-01-01.*=> (?:\{{'error'|\[\['\+I', {_EMPTY}).* \| .*'day': -719893\}}",
        ),
    ),
    Difference(
        "what is written: in `csv` DECIMAL with an exponent or of more than 24 characters, or beside a delimiter above "
        "the digits; in `avro` the entries of a MAP",
        "in quotes; in the order of their hashes",
        "without; in their own order",
        "both are read alike, and later releases of Flink write no quotes",
        _about(
            r"^csv .*'decimal'.*=> b.*[\"'](-?[0-9.E+]+)[\"'].* \| b.(?:.*[,;|])?\1[,;|'\"]",
            r"^avro .*=> b.*\"a\":\{\"int\":2\},\"b\":\{\"int\":1\}.* \| b.*\"b\":\{\"int\":1\},\"a\":\{\"int\":2\}",
        ),
    ),
    Difference(
        "`json`: a list of objects; with `ignore-parse-errors` a list, an object, no base64 or half an escape in place "
        "of another value; with `fail-on-missing-field` a name twice",
        "an error; no row, or values of the part; no error",
        "a row for each; NULL for that column, or a bad record; the missing field",
        "Flink's parser loses its place in the document; its other one reads lists",
        _about(
            r"^json .* b'\[.*=> \{'error'.* \| \[",
            rf"^json .* b'\[.*{_NONE}\[\[",
            rf"^json ignore-parse-errors=true .* b'\{{\"\w+\":\[.*{_NONE}\[\['\+I', ",
            rf"^json ignore-parse-errors=true .* b'\{{\"v?y2?\":\"[^\"]*\"\}}'{_NONE}\[\['\+I', {_EMPTY}\]\]",
            r"^json ignore-parse-errors=true .*\"sums\":\[\{\}\]\}'=> .*\[None, None\].* \| .*\[None\]",
            r"^json ignore-parse-errors=true .*\"pair\":\{\"a\":\{\"b\":1\}\}\}'=> .*'b': '1'.* \| .*'row': \{\}",
            r"^json ignore-parse-errors=true .*\\u12\"\}'=> \[\['\+I', \{'row': \{\}\}\]\] \| \{'error': 'malformed",
            rf"^json fail-on-missing-field=true .*\"(id|name)\":.*\"\1\":.*{_ROWS}.*{_ERROR_OF} is missing\"",
        ),
    ),
    Difference(
        "an object as STRING: a number with a point or an exponent, and a name twice",
        "shortened: 1.0 is `1`, 100.0 is `1E+2`; the last one",
        "as in the document",
        "no digit of the document is lost",
        _about(
            r"\"(s)\":\{.*=> .*'\1': '\{\"b\":1,\"a\":\[\]\}'.* \| .*'\1': '\{\"b\":1\.0,\"a\":\[\]\}'",
            r"\"(s)\":\{.*=> .*'\1': '\{\"a\":2\}'.* \| .*'\1': '\{\"a\":1,\"a\":2\}'",
        ),
    ),
    Difference(
        "another kind of JSON value: in CDC formats no text as BYTES, no object as MAP; in `avro` a text as a number, "
        "a number as a text",
        "NULL; no entries; an error, also for its own `NaN`",
        "a bad record; a bad record, or NULL with `ignore-parse-errors`; the value",
        "a value that is lost without a word is worse than a bad record",
        _about(
            rf"{_CDC}.*\"v?y2?\":[^\"].*{_ROWS}(?:(?!'bytes'| \| ).)*{_ERROR_OF} cannot be read as (?:BYTES|\w*BINARY)",
            rf"{_CDC}.*\"(map|bag)\":[^{{].*=> .*'\1': \{{'map': \[\]\}}.*{_ERROR_OF} cannot be read as MAP",
            rf"{_CDC}.*\"(map|bag)\":[^{{].*=> .*'\1': \{{'map': \[\]\}}.* \| \[\['[-+]\w', {_EMPTY}\]",
            r"^avro encoding=json.*\{\"\w+\": ?(?:\"1\"|1|\"NaN\"|\"-?Infinity\")\}.*=> \{'error': 'Avro.* \| \[\[",
        ),
    ),
    Difference(
        "CDC formats, an update whose row before is missing, lacks the key, or has a value outside the key that cannot "
        "be read, of a table with a PRIMARY KEY; `canal-json`: an `old` without a column of another row's `old`",
        "an error; a row before without a key; an error; NULL before",
        "the new row; the key; the new row; the value before",
        "the new row needs no other (docs/adr/014), and a key of one column cannot be NULL",
        _about(
            rf"{_CDC}.*\"before\":null.*\"op(?:_type)?\":\"[uU]\".*{_REFUSED}.*\| \[\['\+I', {_ARROW}",
            rf"{_CDC}(?:(?!.*\"old\":\[?\{{)|{_OLD_OF_LAST}).*\"type\":\"(?:update|UPDATE)\"\}}'{_REFUSED}.*\| "
            rf"\[\[{_ARROW}",
            rf"{_CDC}.*\"old\":\[?\{{\"id\":null\}}.*{_ROWS}'-U', \{{'row': \{{'name': 'b'\}}\}}\].* \| "
            rf"\[\['-U', \{{'row': \{{'id': 1\}}\}}\]{_ARROW}",
            r"^canal-json .*\"old\":\[\{\"name\":\"x\"\},\{\"id\":7\}\].*'-U', \{'row': \{'name': 'x'\}\}\].* \| .*"
            r"'-U', \{'row': \{'id': 1(?:, 'name': 'x')?\}\}\]",
            r"^canal-json .*\"old\":\[\{\"name\":\"x\"\}\].*=> \[\['-U'.* \| \{'error': \"field 'old' of an update",
            rf"^canal-json .*\"old\":\[\{{\"name\":\"x\"\}}\].*=> .* \| \[\['-U', .*'\+I'{_ARROW}",
        ),
    ),
    Difference(
        "bytes that are no text in UTF-8, or in the charset of `raw`",
        "U+FFFD in `raw` and `avro`; `json` and `csv` also read UTF-16; `raw` writes `?`",
        "a bad record; a publish stops",
        "the text would be another one, in the topic and in the table",
        _about(
            rf"{_ROWS}.* \| \{{'error': [\"'].*not valid (?:UTF-8|UTF-16|UTF-32|UTF-16BE|UTF-16LE|US-ASCII)[\"']",
            rf"^csv .*\\x00.*{_ROWS}.* \| \{{'error': 'not valid UTF-8: it begins as a document in UTF-16 does'",
        ),
    ),
    Difference(
        "`json`: a document of no bytes; `avro`: bytes behind the record; `canal-json`: a null database or table for a "
        "pattern",
        "ignored",
        "a bad record",
        "no data is left out without a word (docs/adr/028, rule 2)",
        _about(
            rf"^json (?!ignore-parse-errors=true).* b''{_NONE}\{{'error': 'empty document'",
            rf"^avro .*{_ROWS}.* \| \{{'error': .*longer than its schema",
            rf"^canal-json .*:null.*{_NONE}\{{'error': \"field '\w+' is null or missing, and '\w+.include' is a ",
        ),
    ),
)
