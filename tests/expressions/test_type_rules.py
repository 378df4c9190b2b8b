"""Flink's rules for types."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from bridge.ddl import parse
from bridge.expressions.type_rules import (
    NULL,
    arithmetic,
    common,
    comparable,
    fits,
    is_unchanged,
    keeps_apart,
    literal,
)
from bridge.schema import DataType, ScalarType


def type_of(text: str) -> DataType:
    return parse(f"CREATE TABLE t (c {text}) WITH ('connector' = 'print')").schema.physical[0].type


@pytest.mark.parametrize(
    ("given", "wanted", "is_legal"),
    [
        ("INT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("INT", "DECIMAL(5, 2)", True),
        ("DOUBLE", "DECIMAL(5, 2)", True),
        ("DOUBLE", "FLOAT", False),
        ("DECIMAL(5, 2)", "DOUBLE", True),
        ("DECIMAL(5, 2)", "BIGINT", False),
        ("VARCHAR(3)", "STRING", True),
        ("STRING", "VARCHAR(3)", True),
        ("STRING", "CHAR(3)", False),
        ("STRING", "BIGINT", False),
        ("BIGINT", "STRING", False),
        ("BOOLEAN", "STRING", False),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", True),
        ("TIMESTAMP(3)", "DATE", True),
        ("DATE", "TIMESTAMP(3)", False),
        ("BYTES", "BINARY(3)", False),
        ("BINARY(3)", "BYTES", True),
        ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("ARRAY<INT>", "ARRAY<STRING>", False),
        ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", True),
        ("ROW<a INT>", "ROW<b BIGINT>", True),
        ("ROW<a INT>", "ROW<a INT, b INT>", False),
        ("ROW<a INT>", "INT", False),
    ],
)
def test_fits(given: str, wanted: str, is_legal: bool) -> None:
    assert fits(type_of(given), type_of(wanted)) is is_legal


def test_null_and_unknown_types_fit() -> None:
    assert fits(NULL, type_of("ARRAY<INT>"))
    assert fits(None, type_of("INT"))


@pytest.mark.parametrize(
    ("types", "found"),
    [
        (["INT", "BIGINT"], "BIGINT"),
        (["INT", "DECIMAL(4, 2)"], "DECIMAL(12, 2)"),
        (["DECIMAL(38, 0)", "DECIMAL(10, 10)"], "DECIMAL(38, 0)"),
        (["DECIMAL(4, 2)", "FLOAT"], "DOUBLE"),
        (["CHAR(3)", "VARCHAR(5)"], "STRING"),
        (["BINARY(3)", "BYTES"], "BYTES"),
        (["ARRAY<INT>", "ARRAY<INT>"], "ARRAY<INT>"),
        (["TIMESTAMP(3)", "TIMESTAMP(3)"], "TIMESTAMP(3)"),
        (["TIMESTAMP(3)", "TIMESTAMP(6)"], "TIMESTAMP(6)"),
        (["TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"], None),
        (["INT", "STRING"], None),
    ],
)
def test_common(types: list[str], found: str | None) -> None:
    assert common([NULL, *map(type_of, types)]) == (found and type_of(found))


def test_common_type_of_unknown_types() -> None:
    assert common([ScalarType("INT"), None]) is None
    assert common([]) == NULL


@pytest.mark.parametrize(
    ("text", "left", "right", "found"),
    [
        ("a + b", "INT", "BIGINT", "BIGINT"),
        ("a + b", "DECIMAL(4, 2)", "DECIMAL(5, 1)", "DECIMAL(7, 2)"),
        ("a * b", "DECIMAL(4, 2)", "DECIMAL(5, 1)", "DECIMAL(10, 3)"),
        ("a / b", "DECIMAL(4, 2)", "DECIMAL(5, 1)", "DECIMAL(11, 8)"),
        ("a % b", "DECIMAL(4, 2)", "DECIMAL(5, 1)", "DECIMAL(4, 2)"),
        ("a * b", "DECIMAL(30, 10)", "DECIMAL(30, 10)", "DECIMAL(38, 6)"),
        ("a - b", "INT", "FLOAT", "FLOAT"),
        ("a - b", "FLOAT", "FLOAT", "FLOAT"),
        ("a - b", "STRING", "INT", None),
        ("a - b", "TIMESTAMP(3)", "TIMESTAMP(3)", None),
        ("a % b", "INT", "SMALLINT", "SMALLINT"),
        ("a % b", "SMALLINT", "INT", "INT"),
        ("a * b", "FLOAT", "DECIMAL(4, 2)", "DOUBLE"),
        ("a * b", "FLOAT", "DOUBLE", "FLOAT"),
        ("a * b", "DOUBLE", "FLOAT", "DOUBLE"),
    ],
)
def test_arithmetic(text: str, left: str, right: str, found: str | None) -> None:
    node: exp.Expr = parse_one(text)
    assert arithmetic(node, type_of(left), type_of(right)) == (found and type_of(found))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("'x'", "STRING"),
        ("1", "INT"),
        ("2147483648", "BIGINT"),
        ("9223372036854775808", "DECIMAL(19, 0)"),
        ("1.50", "DECIMAL(3, 2)"),
        ("0.05", "DECIMAL(2, 2)"),
        ("1e3", "DOUBLE"),
    ],
)
def test_literals(text: str, found: str) -> None:
    node = parse_one(text)
    assert isinstance(node, exp.Literal)
    assert literal(node) == type_of(found).required()


@pytest.mark.parametrize(
    ("left", "right", "is_legal"),
    [
        ("INT", "DOUBLE", True),
        ("INT", "STRING", False),
        ("TIMESTAMP(3)", "STRING", True),
        ("TIMESTAMP(3)", "INT", False),
        ("BOOLEAN", "INT", False),
        ("DATE", "TIMESTAMP_LTZ(3)", False),
    ],
)
def test_comparable(left: str, right: str, is_legal: bool) -> None:
    assert comparable(type_of(left), type_of(right)) is is_legal
    assert comparable(type_of(right), type_of(left)) is is_legal


@pytest.mark.parametrize(
    ("given", "wanted", "unchanged", "apart"),
    [
        ("TIMESTAMP(3)", "TIMESTAMP(6)", True, True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False, False),
        ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", False, True),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP(1)", False, False),
        (None, "TIMESTAMP(6)", False, False),
        ("DECIMAL(10, 2)", "DECIMAL(10, 0)", False, False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 3)", False, True),
        ("INT", "BIGINT", False, True),
        ("INT", "DECIMAL(10, 0)", False, True),
        ("INT", "DECIMAL(5, 0)", False, False),
        ("DECIMAL(10, 2)", "DECIMAL(9, 2)", False, False),
        ("DECIMAL(5, 1)", "DOUBLE", False, False),
        ("BIGINT", "DOUBLE", False, False),
        ("FLOAT", "DOUBLE", False, True),
        ("TIMESTAMP(3)", "DATE", False, False),
        ("DATE", "TIMESTAMP(0)", False, True),
        ("VARCHAR(3)", "STRING", True, True),
        ("ARRAY<TIMESTAMP(6)>", "ARRAY<TIMESTAMP(3)>", False, False),
        ("MAP<TIMESTAMP(0), INT>", "MAP<TIMESTAMP(3), INT>", True, True),
        ("ROW<a TIMESTAMP(6)>", "ROW<a TIMESTAMP(3)>", False, False),
    ],
)
def test_what_a_cast_keeps(given: str | None, wanted: str, unchanged: bool, apart: bool) -> None:
    types = None if given is None else type_of(given), type_of(wanted)
    assert (is_unchanged(*types), keeps_apart(*types)) == (unchanged, apart)
