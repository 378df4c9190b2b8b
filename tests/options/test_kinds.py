"""Types of options: the grammar and the messages of Flink."""

from __future__ import annotations

import re

import pytest

from bridge.errors import OptionError
from bridge.options.kinds import (
    BOOLEAN,
    INT,
    LIST,
    NON_NEGATIVE_LONG,
    POSITIVE_INT,
    SERVERS,
    TOPICS,
    Kind,
    choice,
    duration_ms,
    partition_offsets,
)
from bridge.options.model import Option, Support

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1s", 1000),
        ("1 s", 1000),
        (" 100 ms ", 100),
        ("5 min", 300_000),
        ("5m", 300_000),
        ("100000", 100_000),
        ("0", 0),
        ("2 Hours", 7_200_000),
        ("1 day", DAY),
        ("3 d", 3 * DAY),
        ("1500 micros", 1),
        ("1500 µs", 1),
        ("1500 \u03bcs", 1),
        ("2000000 ns", 2),
        ("10 secs", 10_000),
        ("PT1M30S", 90_000),
        ("P1DT0.25S", DAY + 250),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text does not start with a number"),
        ("-1 s", "text does not start with a number"),
        ("PT", "text does not start with a number"),
        (
            "1.5 s",
            "Time interval unit label '.5 s' does not match any of the recognized units: (d | day | days)",
        ),
        ("1 fortnight", "Time interval unit label 'fortnight' does not match any of the recognized units"),
        ("99999999999999999999 d", "cannot be represented as 64bit number (numeric overflow)"),
    ],
)
def test_illegal_durations(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        duration_ms(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, "false", False),
        (INT, "-5", -5),
        (NON_NEGATIVE_LONG, "1678456800000", 1_678_456_800_000),
        (POSITIVE_INT, "3", 3),
        (LIST, "address; name", ("address", "name")),
        (LIST, "'a;b';c;", ("a;b", "c")),
        (LIST, "'it''s'", ("it's",)),
        (TOPICS, "orders;returns_v2", ("orders", "returns_v2")),
        (SERVERS, "a:9092, SSL://[::1]:9093", "a:9092, SSL://[::1]:9093"),
        (choice("ALL", "EXCEPT_KEY"), "except_key", "EXCEPT_KEY"),
        (partition_offsets("x"), "partition:0,offset:42;partition:1,offset:300", {0: 42, 1: 300}),
    ],
)
def test_values(kind: Kind[object], text: str, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (
            BOOLEAN,
            "abc",
            "Unrecognized option for boolean: abc. Expected either true or false(case insensitive)",
        ),
        (BOOLEAN, " true", "Unrecognized option for boolean:  true."),
        (INT, "1e3", "'1e3' is not a whole number from -2147483648 to 2147483647"),
        (POSITIVE_INT, "0", "'0' is not a whole number from 1 to 2147483647"),
        (NON_NEGATIVE_LONG, "-1", "'-1' is not a whole number from 0 to"),
        (LIST, "a;;b", "'a;;b' has an empty item"),
        (TOPICS, "a b", "'a b' is not a topic name: Kafka allows 1 to 249 letters"),
        (SERVERS, "make no sense", "'make no sense' is not host:port"),
        (SERVERS, "a:9092,b:99999", "'b:99999' is not host:port"),
        (choice("a", "b", exact=True), "A", "Unsupported value 'A'. Supported values are [a, b]."),
        (
            partition_offsets("scan.x"),
            "partition:0;offset:1",
            "Invalid properties 'scan.x' should follow the format "
            "'partition:0,offset:42;partition:1,offset:300', "
            "but is 'partition:0;offset:1'.",
        ),
        (partition_offsets("x"), "partition:0,offset:1;partition:0,offset:2", "partition 0 is listed twice"),
    ],
)
def test_illegal_values(kind: Kind[object], text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        kind.parse(text)


def test_a_message_names_the_key() -> None:
    with pytest.raises(OptionError, match=r"^'x\.y': 'ten' is not a whole number"):
        Option("x.y", POSITIVE_INT, "").parse("ten")


def test_a_masked_value_is_not_quoted() -> None:
    with pytest.raises(OptionError) as error:
        Option("x.y", SERVERS, "").parse("hunter2", masked=True)
    assert str(error.value) == "'x.y': its value (not shown) must be host:port addresses separated by ','"
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


@pytest.mark.parametrize("support", [f for f in Support if f is not Support.HONOURED])
def test_support_other_than_honoured_needs_a_reason(support: Support) -> None:
    with pytest.raises(ValueError, match="has a reason if and only if"):
        Option("x", INT, "", support=support)
