"""Any text is parsed to a Ddl or raises a DdlError with a position in it, and no other exception."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.ddl import Ddl, parse
from bridge.errors import DdlError

VOCABULARY = r"""
    a b `c d` 'text' 1 2.5 , ( ) [ ] < > . - + / | = ; \
    INT STRING ARRAY MAP ROW DECIMAL TIMESTAMP INTERVAL DAY NOT NULL AS FOR CAST CASE WHEN THEN END
    COMMENT METADATA FROM VIRTUAL PRIMARY KEY ENFORCED CONSTRAINT UNIQUE WATERMARK WITH LIKE
    FLOOR TO TIMESTAMPADD REGEXP_EXTRACT
"""
scraps = st.lists(st.sampled_from([*VOCABULARY.split(), "\n"]), max_size=12).map(" ".join)


def refused_at(text: str) -> tuple[int, int] | None:
    try:
        assert isinstance(parse(text), Ddl)
    except DdlError as error:
        return error.line, error.column
    return None


def lands(text: str) -> None:
    """Parse `text`; a refusal must point at a place in it, at most one past the last character of a line."""
    place = refused_at(text)
    lines = text.split("\n")
    assert place is None or 1 <= place[0] <= len(lines)
    assert place is None or 1 <= place[1] <= len(lines[place[0] - 1]) + 1


@settings(deadline=None, max_examples=300)
@given(scraps)
def test_any_elements(scrap: str) -> None:
    lands(f"CREATE TABLE t (a INT, b ARRAY<INT>, {scrap}) WITH ('connector' = 'kafka')")


@settings(deadline=None, max_examples=500)
@given(scraps)
def test_any_expression(scrap: str) -> None:
    lands(f"CREATE TABLE t (a INT, b ARRAY<INT>, c AS a {scrap}) WITH ('connector' = 'kafka')")


@settings(deadline=None)
@given(scraps, st.text())
def test_any_statement(scrap: str, text: str) -> None:
    lands(f"CREATE TABLE t {scrap}")
    lands(f"CREATE TABLE t (a INT) WITH {scrap}")
    lands(text)
