"""For which rows there is an encoder; `test_record_encoder` compares what it writes with Spark's.

Decimals as Java writes them; `test_record_encoder` compares drawn ones with Spark's.

JSON strings as Jackson writes them; `test_record_encoder` compares drawn ones with Spark's.

Dates and timestamps as Spark writes them; `test_record_encoder` compares drawn ones with Spark's.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from bridge.arrow_formats.base import RowColumns
from bridge.arrow_formats.catalog import arrow_encoder
from bridge.arrow_formats.json_encoder import date_texts, decimal_texts, escaped, moment_texts, quoted
from tests.arrow_formats.against_spark import spec
from tests.refusals import refusal


@pytest.mark.parametrize(
    "type",
    ["ARRAY<DOUBLE>", "MAP<STRING, INT>", "ROW<`a` INT>"],
)
def test_types_that_are_left_to_spark(type: str) -> None:
    assert (
        refusal(lambda: arrow_encoder(spec("json", {"a": "INT", "x": type})))
        == f"field 'x' of a json document is {type}"
    )


def test_constants_are_left_to_spark() -> None:
    given = replace(spec("json", {"a": "INT"}), constants={"database": "d"})
    assert refusal(lambda: arrow_encoder(given)) == "its documents have constants"


@pytest.mark.parametrize("format", ["csv", "raw", "avro"])
def test_formats_that_are_left_to_spark(format: str) -> None:
    assert refusal(lambda: arrow_encoder(spec(format, {"a": "STRING"}))) == f"the format is {format}"


def test_a_row_without_a_value_is_an_empty_object() -> None:
    given = replace(spec("json", {"a": "INT"}, **{"encode.ignore-null-fields": True}), columns=("a",))
    encoder = arrow_encoder(given)
    columns = {"a": pa.array([1, None, None], pa.int32())}
    assert encoder.encode(RowColumns(columns, 3)).to_pylist() == [b'{"a":1}', b"{}", b"{}"]
    assert encoder.encode(RowColumns({"a": columns["a"][1:]}, 2)).to_pylist() == [b"{}", b"{}"]
    none = arrow_encoder(replace(spec("json", {"a": "INT"}), row=replace(given.row, fields=()), columns=()))
    assert none.encode(RowColumns({}, 2)).to_pylist() == [b"{}", b"{}"]


def test_texts_of_no_numbers_have_quotes() -> None:
    encoder = arrow_encoder(replace(spec("json", {"a": "DOUBLE"}), columns=("a",)))
    assert encoder.as_texts == {"a"}
    texts = pa.array(["1.0E10", "NaN", None, "-Infinity", "Infinity", "-0.0"])
    written = ["1.0E10", '"NaN"', "null", '"-Infinity"', '"Infinity"', "-0.0"]
    assert encoder.encode(RowColumns({"a": texts}, 6)).to_pylist() == [
        b'{"a":%b}' % w.encode() for w in written
    ]


@pytest.mark.parametrize(
    ("precision", "scale", "number", "text", "plain"),
    [
        (10, 2, "1.50", "1.5", "1.50"),
        (10, 2, "-0.50", "-0.5", "-0.50"),
        (10, 2, "0", "0", "0.00"),
        (10, 2, "100", "1E+2", "100.00"),
        (10, 2, "-1230", "-1.23E+3", "-1230.00"),
        (10, 2, "10.01", "10.01", "10.01"),
        (38, 0, "9" * 37 + "0", f"9.{'9' * 36}E+37", "9" * 37 + "0"),
        (38, 38, f"0.{'9' * 38}", f"0.{'9' * 38}", f"0.{'9' * 38}"),
        (38, 38, "1E-38", "1E-38", f"0.{'0' * 37}1"),
        (9, 7, "0.0000010", "0.000001", "0.0000010"),
        (9, 7, "-0.0000002", "-2E-7", "-0.0000002"),
        (9, 9, "0", "0", "0.000000000"),
    ],
)
def test_texts(precision: int, scale: int, number: str, text: str, plain: str) -> None:
    values = pa.array([None, Decimal(number), Decimal(number)], pa.decimal128(precision, scale))
    assert decimal_texts(values, plain=False).to_pylist() == [None, text, text]
    assert decimal_texts(values.slice(1), plain=True).to_pylist() == [plain, plain]


_ESCAPED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@pytest.mark.parametrize("type", [pa.string(), pa.large_string()])
def test_every_character_that_is_escaped(type: pa.DataType) -> None:
    characters = [*map(chr, range(0x30)), "\\", "\x7f", "\x80", "\u2028", "\ufeff", "名", "😀"]
    expected = [
        r"\uD83D\uDE00" if c == "😀" else _ESCAPED.get(c, f"\\u{ord(c):04X}" if c < " " else c)
        for c in characters
    ]
    assert escaped(pa.array(characters, type)).to_pylist() == expected
    together = "".join(characters)
    assert escaped(pa.array(["", None, together], type)).to_pylist() == ["", None, "".join(expected)]
    assert quoted(together) == f'"{"".join(expected)}"' and json.loads(quoted(together)) == together


def test_a_part_of_a_column() -> None:
    """The bytes outside of the part do not count."""
    texts = pa.array(['"', "a", None, "é", "\n"])
    assert escaped(texts.slice(1, 3)).to_pylist() == ["a", None, "é"]
    assert escaped(texts.slice(4)).to_pylist() == ["\\n"]
    assert escaped(texts.slice(0, 0)).to_pylist() == []
    assert escaped(pa.nulls(2, pa.string())).to_pylist() == [None, None]


def test_bad_utf_8_is_refused() -> None:
    data = pa.array([b"\xed\xa0\x80\\", None, "é".encode()], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 3, data.buffers(), data.null_count)
    with pytest.raises(pa.ArrowInvalid):
        escaped(texts)
    assert escaped(texts.slice(1)).to_pylist() == [None, "é"]


_NOON = 1_582_977_600_000_000


def _moments(*micros: int | None) -> pa.Array:
    return pa.array(micros, pa.int64()).view(pa.timestamp("us"))


@pytest.mark.parametrize(
    ("precision", "micros", "fraction"),
    [
        (6, 120_000, ".12"),
        (6, 1, ".000001"),
        (3, 100_400, ".1"),
        (3, 400, ""),
        (0, 999_999, ""),
        (5, 123_456, ".12345"),
    ],
)
def test_fractions_have_no_zeros_at_their_end(precision: int, micros: int, fraction: str) -> None:
    values = _moments(_NOON, None, _NOON + micros)
    assert moment_texts(values, precision).to_pylist() == [
        "2020-02-29 12:00:00",
        None,
        f"2020-02-29 12:00:00{fraction}",
    ]


def test_moments_before_1970_are_cut_to_the_one_before() -> None:
    assert moment_texts(_moments(-1), 3).to_pylist() == ["1969-12-31 23:59:59.999"]


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (-62_135_596_800_000_000, "0001-01-01 00:00:00"),
        (-62_135_596_800_000_001, "0000-12-31 23:59:59.999999"),
        (253_402_300_800_000_000, "+10000-01-01 00:00:00"),
        (2**63 - 1, "+294247-01-10 04:00:54.775807"),
        (-(2**63), "-290308-12-21 19:59:05.224192"),
    ],
)
def test_moments_of_years_with_other_digits(micros: int, text: str) -> None:
    assert moment_texts(_moments(None, _NOON, micros), 6).to_pylist() == [None, "2020-02-29 12:00:00", text]


def test_dates() -> None:
    days = [-719_163, -719_162, None, 2_932_896, 2_932_897]
    values = pa.array(days, pa.int32()).view(pa.date32())
    assert date_texts(values).to_pylist() == [
        "0000-12-31",
        "0001-01-01",
        None,
        "9999-12-31",
        "+10000-01-01",
    ]
    # Four centuries are one period of the calendar; a number out of range takes all days the slow way.
    shifted = date(2000, 1, 1) - date(1970, 1, 1)
    for day in range(0, 146_097, 37):
        here = date(2000, 1, 1) + timedelta(day)
        period = pa.array([shifted.days + day + 20 * 146_097], pa.int32()).view(pa.date32())
        assert date_texts(period).to_pylist() == [f"+{here.year + 8000}-{here:%m-%d}"]
