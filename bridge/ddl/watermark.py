"""Parses `WATERMARK FOR column AS column [- INTERVAL 'n' UNIT]`."""

from __future__ import annotations

from bridge.ddl.cursor import Cursor
from bridge.ddl.intervals import parse_interval
from bridge.ddl.tokens import Token
from bridge.schema import Watermark

__all__ = ["parse_watermark"]

_WAY_OUT = "write `column` or `column - INTERVAL 'n' UNIT`, from which the bridge computes the event-time lag"


def parse_watermark(c: Cursor) -> tuple[Token, Watermark]:
    """Parses the watermark after the keywords WATERMARK FOR; returns the token of its column and the watermark.

    Raises DdlError for a nested column and for all strategies except a bounded delay of the column.
    """
    column = c.name("the watermark's column")
    if c.at("."):
        c.fail(
            f"the watermark's column must be a column of the table; for a field of `{column.text}` "
            "declare a computed column and use that",
            column,
        )
    c.expect("AS", " and the watermark's expression")
    start = c.token
    is_name = start.kind in ("name", "word") and c.peek(1).keyword != "("
    if not is_name or start.text != column.text:
        c.fail(f"this watermark strategy is not supported; {_WAY_OUT}")
    c.next()
    delay = _delay(c) if c.take("-") else 0.0
    if c.token.keyword not in (",", ")") and c.token.kind != "end":
        c.fail(f"this watermark strategy is not supported; {_WAY_OUT}")
    text = c.source.text[start.start : c.tokens[c.index - 1].end]
    return column, Watermark(column.text, text, delay)


def _delay(c: Cursor) -> float:
    if not c.take("INTERVAL"):
        c.fail(f"this watermark strategy is not supported; {_WAY_OUT}")
    return float(parse_interval(c, "the delay")[0])
