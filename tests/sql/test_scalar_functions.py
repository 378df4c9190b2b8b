"""Every function that a query may call gives in Spark what Flink's manual says.

Calls and results are those of Flink's page of system functions, or follow from its text.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.ddl.functions import DIFFERENT
from bridge.session import child_session
from bridge.sql.scalar_functions import FUNCTIONS
from tests.sql.scripts import load, refusal

T = "TIMESTAMP '1994-09-27 13:14:15.678'"
D = "DATE '1994-09-27'"
CALLS: dict[str, object] = {
    "UPPER('aB1')": "AB1", "LOWER('aB1')": "ab1", "LTRIM(' a ')": "a ", "RTRIM(' a ')": " a", "BTRIM(' a ')": "a",
    "BTRIM('xyax', 'yx')": "a",
    "CONCAT('AA', 'BB', 'CC')": "AABBCC", "CONCAT('a', nothing)": None,
    "CONCAT_WS('~', 'AA', nothing, 'BB', '', 'CC')": "AA~BB~~CC", "CONCAT_WS(nothing, 'a')": None,
    "REPLACE('hello world', 'world', 'flink')": "hello flink", "REPLACE('ababab', 'abab', 'z')": "zab",
    "REPEAT('ab', 2)": "abab", "REPEAT('ab', 0)": "", "REVERSE('abc')": "cba",
    "LPAD('hi', 4, '??')": "??hi", "LPAD('hi', 1, '??')": "h", "RPAD('hi', 4, '??')": "hi??", "RPAD('hi', 1, '?')": "h",
    "LEFT('abc', 2)": "ab", "LEFT('abc', -1)": "", "RIGHT('abc', 2)": "bc", "RIGHT('abc', -1)": "",
    "SUBSTR('abcd', 2)": "bcd", "SUBSTR('abcd', 2, 2)": "bc", "SUBSTRING('abcd', 2, 2)": "bc",
    "SUBSTR('abcd', -2)": "cd",
    "REGEXP_REPLACE('foobar', 'oo|ar', '')": "fb", "REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)', 2)": "bar",
    "REGEXP_EXTRACT('foothebar', 'x(.*)', 1)": None, "REGEXP('foobar', 'o+b')": True, "REGEXP('foobar', '^o')": False,
    f"DATE_FORMAT({T}, 'yyyy-MM-dd HH:mm:ss.SSS')": "1994-09-27 13:14:15.678",
    "FROM_BASE64('aGVsbG8gd29ybGQ=')": "hello world", "TO_BASE64('hello world')": "aGVsbG8gd29ybGQ=",
    "HEX(20)": "14", "HEX(100)": "64", "HEX('hello,world')": "68656C6C6F2C776F726C64",
    "CHR(97)": "a", "CHR(353)": "a", "BIN(4)": "100", "BIN(12)": "1100",
    "MD5('a')": "0cc175b9c0f1b6a831c399e269772661", "SHA1('a')": "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8",
    "LEFT(SHA2('a', 256), 8)": "ca978112", "LEFT(SHA224('a'), 8)": "abd37534", "LEFT(SHA256('a'), 8)": "ca978112",
    "LEFT(SHA384('a'), 8)": "54a59b9f", "LEFT(SHA512('a'), 8)": "1f40fc92",
    "TRANSLATE('abcba', 'ab', 'x')": "xcx", "FROM_UNIXTIME(44)": "1970-01-01 00:00:44",
    "FROM_UNIXTIME(44, 'mm:ss')": "00:44",
    "CHAR_LENGTH('aä€')": 3, "CHARACTER_LENGTH('')": 0, "ASCII('abc')": 97, "ASCII(nothing)": None,
    "INSTR('abcb', 'b')": 2, "INSTR('abc', 'x')": 0, "LOCATE('b', 'abcb')": 2, "LOCATE('b', 'abcb', 3)": 4,
    "LOCATE('x', 'abc')": 0, "POSITION('b' IN 'abc')": 2,
    f"TIMESTAMPDIFF(DAY, TIMESTAMP '1994-09-25 14:00:00', {T})": 1,
    f"TIMESTAMPADD(HOUR, 1, {T})": datetime(1994, 9, 27, 14, 14, 15, 678000),
    f"YEAR({D})": 1994, f"QUARTER({D})": 3, f"MONTH({D})": 9, f"WEEK({D})": 39, "WEEK(DATE '2027-01-01')": 53,
    f"DAYOFYEAR({D})": 270, f"DAYOFMONTH({D})": 27, f"DAYOFWEEK({D})": 3, f"HOUR({T})": 13, f"MINUTE({T})": 14,
    f"SECOND({T})": 15, "UNIX_TIMESTAMP('1970-01-01 00:01:00')": 60,
    "UNIX_TIMESTAMP('02.01.1970', 'dd.MM.yyyy')": 86400,
    "SQRT(4)": 2.0, "EXP(0)": 1.0, "LN(1)": 0.0, "LN(0)": -math.inf, "LOG10(100)": 2.0, "LOG10(0)": -math.inf,
    "LOG2(8)": 3.0, "LOG2(nothing_double)": None, "LOG(1)": 0.0, "LOG(2, 8)": 3.0, "POWER(2, 3)": 8.0, "SIN(0)": 0.0,
    "COS(0)": 1.0, "TAN(0)": 0.0, "ROUND(COT(1), 4)": 0.6421, "ASIN(0)": 0.0, "ACOS(1)": 0.0, "ATAN(0)": 0.0,
    "ATAN2(0, 1)": 0.0, "SINH(0)": 0.0, "COSH(0)": 1.0, "TANH(0)": 0.0, "DEGREES(PI())": 180.0, "RADIANS(0)": 0.0,
    "ROUND(PI(), 5)": 3.14159, "ROUND(E(), 5)": 2.71828,
    "ROUND(CAST(2.5 AS DECIMAL(10, 1)), 0)": Decimal("3"), "ROUND(CAST(-2.5 AS DECIMAL(10, 1)), 0)": Decimal("-3"),
    "STARTSWITH('abc', 'ab')": True, "ENDSWITH('abc', 'ab')": False,
    "TO_DATE('2024-02-03')": date(2024, 2, 3), "TO_TIMESTAMP('2024-02-03 04:05:06')": datetime(2024, 2, 3, 4, 5, 6),
    "DATE_FORMAT(TO_TIMESTAMP_LTZ(44, 0), 'mm:ss')": "00:44",
    "ABS(-3)": 3, "SIGN(-3)": -1, "NULLIF(5, 5)": None, "NULLIF(5, 0)": 5, "COALESCE(nothing, 'a')": "a",
    "IFNULL(nothing, 'a')": "a", "MOD(-7, 3)": -1, "MOD(7, -3)": 1,
    "MAP_FROM_ARRAYS(ARRAY['k'], ARRAY[7])['k']": 7, "CARDINALITY(ARRAY[1, 2])": 2,
}  # fmt: skip
TABLE = (
    "CREATE TABLE t (id INT, nothing STRING, nothing_double DOUBLE, PRIMARY KEY (id) NOT ENFORCED) "
    "WITH ('connector' = 'delta', 'path' = 't');\n"
)


# PySpark leaves the socket of a collect() for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_values(spark: SparkSession) -> None:
    script = load(f"{TABLE}EXPLAIN SELECT {', '.join(CALLS)} FROM t;")
    (sql,) = script.explained
    assert isinstance(sql, str)
    session = child_session(spark)
    rows = session.createDataFrame([(1, None, None)], "id INT, nothing STRING, nothing_double DOUBLE")
    rows.createOrReplaceTempView("t")
    row = session.sql(sql).first()
    assert row is not None
    found = dict(zip(CALLS, row, strict=True))
    assert {c: v for c, v in found.items() if v != CALLS[c]} == {}


@pytest.mark.parametrize("call", ["LN(-1)", "LOG10(-1)", "LOG2(-1)"])
def test_a_logarithm_below_zero_is_no_number(spark: SparkSession, call: str) -> None:
    (sql,) = load(f"{TABLE}EXPLAIN SELECT {call} FROM t;").explained
    assert "'NaN'" in str(sql)


def test_every_function_is_tried() -> None:
    missing = {name for name in FUNCTIONS if not any(f"{name}(" in call for call in CALLS)}
    assert missing == {"ROW"}, "a ROW is no value of a comparison; its fields are tried with the sinks"


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_other_meanings_are_refused(name: str) -> None:
    assert refusal(f"SELECT {name}(region), user_id FROM views") == f"t.sql:6:8: {name} {DIFFERENT[name]}"


def test_the_documentation_lists_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    listed = page.partition("### Functions")[2].partition("|---|---|")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == FUNCTIONS
