"""Odd constants in every place of calls and operators are a value or a refusal, and what is accepted, Spark takes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from bridge.expressions.signatures import SIGNATURES
from tests.ddl.helpers import refusal
from tests.expressions.test_functions import not_analysed
from tests.expressions.vectors import TYPES, accepted, drawn_seed, inputs

_TEXTS = (
    *(
        "",
        " ",
        "x",
        "-",
        "1:30",
        "1.5",
        "1e5",
        "²",
        "١",
        "9" * 30,
        "\0",
        "\\",
        "%Y",
        "''",
        "yyyyy",
        "😀",
        "!",
    ),
    *("(", "[a", "[[a]", "a{99999999999}", "(?<", "(a)\\2", "(?P<a>x)(?P=b)", "(" * 4000, "\\p{L}", "(?i"),
    *("2024-99-99", "0000-00-00", "1 2", "1-2", "$.a[", "/etc", "Europe", "UTC", "1:90", "-25"),
)
_ODD = (
    *(f"'{text}'" for text in _TEXTS),
    *(
        "-1",
        "0",
        "(1)",
        "- 'x'",
        "1.5",
        "1E400",
        "9" * 41,
        "0x1F",
        "NULL",
        "TRUE",
        "X'4'",
        "CAST('x' AS INT)",
    ),
    *("DATE '2024-02-29'", "DATE 'x'", "TIMESTAMP 'x'", "INTERVAL '1:30' HOUR", "INTERVAL '1' DAY", "ROW(1)"),
    *("ARRAY[]", "ARRAY[NULL]", "ARRAY[1]", "ROW(NULL)", "MAP_FROM_ARRAYS(ARRAY[], ARRAY[])"),
)
_FORMS = (
    *(
        "c_texts[{}]",
        "c_integers[{}]",
        "c_map[{}]",
        "c_texts[1, {}]",
        "c_texts[1:{}]",
        "{}[1]",
        "{}.a",
        "({})",
    ),
    *(
        "c_day + INTERVAL {} HOUR",
        "c_day - INTERVAL {} SECOND",
        "INTERVAL {} DAY + c_day",
        "INTERVAL {} DAY - c_day",
    ),
    *("c_ts + INTERVAL {} MINUTE", "c_ts - INTERVAL {} DAY TO HOUR", "c_day + (- INTERVAL {} HOUR)"),
    *(
        "c_ts + INTERVAL {} YEAR TO MONTH",
        "c_ts + INTERVAL {}",
        "c_ts + INTERVAL '1' {}",
        "c_ts * INTERVAL {} DAY",
    ),
    *(
        "c_day + {}",
        "c_ts - {}",
        "- {}",
        "{} + 1",
        "1 / {}",
        "{} % 2",
        "{} * c_m",
        "{} || 'x'",
        "{} IS NULL",
        "{} IS TRUE",
    ),
    *(
        "c_text LIKE {}",
        "c_text LIKE c_text2 ESCAPE {}",
        "c_text LIKE {} ESCAPE '!'",
        "c_text IN ({})",
        "{} IN (1)",
    ),
    *("{} = c_text", "{} = c_i", "c_ts < {}", "{} = ROW(1)", "c_i BETWEEN {} AND 1", "c_b AND {}", "NOT {}"),
    *(
        "CAST({} AS DATE)",
        "TRY_CAST({} AS DATE)",
        "CAST({} AS TIMESTAMP(3))",
        "CAST({} AS INT)",
        "CAST({} AS BYTES)",
    ),
    *("CAST({} AS DECIMAL(3, 1))", "CAST({} AS BOOLEAN)", "CAST({} AS CHAR(3))", "CAST({} AS ARRAY<INT>)"),
    *("EXTRACT({} FROM c_ts)", "EXTRACT(YEAR FROM {})", "FLOOR({} TO DAY)", "FLOOR(c_ts TO {})", "CEIL({})"),
    *(
        "FLOOR()",
        "FLOOR(c_d, {})",
        "SUBSTRING({})",
        "SUBSTRING(c_text FOR {})",
        "SUBSTRING(c_text FROM {} FOR 1)",
    ),
    *("TRIM({} FROM c_text)", "POSITION({} IN c_text)", "OVERLAY(c_text PLACING {} FROM 1)", "c_text IN ()"),
    *("OVERLAY(c_text PLACING 'x' FROM {} FOR {})", "CASE {} WHEN c_i THEN 1 END", "CASE WHEN {} THEN 1 END"),
    *(
        "IF(c_b, {}, c_i)",
        "DATE {}",
        "TIMESTAMP {}",
        "ARRAY[{}]",
        "ROW({})",
        "TIMESTAMPADD({}, 1, c_ts)",
        "()",
    ),
)
_DRAWN_OF_EACH, _ANALYSED = 2, 200


def _calls() -> Iterator[str]:
    """Each function with each number of arguments, and braces in place of one argument or of all."""
    for signature in SIGNATURES:
        for count in range(signature.least, len(signature.kinds) + 1 + signature.is_open):
            kinds = signature.kinds_of(count)
            columns = ["DAY" if k == "unit" else f"c_{k}" if f"c_{k}" in TYPES else "c_text" for k in kinds]
            for place in range(count):
                yield f"{signature.name}({', '.join([*columns[:place], '{}', *columns[place + 1 :]])})"
            if count > 1:
                yield f"{signature.name}({', '.join(['{}'] * count)})"


def test_an_odd_constant_is_accepted_or_refused_and_spark_takes_what_is_accepted(spark: SparkSession) -> None:
    seed = drawn_seed()
    draw = random.Random(seed)
    forms = [*_FORMS, *_calls()] * _DRAWN_OF_EACH
    found = list(accepted(form.replace("{}", draw.choice(_ODD)) for form in forms))
    chosen = draw.sample(found, _ANALYSED)
    assert not_analysed(inputs(spark), chosen) == [], f"drawn with {seed=}"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a['x']", "the position of an item is an INT, and begins at 1; CAST it"),
        ("a[0]", "the position of an item is an INT, and begins at 1; CAST it"),
        ("a[1, 2]", "the position of an item is an INT, and begins at 1; CAST it"),
        ("m['x']", "MAP<INT, STRING> takes a key of INT in brackets"),
        ("x[1]", "INT takes no item in brackets"),
        ("ARRAY[NULL]", "the type of the items of this ARRAY is not known"),
        ("CAST(x AS ARRAY<INT>)", "INT cannot be cast to ARRAY<INT>"),
        ("d + INTERVAL '1:30' HOUR", "INTERVAL '1:30' HOUR is no interval; write it like INTERVAL '1' HOUR"),
        (
            "d + INTERVAL '1:90' HOUR TO MINUTE",
            "INTERVAL '1:90' HOUR TO MINUTE is no interval; write it like",
        ),
        ("d + INTERVAL '1' WEEK", "Flink adds another length than a WEEK for it; write INTERVAL '7' DAY"),
        (
            "d + INTERVAL '1' FORTNIGHT",
            "the unit 'FORTNIGHT' of an INTERVAL is not supported; legal: YEAR, MONTH",
        ),
        (
            "d + INTERVAL x DAY",
            "the length of an INTERVAL must be a constant; TIMESTAMPADD(unit, count, time)",
        ),
        ("INTERVAL '1' DAY - d", "a time cannot be taken from an INTERVAL"),
        ("ROW(INTERVAL '1' DAY)", "an INTERVAL is added to a time or taken from one"),
        ("TIMESTAMPADD('DAY', 1, d)", "the unit 'DAY' of TIMESTAMPADD is not supported; legal: SECOND"),
        ("SUBSTRING('a')", "SUBSTRING does not take (STRING NOT NULL); legal: SUBSTRING(text, count, count)"),
        ("TRIM(x FROM 'a')", "TRIM does not take (STRING NOT NULL, INT); legal: TRIM(text, chars)"),
        ("FLOOR()", "FLOOR takes one number, or a time TO a unit; ROUND and TRUNCATE take digits"),
        ("FLOOR(1.55, 1)", "FLOOR takes one number, or a time TO a unit; ROUND and TRUNCATE take digits"),
        ("CEIL('x')", "CEIL takes a number, or a time TO a unit, not STRING NOT NULL; CAST it"),
        (
            "'a' LIKE 'a!x' ESCAPE '!'",
            "the pattern 'a!x' of LIKE has '!', its escape, before another character",
        ),
        ("'a' LIKE 'a' ESCAPE 'xy'", "the escape of LIKE must be a constant of one character"),
        ("x IN ()", "IN takes a list of values, and there is none"),
        ("x IS TRUE", "a condition is BOOLEAN, and this is INT"),
        ("EXTRACT(YEAR FROM x)", "EXTRACT takes a DATE or a time, not INT; CAST it"),
        ("-'x'", "a sign stands before a number or an INTERVAL, not before STRING NOT NULL"),
        ("1E400", "the number 1E400 is larger than a DOUBLE"),
        ("9" * 41, "the number " + "9" * 41 + " has more than the 38 digits of a DECIMAL"),
        (
            "CASE ARRAY[1] WHEN x THEN 1 END",
            "ARRAY<INT NOT NULL> and INT cannot be compared; CAST one of them",
        ),
        ("ARRAY[m] = ARRAY[m]", "ARRAY<MAP<INT, STRING>> and ARRAY<MAP<INT, STRING>> cannot be compared"),
        ("x IN (1, 2.5)", "IN casts each value to INT, which 2.5 does not fit: CAST it, or write = and OR"),
        ("x IN (x, 15E-1)", "IN casts each value to INT, which 15E-1 does not fit"),
        ("CAST(x AS DECIMAL(3, 1)) IN (x)", "IN casts each value to DECIMAL(3, 1), which INT does not fit"),
        (
            "d = '2024-13-01'",
            "'2024-13-01' cannot be compared with DATE; CAST it, or write a constant such as",
        ),
        ("d IN ('2024-02-29', 'x')", "'x' cannot be compared with DATE; CAST it"),
        (
            "CAST(x AS STRING) < CAST(d AS TIMESTAMP(3))",
            "STRING cannot be compared with TIMESTAMP(3); CAST it, or",
        ),
        ("NULLIF(d, CAST(x AS STRING))", "STRING cannot be compared with DATE; CAST it"),
        ("CASE CAST(x AS STRING) WHEN d THEN 1 END", "STRING cannot be compared with DATE; CAST it"),
        ("ROW(x) <> ROW(1)", "rows are compared by = and IN; compare their fields"),
        ("ROW(x) IS DISTINCT FROM ROW(1)", "rows are compared by = and IN; compare their fields"),
        ("ROW(ROW(x)) = ROW(ROW(x))", "a row in a row is not compared; compare the fields"),
        (
            "ARRAY[ROW(x)][1] = ROW(x)",
            "only rows that are written as ROW(…) are compared; compare the fields",
        ),
        ("X'00' || 'a'", "|| joins two texts or two BYTES; CAST one of them"),
        ("x LIKE 'a'", "LIKE takes two texts, not INT and STRING NOT NULL; CAST one of them"),
        ("CASE x WHEN 1 THEN 1 ELSE IF(x, 1, 2) END", "a condition is BOOLEAN, and this is INT"),
        ("CASE x WHEN 1 THEN 1 ELSE IF(x = 1, 1) END", "IF takes a condition and two values"),
    ],
)
def test_refused(expression: str, message: str) -> None:
    given = ["x INT", "d DATE", "a ARRAY<STRING>", "m MAP<INT, STRING>"]
    assert refusal(*given, f"c AS {expression}").message.startswith(f"computed column `c`: {message}")
