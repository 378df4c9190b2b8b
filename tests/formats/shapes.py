"""What each format can represent, for the contract that all formats keep (test_contract.py).

A new format adds an entry to SHAPES; without one the contract fails and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from bridge.options.formats import FORMATS
from bridge.options.model import Fate
from bridge.schema import ArrayType, DataType, MapType, RowField, RowType
from tests.formats.support import row_type, scalar

__all__ = ["FIELDS", "SHAPES", "Sample", "Shape", "options_of"]

Values = st.SearchStrategy[Any]
Fields = Mapping[str, tuple[DataType, Values]]

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_MOMENT = st.datetimes(datetime(1700, 1, 1), datetime(2300, 1, 1))
_MILLIS = _MOMENT.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
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
        _TEXT | st.sampled_from(["1.10", "0", "-0", "1.0E10", "true", "null", "{}", '"', ""]),
    ),
    "char": (scalar("VARCHAR", 10), _TEXT),
    "bytes": (scalar("BYTES"), st.binary(max_size=8)),
    "day": (scalar("DATE"), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "moment": (scalar("TIMESTAMP", 6), _MOMENT),
    "millis": (scalar("TIMESTAMP", 3), _MILLIS),
    "seconds": (scalar("TIMESTAMP", 0), _MOMENT.map(lambda t: t.replace(microsecond=0))),
    "instant": (scalar("TIMESTAMP_LTZ", 6), _MOMENT),
    "instant3": (scalar("TIMESTAMP_LTZ", 3), _MILLIS),
    "money": (scalar("DECIMAL", 10, 2), _decimals(10, 2)),
    "whole": (scalar("DECIMAL", 38, 0), _decimals(38, 0)),
    "tail": (scalar("DECIMAL", 38, 38), _decimals(38, 38)),
    "list": (ArrayType(scalar("TIMESTAMP", 3)), st.lists(_MILLIS | st.none(), max_size=3)),
    "prices": (ArrayType(scalar("DECIMAL", 9, 6)), st.lists(_decimals(9, 6) | st.none(), max_size=3)),
    "map": (
        MapType(scalar("STRING"), scalar("TIMESTAMP_LTZ", 3)),
        st.dictionaries(_TEXT, _MILLIS | st.none(), max_size=3),
    ),
    "sums": (
        MapType(scalar("STRING"), scalar("DECIMAL", 5, 1)),
        st.dictionaries(_TEXT, _decimals(5, 1) | st.none(), max_size=3),
    ),
    "row": (
        row_type(a=scalar("STRING"), b=ArrayType(row_type(c=scalar("BIGINT"), d=scalar("DATE")))),
        st.tuples(
            _TEXT | st.none(),
            st.lists(st.tuples(st.none(), st.dates(date(1, 1, 1))) | st.none(), max_size=2) | st.none(),
        ),
    ),
    "a.b": (scalar("INT"), st.integers(-9, 9)),
    "q`u'o\"t\\e": (scalar("STRING"), _TEXT),
    "ünï 名": (row_type(**{"x.y`z": scalar("DECIMAL", 4, 1)}), st.tuples(_decimals(4, 1) | st.none())),
}
"""Types on every level, and awkward names: what a format can represent when it can represent everything."""


def _same(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row


@dataclass(frozen=True)
class Shape:
    """Rows that a format can write; fields of `never_null` must have a value for that.

    `read_back` is what reading may make of a row that was written.
    """

    fields: Fields
    options: Mapping[str, Any] = field(default_factory=dict)
    read_back: Callable[[tuple[Any, ...]], tuple[Any, ...]] = _same
    never_null: Collection[str] = ()

    @property
    def row(self) -> RowType:
        return RowType(tuple(RowField(name, type) for name, (type, _) in self.fields.items()))

    @property
    def rows(self) -> Values:
        """Lists of rows, any field null that may be."""
        each = st.tuples(
            *(v if name in self.never_null else v | st.none() for name, (_, v) in self.fields.items())
        )
        return st.lists(each, min_size=30, max_size=40)


@dataclass(frozen=True)
class Sample:
    """A format's part in the contract.

    `needs` names a fixture that gives options besides (a registry's address). `plain` is a row type with some
    of its rows; `missing` a document of that type without all of its fields, and what it decodes to: a row,
    or a text in the error. `bad` are documents of that type, each with a text that the error holds; they
    have the word secret in them where the format lets them.
    """

    shapes: Mapping[str, Shape]
    plain: RowType
    plain_rows: tuple[tuple[Any, ...], ...]
    bad: Mapping[bytes, str]
    missing: tuple[bytes, tuple[Any, ...] | str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: str | None = None


def options_of(name: str, *more: Mapping[str, Any]) -> dict[str, Any]:
    """The declared defaults of format `name`, as a definition hands them over, changed by `more`."""
    declared = {
        o.key: o.parse(o.default)
        for o in FORMATS[name].options
        if o.default is not None and o.fate is not Fate.REFUSED
    }
    for options in more:
        declared |= options
    return declared


_OF_CHANGES = (
    "int",
    "float",
    "flag",
    "text",
    "bytes",
    "millis",
    "money",
    "list",
    "map",
    "q`u'o\"t\\e",
    "ünï 名",
)
_CHANGED = Shape({name: FIELDS[name] for name in _OF_CHANGES})
"""The CDC formats in JSON convert fields by json's own code; here each way to convert is enough."""

_IN_A_LINE = {name: field for name, field in FIELDS.items() if name not in ("map", "sums", "row")}
_NESTED: Fields = {
    # Nothing protects a delimiter inside; one empty text is no element.
    "words": (
        ArrayType(scalar("STRING")),
        st.lists(_TEXT.map(lambda t: t.replace(";", "") + "."), max_size=3),
    ),
    "pair": (
        row_type(a=scalar("STRING"), b=scalar("TIMESTAMP_LTZ", 3)),
        st.tuples(_TEXT.map(lambda t: t.replace(";", "")), _MILLIS | st.none()),
    ),
}
_LINE = Shape(
    {**_IN_A_LINE, **_NESTED},
    {"null-literal": "no value"},
    # The null literal in place of an array or a row is read as its first element.
    never_null=("list", "prices", "ünï 名", *_NESTED),
)
_TURNED = {"charset": "UTF-16", "endianness": "little-endian"}
_RAW = ("tiny", "small", "int", "big", "float", "double", "flag", "text", "bytes")

_PLAIN = row_type(a=scalar("BIGINT"), b=scalar("STRING"))
_PLAIN_ROWS = ((1, "x"), (None, None), (2, "1.0"))

SHAPES: Mapping[str, Sample] = {
    "json": Sample(
        {"everything": Shape(FIELDS)},
        _PLAIN,
        _PLAIN_ROWS,
        bad={
            b'{"a": "secret"}': "'a'",
            b'{"a": 9223372036854775808, "b": "secret"}': "'a'",
            b'{"a": 1, "b": "secret': "malformed",
            b'["secret"]': "object",
            b"": "empty",
            b'"\xf0\x28secret"': "UTF-8",
        },
        missing=(b'{"b": "x"}', (None, "x")),
    ),
    "csv": Sample(
        {
            "line": _LINE,
            "tabs": replace(
                _LINE, options={**_LINE.options, "field-delimiter": "\t", "escape-character": "!"}
            ),
        },
        _PLAIN,
        _PLAIN_ROWS,
        bad={
            b"secret,x": "'a'",
            b"9223372036854775808,secret": "'a'",
            b'1,"secret': "malformed",
            b'1,"secret"x': "malformed",
            b"secret": "Row length mismatch. 2 fields expected but was 1.",
            b"1,secret,x": "Row length mismatch. 2 fields expected but was 3.",
            b"": "Row length mismatch",
            b"1,\xf0\x28secret": "UTF-8",
        },
        missing=(b"1", "Row length mismatch. 2 fields expected but was 1."),
        options={"null-literal": "no value"},
    ),
    "raw": Sample(
        # A null field is no document.
        {name: Shape({name: FIELDS[name]}, never_null=(name,)) for name in _RAW}
        | {
            f"{n} turned": Shape({n: FIELDS[n]}, _TURNED, never_null=(n,))
            for n in ("small", "double", "text")
        },
        row_type(a=scalar("BIGINT")),
        ((1,), (-2,), (2**40,)),
        bad={b"secret": "'a': Size of data received for deserializing BIGINT type is not 8.", b"": "'a'"},
    ),
    "debezium-json": Sample(
        {"changed": _CHANGED},
        _PLAIN,
        _PLAIN_ROWS,
        bad={
            b'{"after": {"a": "secret"}, "op": "c"}': "'after.a'",
            b'{"after": {"a": 1, "b": "secret"}, "op": "secret"}': "'op'",
            b'{"after": {"a": 1, "b": "secret"}, "op": "u"}': "REPLICA IDENTITY",
            b'{"after": {"a": 1, "b": "secret': "malformed",
            b'["secret"]': "not a JSON object",
            b'"\xf0\x28secret"': "UTF-8",
        },
        missing=(b'{"after": {"b": "x"}, "op": "r"}', (None, "x")),
    ),
    "canal-json": Sample(
        {"changed": _CHANGED},
        _PLAIN,
        _PLAIN_ROWS,
        bad={
            b'{"data": [{"a": "secret"}], "type": "INSERT"}': "'data[].a'",
            b'{"data": [{"a": "1", "b": "secret"}], "type": "secret"}': "'type'",
            b'{"data": {"b": "secret"}, "type": "INSERT"}': "'data'",
            b'{"data": [{"a": 1, "b": "secret': "malformed",
            b'"\xf0\x28secret"': "UTF-8",
        },
        missing=(b'{"data": [{"b": "x"}], "type": "INSERT"}', (None, "x")),
    ),
    "maxwell-json": Sample(
        {"changed": _CHANGED},
        _PLAIN,
        _PLAIN_ROWS,
        bad={
            b'{"data": {"a": "secret"}, "type": "insert"}': "'data.a'",
            b'{"data": {"a": 1, "b": "secret"}, "type": "secret"}': "'type'",
            b'{"data": [{"b": "secret"}], "type": "insert"}': "'data'",
            b'{"data": {"a": 1, "b": "secret': "malformed",
            b'"\xf0\x28secret"': "UTF-8",
        },
        missing=(b'{"data": {"b": "x"}, "type": "insert"}', (None, "x")),
    ),
    "ogg-json": Sample(
        {"changed": _CHANGED},
        _PLAIN,
        _PLAIN_ROWS,
        bad={
            b'{"after": {"a": "secret"}, "op_type": "I"}': "'after.a'",
            b'{"after": {"a": 1, "b": "secret"}, "op_type": "secret"}': "'op_type'",
            b'{"after": {"a": 1, "b": "secret"}, "op_type": "U"}': "REPLICA IDENTITY",
            b'"\xf0\x28secret"': "UTF-8",
        },
        missing=(b'{"after": {"b": "x"}, "op_type": "I"}', (None, "x")),
    ),
}
