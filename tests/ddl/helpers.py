"""Helpers to write the statements of these tests."""

from __future__ import annotations

import pytest

from bridge.ddl import Ddl, parse
from bridge.errors import DdlError
from bridge.schema import DataType


def table(*elements: str) -> Ddl:
    """The table with these elements, one a line; the first is line 2."""
    return parse("CREATE TABLE t (\n" + ",\n".join(elements) + "\n) WITH ('connector' = 'kafka')", "t.sql")


def type_of(text: str) -> DataType:
    return table(f"c {text}").schema.physical[0].type


def refusal(*elements: str) -> DdlError:
    """The error that `table(*elements)` raises."""
    with pytest.raises(DdlError) as error:
        table(*elements)
    return error.value


def place(error: DdlError) -> tuple[int, int]:
    return error.line, error.column
