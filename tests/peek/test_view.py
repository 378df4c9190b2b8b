"""A record as lines for a terminal."""

from __future__ import annotations

from bridge.peek.records import Record
from bridge.peek.view import DecodedRecord, Part


def test_nothing_in_a_record_reaches_the_terminal_as_a_command() -> None:
    record = Record("orders", 0, 7, None, b"k", b"v", (("\x1b[2Jname", b"\x1b[2Jvalue"),))
    shown = DecodedRecord(record, "+U", Part('"k"'), Part('"\x9b31m"')).lines().split("\n")
    assert [line for line in shown if not line.isprintable()] == []
    assert shown[3] == "  headers  \N{REPLACEMENT CHARACTER}[2Jname=\N{REPLACEMENT CHARACTER}[2Jvalue"
