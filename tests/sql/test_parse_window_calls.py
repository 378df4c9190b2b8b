"""Calls of window table functions are read from the text, with positions in it."""

from __future__ import annotations

import pytest

from bridge.ddl.tokens import Source
from bridge.errors import DdlError
from bridge.sql.parse import replace_calls, split
from bridge.sql.statements import Name, WindowCall, WindowFunction

M = 60_000


def calls(text: str) -> tuple[str, list[WindowCall]]:
    """The text that sqlglot gets, and the calls in it."""
    (part,) = split(Source(text, "t.sql"))
    replaced, found = replace_calls(part)
    return replaced.source.text, list(found.values())


@pytest.mark.parametrize(
    ("call", "function", "size", "step", "offset"),
    [
        ("TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES))", "TUMBLE", 10 * M, 10 * M, 0),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)", "TUMBLE", 60 * M, 60 * M, 0),
        ("TABLE(tumble(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '-8' HOUR))", "TUMBLE", 1440 * M, 1440 * M,
         -480 * M),
        ("TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))", "HOP", 10 * M, 5 * M, 0),
        ("TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES))", "CUMULATE", 10 * M,
         2 * M, 0),
        ("TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1.5' SECOND(3)))", "TUMBLE", 1500,
         1500, 0),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1.001' SECOND, INTERVAL '-0.5' SECOND)", "TUMBLE", 1001, 1001,
         -500),
        ("HOP(DATA => TABLE t, SIZE => INTERVAL '28' DAY, SLIDE => INTERVAL '7' DAY, TIMECOL => DESCRIPTOR(ts), "
         "OFFSET => INTERVAL '1' DAY)", "HOP", 28 * 1440 * M, 7 * 1440 * M, 1440 * M),
    ],
)  # fmt: skip
def test_calls(call: str, function: str, size: int, step: int, offset: int) -> None:
    text, (found,) = calls(f"SELECT a FROM {call} AS w WHERE b > 1")
    assert (found.function, found.size_ms, found.step_ms, found.offset_ms) == (
        WindowFunction(function),
        size,
        step,
        offset,
    )
    assert (found.table.text, found.column.text) == ("t", "ts")
    assert text.split() == "SELECT a FROM `w 0` AS w WHERE b > 1".split()
    assert len(text) == len(f"SELECT a FROM {call} AS w WHERE b > 1")


def test_several_calls_keep_their_places() -> None:
    text = (
        "SELECT * FROM TABLE(\n TUMBLE(TABLE a.b.`c d`, DESCRIPTOR(x), INTERVAL '1' DAY)) AS l\n"
        "JOIN TABLE(TUMBLE(TABLE e, DESCRIPTOR(y), INTERVAL '1' DAY)) AS r ON l.k = r.k"
    )
    replaced, found = calls(text)
    assert {(c.table.text, c.column.text) for c in found} == {("a.b.c d", "x"), ("e", "y")}
    assert [text[c.start : c.start + 6] for c in found] == ["TUMBLE", "TUMBLE"]
    assert replaced.index("AS l") == text.index("AS l") and replaced.count("\n") == text.count("\n")


def test_names_are_no_calls() -> None:
    for text in (
        "SELECT tumble FROM t",
        "SELECT * FROM tumble AS t",
        "SELECT * FROM hop JOIN cumulate ON a = b",
    ):
        assert calls(text) == (text, [])


USAGE = "TABLE name, DESCRIPTOR(column), INTERVAL ... (size)[, INTERVAL ... (offset)]"
HOP = "TABLE name, DESCRIPTOR(column), INTERVAL ... (slide), INTERVAL ... (size)[, INTERVAL ... (offset)]"


@pytest.mark.parametrize(
    ("call", "at", "message"),
    [
        ("TUMBLE(TABLE t, DESCRIPTOR(ts))", 15, f"TUMBLE has no SIZE; TUMBLE takes {USAGE}"),
        ("HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)", 15, f"HOP has no SIZE; HOP takes {HOP}"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '1' DAY, 1)", 83, f"TUMBLE takes {USAGE}"),
        ("TUMBLE(TABLE t, ts, INTERVAL '1' DAY)", 31,
         "expected DESCRIPTOR and the column of the WATERMARK in parentheses, found 'ts'"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a, b), INTERVAL '1' DAY)", 43, "expected ')' (a window has one time column), "
         "found ','"),
        ("TUMBLE(TABLE (SELECT 1), DESCRIPTOR(a), INTERVAL '1' DAY)", 28, "a query in a window table function is "
         "not supported; create a view, and name it here"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' WEEK)", 59, "Flink takes a WEEK in SIZE for an hour; write "
         "'7' DAY"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' MONTH)", 59, "SIZE in months has no fixed length, as in "
         "Flink; write it in DAY"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '0' DAY)", 55, "the length of SIZE must be a number above 0"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '-1' DAY)", 55, "the length of SIZE must be a number (whole, or a "
         "fraction of SECOND)"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '0.0005' SECOND)", 55, "SIZE must be whole milliseconds"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1:30' HOUR TO MINUTE)", 62, "intervals of more than one unit are "
         "not supported; write SIZE in HOUR only"),
        ("TUMBLE(TABLE t, DESCRIPTOR(a), 10)", 46, "expected INTERVAL for SIZE: INTERVAL '10' MINUTES, found '10'"),
        ("HOP(TABLE t, DESCRIPTOR(a), INTERVAL '4' MINUTES, INTERVAL '10' MINUTES)", 65, "HOP requires a size that is "
         "an integral multiple of its slide, and 600,000 ms is none of 240,000 ms"),
        ("TUMBLE(DATA => TABLE t, WHEN => 1)", 39, "TUMBLE has no argument WHEN; legal are DATA, "
         "TIMECOL, SIZE, OFFSET"),
        ("TUMBLE(DATA => TABLE t, DATA => TABLE t)", 39, "DATA of TUMBLE is given twice"),
    ],
)  # fmt: skip
def test_bad_calls(call: str, at: int, message: str) -> None:
    with pytest.raises(DdlError) as error:
        calls(f"SELECT a FROM {call}")
    assert str(error.value) == f"t.sql:1:{at}: {message}"


def test_the_call_is_a_value() -> None:
    _, (found,) = calls("SELECT a FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND)")
    assert found == WindowCall(WindowFunction.TUMBLE, Name("t", 27), Name("ts", 41), 1000, 1000, 0, 14)
