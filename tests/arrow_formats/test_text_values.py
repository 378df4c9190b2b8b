"""Texts of values: the usual ones are read, others are left to Spark's path."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bridge.arrow_formats.arrow_types import arrow_type
from bridge.arrow_formats.text_values import text_row, typed_values, usual_values
from bridge.schema import ArrayType
from bridge.ways import NotThisWay
from tests.formats.support import row_type, scalar

_ROW = row_type(a=scalar("INT"), b=ArrayType(scalar("INT")), c=scalar("BOOLEAN"))


@pytest.mark.parametrize(
    ("type", "usual", "unusual"),
    [
        (scalar("TINYINT"), ["127", "-128", "007", "-0"], ["128", "+1", " 1", "1.0", "", "١"]),
        (scalar("BIGINT"), ["9223372036854775807"], ["9223372036854775808", "1e3"]),
        (scalar("DECIMAL", 5, 2), ["1", "-999.99", "0.5"], ["1000", "1.005", ".5", "1.", "1e2"]),
        (scalar("DOUBLE"), ["1", "-0.5", "1e10", "4.9E-324"], ["1e400", "NaN", "1d", "0x1", ".5"]),
        (scalar("BOOLEAN"), ["true", "false"], ["True", "1", ""]),
        (scalar("DATE"), ["2026-02-28"], ["2026-02-29", "2026-2-28"]),
        (scalar("TIMESTAMP", 3), ["2026-02-28 10:00:00.1234"], ["2026-02-28T10:00:00"]),
        (scalar("STRING"), ["", "x", "1"], []),
    ],
)
def test_usual_texts(type: Any, usual: list[str], unusual: list[str]) -> None:
    values = usual_values(pa.array([*usual, None]), type)
    assert (len(values), values.null_count) == (len(usual) + 1, 1)
    for text in unusual:
        with pytest.raises(pa.ArrowInvalid):
            usual_values(pa.array([*usual, text]), type)


def test_rows_of_texts() -> None:
    assert text_row(_ROW) == row_type(a=scalar("STRING"), b=ArrayType(scalar("INT")), c=scalar("STRING"))
    given = [{"a": "1", "b": [2], "c": "1"}, None, {"a": None, "b": None, "c": "true"}]
    texts = pa.array(given, arrow_type(text_row(_ROW)))
    rows = [{"a": 1, "b": [2], "c": False}, None, {"a": None, "b": None, "c": True}]
    assert typed_values(texts, _ROW, iso_8601=False).to_pylist() == rows
    lists = pa.array([given, None, []], arrow_type(ArrayType(text_row(_ROW))))
    assert typed_values(lists, ArrayType(_ROW), iso_8601=False).to_pylist() == [rows, None, []]
    with pytest.raises(NotThisWay, match="field 'a' has an unusual INT"):
        typed_values(pa.array([{"a": "x", "b": None, "c": None}], texts.type), _ROW, iso_8601=False)
