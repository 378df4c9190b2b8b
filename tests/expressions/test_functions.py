"""What `bridge validate` accepts, Spark takes: drawn calls in one another are analysed without an error."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import count, islice

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from bridge.ddl.refused_parts import NON_DETERMINISTIC
from bridge.errors import DefinitionError
from bridge.expressions.names import RESERVED
from bridge.expressions.signatures import FUNCTIONS, SIGNATURES
from tests.ddl.helpers import refusal
from tests.expressions.places import SOURCE, selected
from tests.expressions.vectors import TYPES, accepted, drawn_seed, inputs

_DRAWN, _DEEPEST, _AT_ONCE = 250, 3, 5
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


_OUTSIDE = (
    *(
        "{} ^ {}",
        "{} & {}",
        "{} | {}",
        "~{}",
        "!({})",
        "+{}",
        "{} DIV {}",
        "{} == {}",
        "{} <=> {}",
        "{} -> {}",
    ),
    *("{} SIMILAR TO {}", "{} ILIKE {}", "{} RLIKE {}", "{} REGEXP {}", "{} GLOB {}", "{} LIKE ANY ({}, {})"),
    *("{} COLLATE utf8", "{} AT TIME ZONE {}", "({}, {}) OVERLAPS ({}, {})", "{} MEMBER OF {}", "{} IS JSON"),
    *("{} IS NOT JSON OBJECT", "{} IS {}", "{} IS OF (INT)", "{} IS UNKNOWN", "{} IS NOT TRUE", "{} ISNULL"),
    *("{} NOTNULL", "{} IS DISTINCT FROM {}", "{} IS NOT DISTINCT FROM {}", "{} BETWEEN SYMMETRIC {} AND {}"),
    *(
        "({}, {})",
        "{} AS x",
        "(SELECT {})",
        "EXISTS (SELECT {})",
        "{} IN (SELECT {})",
        "{} = ANY (SELECT {})",
    ),
    *(
        "{}.*",
        "*",
        "?",
        "{}::INT",
        "{} 'a'",
        "{}[{}]",
        "{}[1].f",
        "ROW({}).f",
        "STRUCT({} AS a)",
    ),
    *(
        "CONVERT({}, INT)",
        "TRY_CONVERT({}, INT)",
        "SAFE_CAST({} AS INT)",
        "CAST({} AS INT FORMAT {})",
        "CHAR({})",
    ),
    *("CAST({} AS INTERVAL DAY)", "CAST({} AS MULTISET<INT>)", "JSON_OBJECT({} VALUE {})", "JSON_ARRAY({})"),
    *(
        "JSON_OBJECT(KEY {} VALUE {})",
        "JSON_VALUE({}, '$.a' RETURNING INT)",
        "JSON_ARRAYAGG({})",
        "MAP[{}, {}]",
    ),
    *("UPPER(DISTINCT {})", "UPPER(*)", "UPPER({}) FILTER (WHERE {})", "own_function({}) FILTER (WHERE {})"),
    *("COUNT(*)", "SUM({})", "SUM(DISTINCT {})", "MIN({}) FILTER (WHERE {})", "COUNT({}, {})", "AVG(*)"),
    *("SUM({}) OVER ()", "RANK() OVER (ORDER BY {})", "LAG({}, 1) OVER (PARTITION BY {} ORDER BY {})"),
    *("LISTAGG({}, ',')", "TUMBLE({}, INTERVAL '1' DAY)", "TUMBLE_END({}, INTERVAL '1' DAY)", "UNNEST({})"),
    *("TABLE(f({}))", "LATERAL {}", "CASE {} WHEN {} THEN {} ELSE {} END", "CASE {} END", "IF({}, {})"),
    *("TRANSFORM({}, x -> x)", "INTERVAL {} DAY", "INTERVAL '1' DAY", "DATE {}", "`upper`({})"),
    *("own_function({}, {})", "ROW_NUMBER() OVER ()"),
)
"""Operators and calls that a reader of SQL knows, whether Flink has them or not."""


def _names(spark: SparkSession) -> list[str]:
    """All names of functions that Spark or Flink has, but those of the table."""
    built_in = {row[0].upper() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    names = {name for name in built_in if re.fullmatch(r"\w+", name)}
    return sorted((names | RESERVED | NON_DETERMINISTIC) - FUNCTIONS)


@pytest.fixture
def names(spark: SparkSession) -> Iterator[list[str]]:
    """The same, while the session has a function of a user, too."""
    names = _names(spark)
    spark.udf.register("own_function", lambda *_: None, "STRING")
    yield names
    spark.sql("DROP TEMPORARY FUNCTION own_function")


# PySpark leaves the socket of a collect() for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_is_outside_of_the_table_is_refused_or_analysed(spark: SparkSession, names: list[str]) -> None:
    seed = drawn_seed()
    draw = random.Random(seed)
    every = [f"{name}({', '.join(['{}'] * draw.randint(0, 2))})" for name in names]
    forms = [*every, *_OUTSIDE * 4]
    drawn = [re.sub(r"\{\}", lambda _: _expression(draw, 2), form) for form in forms]
    drawn += [f"UPPER(CAST({text} AS STRING))" for text in draw.sample(drawn, 100)]
    table = inputs(spark)
    table.createOrReplaceTempView(SOURCE)
    computed = list(accepted(drawn))
    assert not_analysed(table, computed) == [], f"drawn with {seed=}"
    for name in ("SELECT", "WHERE"):
        taken = [text for text in drawn if _is_taken(text, name)]
        assert _not_analysed_queries(spark, taken, name) == [], f"{name}: drawn with {seed=}"
    spark.catalog.dropTempView(SOURCE)


def test_a_function_of_spark_is_not_taken_for_a_user_s(names: list[str]) -> None:
    taken = [n for n in names for _, text in accepted([f"{n}()", f"{n}(c_i)", f"{n}(c_i, c_i)"])]
    assert (
        sorted(set(taken) - {"CAST", "CHAR", "EXTRACT", "FLOOR", "CEIL", "IF", "NOT", "TRIM", "OVERLAY"})
        == []
    )


def _query(chosen: Sequence[str], place: str) -> str:
    if place == "WHERE":
        return selected("rid", " AND ".join(f"({text})" for text in chosen))
    return selected(", ".join(f"{text} AS v{n}" for n, text in enumerate(chosen)))


def _is_taken(text: str, place: str) -> bool:
    try:
        _query([text], place)
    except DefinitionError:
        return False
    return True


def _not_analysed_queries(spark: SparkSession, chosen: Sequence[str], place: str) -> list[str]:
    """Those that Spark does not take: at most five at once, as a condition is told again for each after it."""
    found = []
    of_groups = [text for text in chosen if "HAVING" in _query([text], place)]
    others = [text for text in chosen if text not in of_groups]
    for texts in (others, of_groups):
        for at in range(0, len(texts), _AT_ONCE):
            part = texts[at : at + _AT_ONCE]
            try:
                spark.sql(_query(part, place))
            except AnalysisException:
                found += [text for text in part if _error(spark, _query([text], place))]
    return found


def _error(spark: SparkSession, query: str) -> str:
    try:
        spark.sql(query)
    except AnalysisException as error:
        return str(error)
    return ""


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
        (
            "INITCAP('a')",
            "the function INITCAP is not supported in this version: write it with other functions",
        ),
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
