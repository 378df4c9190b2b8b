"""The binary encoding of Avro over many documents at once."""

from __future__ import annotations

import io
from collections.abc import Sequence

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.arrow_formats.avro_cursor import Cursor
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import array

_BITS = {"int": 32, "long": 64}


def _written(type: str, number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, type, number)
    return out.getvalue()


def _powers(bits: int) -> st.SearchStrategy[int]:
    """Numbers of every length."""
    number = st.integers(0, bits - 1).flatmap(lambda size: st.integers(0, 2**size - 1))
    return st.one_of(number, number.map(lambda n: -n - 1))


@pytest.mark.parametrize("type", _BITS)
@settings(deadline=None)
@given(data=st.data())
def test_numbers(type: str, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.tuples(_powers(_BITS[type]), _powers(_BITS[type])), min_size=1))
    cursor = Cursor.of(array([b"".join(_written(type, n) for n in pair) for pair in numbers]))
    columns = [cursor.integers(_BITS[type]).tolist() for _ in range(2)]
    assert list(zip(*columns, strict=True)) == numbers
    assert cursor.is_at_ends


@pytest.mark.parametrize(("type", "longest"), [("int", 5), ("long", 10)])
def test_numbers_that_java_cuts(type: str, longest: int) -> None:
    bits = _BITS[type]
    last = (1 << (bits - 7 * (longest - 1))) - 1
    most = b"\xff" * (longest - 1) + bytes([last])
    assert Cursor.of(array([most])).integers(bits).tolist() == [-(2 ** (bits - 1))]
    for wrong in (most[:-1] + bytes([last + 1]), b"\xff" * longest + b"\0", b"\x80" * longest + b"\0"):
        with pytest.raises(NotThisWay, match=f"a number has more than {bits} bits"):
            Cursor.of(array([b"\0", wrong])).integers(bits)


@pytest.mark.parametrize("payloads", [[b""], [b"\x80", b"\0"], [b"\0", b"\xff" * 3], [b"\xff" * 9, b"\0"]])
def test_a_number_ends_within_its_document(payloads: Sequence[bytes]) -> None:
    with pytest.raises(NotThisWay, match="a document is truncated, or not of its schema"):
        Cursor.of(array(payloads)).integers(64)


def test_rows_move_on_their_own() -> None:
    cursor = Cursor.of(array([b"\2\4", b"\6", b"\2\x0a"]))
    first = cursor.integers(32)
    rows = np.flatnonzero(first == 1)
    part = cursor.of_rows(rows)
    assert part.integers(32).tolist() == [2, 5] and not cursor.is_at_ends
    cursor.moved(rows, part)
    assert cursor.is_at_ends


def test_parts_and_words() -> None:
    cursor = Cursor.of(array([b"abcd", b"efgh1"]))
    begin = cursor.skip(1)
    assert cursor.fixed(">u2").tolist() == [0x6263, 0x6667]
    assert cursor.parts(begin, np.array([4, 2])).to_pylist() == [b"abcd", b"ef"]
    with pytest.raises(NotThisWay, match="truncated"):
        cursor.fixed("<f8")


def test_lengths_that_no_document_has() -> None:
    for number in (-1, 2**26 + 1):
        with pytest.raises(NotThisWay, match="a length is negative, or more than 64 MiB"):
            Cursor.of(array([_written("long", number)])).lengths()


def test_more_documents_than_offsets_count() -> None:
    with pytest.raises(NotThisWay, match="the documents take more than 2 GiB"):
        Cursor.of(pa.chunked_array([array([b"a"]), array([b"b"])]))
