"""For which rows there is an encoder; `test_record_encoder` compares what it writes with Spark's."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from bridge.arrow_formats.base import RowColumns
from bridge.arrow_formats.catalog import arrow_encoder
from tests.arrow_formats.against_spark import spec
from tests.refusals import refusal


@pytest.mark.parametrize(
    "type",
    ["ARRAY<DOUBLE>", "MAP<STRING, INT>", "ROW<`a` INT>"],
)
def test_types_that_are_left_to_spark(type: str) -> None:
    assert (
        refusal(lambda: arrow_encoder(spec("json", {"a": "INT", "x": type})))
        == f"field 'x' of a json document is {type}"
    )


def test_constants_are_left_to_spark() -> None:
    given = replace(spec("json", {"a": "INT"}), constants={"database": "d"})
    assert refusal(lambda: arrow_encoder(given)) == "its documents have constants"


@pytest.mark.parametrize("format", ["csv", "raw", "avro"])
def test_formats_that_are_left_to_spark(format: str) -> None:
    assert refusal(lambda: arrow_encoder(spec(format, {"a": "STRING"}))) == f"the format is {format}"


def test_a_row_without_a_value_is_an_empty_object() -> None:
    given = replace(spec("json", {"a": "INT"}, **{"encode.ignore-null-fields": True}), columns=("a",))
    encoder = arrow_encoder(given)
    columns = {"a": pa.array([1, None, None], pa.int32())}
    assert encoder.encode(RowColumns(columns, 3)).to_pylist() == [b'{"a":1}', b"{}", b"{}"]
    assert encoder.encode(RowColumns({"a": columns["a"][1:]}, 2)).to_pylist() == [b"{}", b"{}"]
    none = arrow_encoder(replace(spec("json", {"a": "INT"}), row=replace(given.row, fields=()), columns=()))
    assert none.encode(RowColumns({}, 2)).to_pylist() == [b"{}", b"{}"]


def test_texts_of_no_numbers_have_quotes() -> None:
    encoder = arrow_encoder(replace(spec("json", {"a": "DOUBLE"}), columns=("a",)))
    assert encoder.as_texts == {"a"}
    texts = pa.array(["1.0E10", "NaN", None, "-Infinity", "Infinity", "-0.0"])
    written = ["1.0E10", '"NaN"', "null", '"-Infinity"', '"Infinity"', "-0.0"]
    assert encoder.encode(RowColumns({"a": texts}, 6)).to_pylist() == [
        b'{"a":%b}' % w.encode() for w in written
    ]
