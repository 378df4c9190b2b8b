"""What every format of the registry promises, whatever its bytes look like."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.formats import registry
from bridge.formats.base import DOUBTFUL, Format
from bridge.schema import ArrayType, MapType, RowField, RowType
from tests.formats.support import decode_all, encode_all, plain, row_type, scalar

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_MOMENT = st.datetimes(datetime(1700, 1, 1), datetime(2300, 1, 1))
_MILLIS = _MOMENT.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))
_DOUBLE = st.floats(allow_subnormal=False)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    bound = 10**precision - 1
    return st.integers(-bound, bound).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale))
    )


_FIELDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "tiny": (scalar("TINYINT"), st.integers(-(2**7), 2**7 - 1)),
    "small": (scalar("SMALLINT"), st.integers(-(2**15), 2**15 - 1)),
    "int": (scalar("INT"), st.integers(-(2**31), 2**31 - 1)),
    "big": (scalar("BIGINT"), st.integers(-(2**63), 2**63 - 1)),
    "float": (scalar("FLOAT"), st.floats(width=32)),
    "double": (scalar("DOUBLE"), _DOUBLE),
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
_ROW = RowType(tuple(RowField(name, type) for name, (type, _) in _FIELDS.items()))
_ROWS = st.lists(st.tuples(*(values | st.none() for _, values in _FIELDS.values())), min_size=30, max_size=40)


@pytest.fixture(params=registry.available())
def format(request: pytest.FixtureRequest) -> Format:
    return registry.get(request.param)


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(rows=_ROWS)
def test_what_is_written_is_read_back(
    spark: SparkSession, format: Format, rows: list[tuple[Any, ...]]
) -> None:
    """Every type, on every level, with nulls and awkward names."""
    written = encode_all(spark, format.encoder(_ROW, {}), _ROW, rows)
    read = decode_all(spark, format.decoder(_ROW, {}), written)
    assert [error for _, error in read] == [None] * len(rows)
    assert [found for found, _ in read] == [[("+I", _named(row, _ROW))] for row in rows]


def test_null_is_no_document_and_no_row_gives_no_bytes(spark: SparkSession, format: Format) -> None:
    row = row_type(a=scalar("INT"))
    assert decode_all(spark, format.decoder(row, {}), [None]) == [(None, None)]
    assert encode_all(spark, format.encoder(row, {}), row, [None]) == [None]


def test_a_glance_says_the_same_or_that_it_is_in_doubt(spark: SparkSession, format: Format) -> None:
    row = row_type(a=scalar("BIGINT"), b=scalar("STRING"))
    written = encode_all(spark, format.encoder(row, {}), row, [(1, "x"), (None, None), (2, "1.0"), None])
    payloads = [*written, b"\xff", b"", b"[1", b'{"a":"5"}']
    decoder = format.decoder(row, {})
    glances, looks = decode_all(spark, decoder, payloads, glance=True), decode_all(spark, decoder, payloads)
    assert [glances[0], glances[3]] == [looks[0], looks[3]]
    assert all(seen in (known, (None, DOUBTFUL)) for seen, known in zip(glances, looks, strict=True))
    assert DOUBTFUL not in [error for _, error in looks]


def test_no_bytes_make_a_decoder_raise(spark: SparkSession, format: Format) -> None:
    """Each payload gives rows or a reason; a reason never shows what was sent."""
    awkward = [bytes([b]) for b in range(256)] + [b"\xf0\x28\x8c\x28secret", b"secret" * 1000, b"\x00" * 9]
    decoder = format.decoder(row_type(a=scalar("INT"), b=scalar("DECIMAL", 5, 2)), {})
    for rows, error in decode_all(spark, decoder, awkward):
        assert (rows is None) == (error is not None)
        assert "secret" not in (error or "")


def _named(values: Any, type: Any) -> Any:
    """`values` as decode_all gives them: tuples of a ROW become dicts."""
    if values is None:
        return None
    if isinstance(type, RowType):
        return {f.name: _named(v, f.type) for f, v in zip(type.fields, values, strict=True)}
    if isinstance(type, ArrayType):
        return [_named(v, type.element) for v in values]
    return plain(values)
