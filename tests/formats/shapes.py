"""What each format can represent, for the contract of all formats (test_base_contract.py).

A new format adds an entry to SHAPES; without one the contract fails and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from bridge.options.formats import FORMATS
from bridge.options.model import Support
from bridge.schema import ArrayType, RowField, RowType
from tests.formats.fields import FIELDS, MILLIS, TEXT, Fields, Values, decimals
from tests.formats.support import row_type, scalar


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
        if o.default is not None and o.support is not Support.REFUSED
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
        st.lists(TEXT.map(lambda t: t.replace(";", "") + "."), max_size=3),
    ),
    "pair": (
        row_type(a=scalar("STRING"), b=scalar("TIMESTAMP_LTZ", 3)),
        st.tuples(TEXT.map(lambda t: t.replace(";", "")), MILLIS | st.none()),
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

_ILLEGAL_IN_AVRO = ("a.b", "q`u'o\"t\\e", "ünï 名")
_AVRO: Fields = {
    **{name: field for name, field in FIELDS.items() if name not in _ILLEGAL_IN_AVRO},
    "tinies": (
        ArrayType(scalar("TINYINT")),
        st.lists(st.integers(-(2**7), 2**7 - 1) | st.none(), max_size=3),
    ),
    "ünï_名": (row_type(x_y=scalar("DECIMAL", 4, 1)), st.tuples(decimals(4, 1) | st.none())),
    "kept": (row_type(n=scalar("INT").required(), s=scalar("STRING")), st.tuples(st.integers(0, 9), TEXT)),
}
_AVRO_CHANGED = Shape(
    {n: _AVRO[n] for n in ("int", "tiny", "text", "bytes", "millis", "money", "list", "ünï_名")}
)
_FRAMED_BAD = {
    b"\x00\x0f\xff\xff\xffsecret": "unknown schema id 268435455",
    b"\x01\x00\x00\x00\x01secret": "first byte is not 0",
    b"\x00\x00\x00": "shorter than Confluent's framing",
}

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
    "avro": Sample(
        # Flink's mapping has milliseconds whatever the digits of the type are.
        {
            "everything": Shape(
                {n: (type, MILLIS if n in ("moment", "instant") else v) for n, (type, v) in _AVRO.items()},
                options={"timestamp_mapping.legacy": False},
            )
        },
        _PLAIN,
        _PLAIN_ROWS,
        bad={
            b"": "empty",
            b"\x02\x02\x02\x0esecret": "truncated",
            b"\x02\x02\x02\x0csecret!": "longer than its schema says",
            b"\x02\x02\x02\x0e\xffsecret": "'b': not valid UTF-8",
            b"\x02\x02\x02\xd8\xff\xff\xff\x0fsecret": "truncated",
        },
    ),
    "avro-confluent": Sample(
        {"everything": Shape(_AVRO)}, _PLAIN, _PLAIN_ROWS, bad=_FRAMED_BAD, needs="registry_options"
    ),
    "debezium-avro-confluent": Sample(
        {"changed": _AVRO_CHANGED}, _PLAIN, _PLAIN_ROWS, bad=_FRAMED_BAD, needs="registry_options"
    ),
}
