"""What `bridge validate` accepts, Spark takes: drawn calls in one another are analysed without an error."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count, islice

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from bridge.expressions.signatures import SIGNATURES
from tests.ddl.helpers import refusal
from tests.expressions.vectors import TYPES, accepted, drawn_seed, inputs

_DRAWN, _DEEPEST = 250, 3
_CONSTANTS = (
    "1",
    "-2",
    "0",
    "'a'",
    "'%Y'",
    "''",
    "2.50",
    "1E3",
    "TRUE",
    "NULL",
    "DATE '2024-02-29'",
    "'UTC'",
    "'$.a'",
)
_OPERATORS = ("+", "-", "*", "/", "%", "||", "=", "<", "AND", "OR")


def _expression(draw: random.Random, depth: int) -> str:
    if depth >= _DEEPEST or draw.random() < 0.25:
        return draw.choice([*TYPES, *_CONSTANTS])
    kind = draw.randrange(10)
    if kind < 6:
        signature = draw.choice(SIGNATURES)
        count = draw.randint(signature.least, len(signature.kinds))
        arguments = [_expression(draw, depth + 1) for _ in range(count)]
        if "unit" in signature.kinds:
            arguments[0] = draw.choice(["DAY", "SECOND", "MONTH"])
        return f"{signature.name}({', '.join(arguments)})"
    if kind < 8:
        sign = draw.choice(_OPERATORS)
        return f"({_expression(draw, depth + 1)} {sign} {_expression(draw, depth + 1)})"
    type = draw.choice(
        ["STRING", "INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "DATE", "TIMESTAMP(3)", "CHAR(3)"]
    )
    if kind == 8:
        return f"{draw.choice(['CAST', 'TRY_CAST'])}({_expression(draw, depth + 1)} AS {type})"
    return f"CASE WHEN {_expression(draw, depth + 1)} THEN {_expression(draw, depth + 1)} END"


def test_what_is_accepted_is_analysed(spark: SparkSession) -> None:
    seed = drawn_seed()
    table = inputs(spark)
    draw = random.Random(seed)
    chosen = list(islice(accepted(_expression(draw, 0) for _ in count()), _DRAWN))
    assert not_analysed(table, chosen) == [], f"drawn with {seed=}"


def not_analysed(table: DataFrame, chosen: Sequence[tuple[str, str]]) -> list[str]:
    """Those that Spark does not take, of pairs of an expression and its text in Spark; all at once where it takes
    them."""
    try:
        table.selectExpr(*(text for _, text in chosen))
    except AnalysisException as error:
        if len(chosen) == 1:
            return [f"{chosen[0][0]}: {str(error).splitlines()[0][:200]}"]
        middle = len(chosen) // 2
        return not_analysed(table, chosen[:middle]) + not_analysed(table, chosen[middle:])
    return []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("LEFT(1, 2)", "LEFT does not take (INT NOT NULL, INT NOT NULL); legal: LEFT(text, count)"),
        (
            "COALESCE()",
            "COALESCE does not take (); legal: COALESCE(text…); COALESCE(number…); COALESCE(value…)",
        ),
        ("CASE WHEN COALESCE(x, NULL) THEN 1 END", "a condition is BOOLEAN, and this is INT"),
        ("CASE WHEN IFNULL(NULL, x) - 0 THEN 1 END", "a condition is BOOLEAN, and this is INT"),
        ("INITCAP('a')", "the function INITCAP of Flink is not supported"),
        ("UNIX_TIMESTAMP()", "UNIX_TIMESTAMP does not take (); legal: UNIX_TIMESTAMP(time_text, pattern)"),
        ("TO_TIMESTAMP_LTZ(1, 6)", "the unit of the arguments of TO_TIMESTAMP_LTZ must be known"),
        (
            "TO_DATE('240229', 'yyMMdd')",
            "the format 'yyMMdd' has a year of two digits, whose century depends on the clock in Flink; write yyyy",
        ),
        ("TO_TIMESTAMP('60', 'D')", "the format 'D' of a time has D, which is not supported"),
        (
            "CAST(1 AS DECIMAL(38, 0)) < CAST(1 AS DECIMAL(38, 18))",
            "Spark compares DECIMAL(38, 0) and DECIMAL(38, 18) without their last digits, as both together have more",
        ),
        ("SHA2('a', 100)", "the bits of SHA2 must be a constant: 224, 256, 384, 512"),
    ],
)
def test_refused(expression: str, message: str) -> None:
    assert refusal("x INT", f"c AS {expression}").message.startswith(f"computed column `c`: {message}")
