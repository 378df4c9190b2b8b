"""Fields of every type, with the values they are tested with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from bridge.schema import ArrayType, DataType, MapType
from tests.formats.support import row_type, scalar

Values = st.SearchStrategy[Any]
Fields = Mapping[str, tuple[DataType, Values]]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_MOMENT = st.datetimes(datetime(1700, 1, 1), datetime(2300, 1, 1))
MILLIS = _MOMENT.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    bound = 10**precision - 1
    return st.integers(-bound, bound).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale))
    )


FIELDS: Fields = {
    "tiny": (scalar("TINYINT"), st.integers(-(2**7), 2**7 - 1)),
    "small": (scalar("SMALLINT"), st.integers(-(2**15), 2**15 - 1)),
    "int": (scalar("INT"), st.integers(-(2**31), 2**31 - 1)),
    "big": (scalar("BIGINT"), st.integers(-(2**63), 2**63 - 1)),
    "float": (scalar("FLOAT"), st.floats(width=32)),
    "double": (scalar("DOUBLE"), st.floats(allow_subnormal=False)),
    "flag": (scalar("BOOLEAN"), st.booleans()),
    "text": (
        scalar("STRING"),
        TEXT | st.sampled_from(["1.10", "0", "-0", "1.0E10", "true", "null", "{}", '"', ""]),
    ),
    "char": (scalar("VARCHAR", 10), TEXT),
    "bytes": (scalar("BYTES"), st.binary(max_size=8)),
    "day": (scalar("DATE"), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "moment": (scalar("TIMESTAMP", 6), _MOMENT),
    "millis": (scalar("TIMESTAMP", 3), MILLIS),
    "seconds": (scalar("TIMESTAMP", 0), _MOMENT.map(lambda t: t.replace(microsecond=0))),
    "instant": (scalar("TIMESTAMP_LTZ", 6), _MOMENT),
    "instant3": (scalar("TIMESTAMP_LTZ", 3), MILLIS),
    "money": (scalar("DECIMAL", 10, 2), decimals(10, 2)),
    "whole": (scalar("DECIMAL", 38, 0), decimals(38, 0)),
    "tail": (scalar("DECIMAL", 38, 38), decimals(38, 38)),
    "list": (ArrayType(scalar("TIMESTAMP", 3)), st.lists(MILLIS | st.none(), max_size=3)),
    "prices": (ArrayType(scalar("DECIMAL", 9, 6)), st.lists(decimals(9, 6) | st.none(), max_size=3)),
    "map": (
        MapType(scalar("STRING"), scalar("TIMESTAMP_LTZ", 3)),
        st.dictionaries(TEXT, MILLIS | st.none(), max_size=3),
    ),
    "sums": (
        MapType(scalar("STRING"), scalar("DECIMAL", 5, 1)),
        st.dictionaries(TEXT, decimals(5, 1) | st.none(), max_size=3),
    ),
    "row": (
        row_type(a=scalar("STRING"), b=ArrayType(row_type(c=scalar("BIGINT"), d=scalar("DATE")))),
        st.tuples(
            TEXT | st.none(),
            st.lists(st.tuples(st.none(), st.dates(date(1, 1, 1))) | st.none(), max_size=2) | st.none(),
        ),
    ),
    "a.b": (scalar("INT"), st.integers(-9, 9)),
    "q`u'o\"t\\e": (scalar("STRING"), TEXT),
    "ünï 名": (row_type(**{"x.y`z": scalar("DECIMAL", 4, 1)}), st.tuples(decimals(4, 1) | st.none())),
}
"""Types on every level, and awkward names: what a format can represent when it can represent everything."""
