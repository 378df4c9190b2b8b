"""Parses `INTERVAL 'n' UNIT` of a fixed length, for watermarks and for windows."""

from __future__ import annotations

import re
from decimal import Decimal

from bridge.ddl.tokens import Cursor, Token

_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}


def parse_interval(c: Cursor, what: str, *, negative: bool = False) -> tuple[Decimal, Token]:
    """Parses an interval after the keyword INTERVAL; returns its seconds and the token of its number.

    As in Flink a precision may follow the unit, and only seconds have a fraction; a sign is legal with `negative`.
    `what` is the interval's name in messages. Raises DdlError for months and years, whose length is not fixed, and for
    several units.
    """
    amount = c.string(f"the length of {what}, a number")
    unit, place = c.token.keyword.removesuffix("S"), c.token
    if unit in ("MONTH", "QUARTER", "YEAR"):
        c.fail(f"{what} in {unit.lower()}s has no fixed length, as in Flink; write it in DAY")
    if unit == "WEEK":
        c.fail(f"Flink takes a WEEK in {what} for an hour; write '7' DAY")
    if unit not in _SECONDS:
        c.fail_expected("SECOND, MINUTE, HOUR or DAY")
    c.next()
    if c.take("("):
        c.integer(f"the precision of {unit}", 0, 9)
        if c.take(","):
            c.integer("the precision of its fraction", 0, 9)
        c.expect(")")
    if c.at("TO"):
        c.fail(f"intervals of more than one unit are not supported; write {what} in {unit} only", place)
    sign, fraction = "-?" if negative else "", r"(\.\d+)?" if unit == "SECOND" else ""
    if not re.fullmatch(rf"{sign}\d+{fraction}", amount.text.strip()):
        c.fail(f"the length of {what} must be a number (whole, or a fraction of SECOND)", amount)
    return Decimal(amount.text.strip()) * _SECONDS[unit], amount
