"""Computed columns: expressions of Flink are translated to Spark SQL, or refused."""

from __future__ import annotations

import pytest

from tests.ddl.helpers import place, refusal, table

COLUMNS = (
    "a INT",
    "b BIGINT",
    "d DOUBLE",
    "s STRING",
    "ok BOOLEAN",
    "ts TIMESTAMP(3)",
    "l TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'",
    "arr ARRAY<INT>",
    "m MAP<STRING, INT>",
    "r ROW<f INT, g ROW<`h i` STRING>>",
    "`odd ``name`` . x` STRING",
)
LINE = len(COLUMNS) + 2


def _cut(value: str, type: str = "TIMESTAMP_NTZ") -> str:
    return f"CAST(TIMESTAMP_MILLIS(UNIX_MILLIS(CAST({value} AS TIMESTAMP))) AS {type})"


@pytest.mark.parametrize(
    ("flink", "spark"),
    [
        ("a", "`a`"),
        ("s || '-' || `odd ``name`` . x`", "`s` || '-' || `odd ``name`` . x`"),
        ("s || 'it''s \\n \"x\"'", "`s` || 'it\\'s \\\\n \"x\"'"),
        ("r.g.`h i`", "`r`.`g`.`h i`"),
        ("arr[1]", "TRY_ELEMENT_AT(`arr`, 1)"),
        ("m['k']", "TRY_ELEMENT_AT(`m`, 'k')"),
        ("ARRAY[a, 2]", "ARRAY(`a`, 2)"),
        ("ROW(a, s)", "NAMED_STRUCT('EXPR$0', `a`, 'EXPR$1', `s`)"),
        ("a IS NOT NULL AND (ok OR NOT a > 1)", "NOT `a` IS NULL AND (`ok` OR NOT `a` > 1)"),
        ("a BETWEEN 1 AND 2", "`a` BETWEEN 1 AND 2"),
        ("s IN ('x', 'y')", "`s` IN ('x', 'y')"),
        ("CASE WHEN ok THEN 'Y' ELSE s END", "CASE WHEN `ok` THEN 'Y' ELSE `s` END"),
        ("IF(ok, 1, 2)", "IF(`ok`, 1, 2)"),
        ("COALESCE(s, '')", "COALESCE(`s`, '')"),
        ("upper(s)", "upper(`s`)"),
        ("my_udf(s, 1)", "my_udf(`s`, 1)"),
        ("db.my_udf(s)", "`db`.my_udf(`s`)"),
        ("SUBSTRING(s FROM 2 FOR 3)", "SUBSTRING(`s`, 2, 3)"),
        ("TRIM(BOTH 'x' FROM s)", "TRIM(BOTH 'x' FROM `s`)"),
        ("POSITION('x' IN s)", "LOCATE('x', `s`)"),
        ("ts + INTERVAL '1' DAY", "`ts` + INTERVAL '1' DAY"),
        ("DATE_FORMAT(ts, 'yyyy-MM-dd')", "DATE_FORMAT(`ts`, 'yyyy-MM-dd')"),
        ("TIMESTAMP '2024-01-01 00:00:00'", "CAST('2024-01-01 00:00:00' AS TIMESTAMP_NTZ)"),
        ("DATE '2024-01-01'", "CAST('2024-01-01' AS DATE)"),
        ("TO_TIMESTAMP_LTZ(b, 3)", "TIMESTAMP_MILLIS(`b`)"),
        ("TO_TIMESTAMP_LTZ(b, 0)", "TIMESTAMP_SECONDS(`b`)"),
        ("REGEXP_EXTRACT(s, 'x')", "NULLIF(REGEXP_EXTRACT(`s`, 'x', 0), '')"),
        (
            "REGEXP_EXTRACT(s, 'x*')",
            "CASE WHEN REGEXP_LIKE(`s`, 'x*') THEN REGEXP_EXTRACT(`s`, 'x*', 0) END",
        ),
        ("SPLIT(s, '.')", "IF(`s` = '', CAST(ARRAY() AS ARRAY<STRING>), SPLIT(`s`, '\\\\.'))"),
        ("TO_BASE64(s)", r"REPLACE(BASE64(`s`), '\r\n', '')"),
        ("SHA256(s)", "SHA2(`s`, 256)"),
    ],
)
def test_translated(flink: str, spark: str) -> None:
    (column,) = table(*COLUMNS, f"c AS {flink}\n").schema.computed
    assert column.spark == spark


def test_a_time_that_is_read_by_a_format_is_cut() -> None:
    (column,) = table(*COLUMNS, "c AS TO_TIMESTAMP(s, 'ss.SSSS')\n").schema.computed
    read = "CAST(TRY_TO_TIMESTAMP(`s`, 'ss.SSSS') AS TIMESTAMP_NTZ)"
    assert column.spark.startswith(f"COALESCE(IF({_cut(read)} < ")


@pytest.mark.parametrize(
    ("flink", "spark"),
    [
        ("STRING", "STRING"),
        ("VARCHAR(2147483647)", "STRING"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("DEC(10, 2)", "DECIMAL(10, 2)"),
        ("ARRAY<INT NOT NULL>", "ARRAY<INT>"),
        ("MAP<STRING, TIMESTAMP>", "MAP<STRING, TIMESTAMP_NTZ>"),
        ("ROW<f INT, `g h` STRING>", "STRUCT<`f`: INT, `g h`: STRING>"),
    ],
)
def test_casts(flink: str, spark: str) -> None:
    plain, trying = table(
        "x STRING", f"c AS CAST(NULL AS {flink})", f"t AS TRY_CAST((NULL) AS {flink})"
    ).schema.computed
    assert plain.spark == f"CAST(NULL AS {spark})"
    assert trying.spark == f"TRY_CAST((NULL) AS {spark})"


@pytest.mark.parametrize(
    "expression",
    [
        *("PROCTIME()", "NOW()", "RAND()", "rand(1)", "RAND_INTEGER(5)", "UUID()", "CURRENT_ROW_TIMESTAMP()"),
        *("CURRENT_TIMESTAMP", "current_date", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "NOW ()"),
        *("CURRENT_WATERMARK(ts)", "monotonically_increasing_id()"),
    ],
)
def test_non_deterministic_functions_are_refused(expression: str) -> None:
    error = refusal(*COLUMNS, f"c AS COALESCE(l, {expression})")
    word = expression.partition("(")[0].strip().upper()
    assert error.message == (
        f"computed column `c`: {word} is not deterministic, but a row that is computed again must be the same; use a "
        "column of the source, such as the time of the record (METADATA FROM 'timestamp')"
    )
    assert place(error) == (LINE, 18)


def test_a_column_may_be_named_like_such_a_function() -> None:
    (column,) = table("uuid STRING", "`current_date` DATE", "c AS uuid || f(`current_date`)").schema.computed
    assert column.spark == "`uuid` || f(`current_date`)"


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("arrr[1]", 6, "there is no physical or metadata column `arrr`; did you mean `arr`?"),
        ("1 + /* x */\tB", 18, "there is no physical or metadata column `B`; did you mean `b`?"),
        (
            "CAST(a AS TIMESTAMP_LTZ(3)) + zz",
            36,
            "there is no physical or metadata column `zz`; known names are `a`",
        ),
        ("before + 1", 6, "there is no physical or metadata column `before`"),
        ("r.x", 8, "`r` has no field `x`; known names are `f`, `g`"),
        ("r.g.hi", 10, "`g` has no field `hi`; did you mean `h i`?"),
        ("a.f", 8, "`a` is not a ROW and has no field `f`"),
        ("t.a", 6, "there is no physical or metadata column `t`"),
        ("a b", 8, "this expression cannot be parsed at 'b'; quote names that are keywords with `...`"),
        ("a +", 8, "unexpected '+'; remove it, or quote names that are keywords with `...`"),
        ("a AS b", 8, "this expression cannot be parsed at 'AS'"),
        ("SELECT 1", 6, "this expression cannot be parsed at 'SELECT'"),
        ("(SELECT 1)", 14, "a subquery in an expression is not supported in this version: write a join"),
        ("EXISTS (SELECT 1)", 6, "a subquery in an expression (EXISTS) is not supported in this version"),
        ("?", 6, "unexpected '?'; remove it"),
        (
            "COUNT(*)",
            6,
            "COUNT is an aggregate function, which is not legal here; call it in the SELECT or HAVING of a",
        ),
        ("1 + sum(a)", 10, "SUM is an aggregate function, which is not legal here"),
        ("ARRAY_AGG(a)", 6, "ARRAY_AGG is an aggregate function, which is not legal here"),
        (
            "LISTAGG(s)",
            6,
            "the function LISTAGG is not supported in this version: write it with other functions",
        ),
        ("GROUPING(a)", 6, "GROUPING is an aggregate function, which is not legal here"),
        (
            "RANK()",
            6,
            "RANK requires OVER (PARTITION BY ... ORDER BY ...); the supported one is ROW_NUMBER() in a",
        ),
        (
            "LAG(a)",
            6,
            "LAG requires OVER (PARTITION BY ... ORDER BY ...); the supported one is ROW_NUMBER() in a",
        ),
        (
            "RANK() OVER (ORDER BY a)",
            6,
            "an OVER window (RANK) is not supported in this version: the supported one",
        ),
        (
            "TUMBLE_START(ts, INTERVAL '1' HOUR)",
            6,
            "the window TUMBLE_START outside of FROM is not supported",
        ),
        (
            "EXPLODE(arr)",
            6,
            "EXPLODE, which gives several rows, is not supported in this version: expand the rows",
        ),
        (
            "WINDOW(ts, '1 day')",
            6,
            "the function WINDOW is not supported in this version: use functions that Flink "
            "and Spark share; a function of your own needs another name",
        ),
        (
            "SIZE(arr)",
            6,
            "the function SIZE is not supported in this version: use functions that Flink and Spark",
        ),
        ("UCASE(s)", 6, "the function UCASE is not supported in this version: "),
        (
            "JSON_OBJECT('k' VALUE a)",
            6,
            "the function JSON_OBJECT is not supported in this version: write it with",
        ),
        (
            "CONVERT(a, STRING)",
            6,
            "the function CONVERT is not supported in this version: write CAST or TRY_CAST",
        ),
        ("s IS JSON", 8, "IS JSON is not supported in this version: write JSON_EXISTS(text, path)"),
        ("s SIMILAR TO 'a%'", 8, "SIMILAR TO is not supported in this version: write REGEXP(text, pattern)"),
        (
            "s ILIKE 'a'",
            6,
            "ILIKE in an expression is not supported in this version: write it with other functions",
        ),
        (
            "s GLOB 'a'",
            6,
            "GLOB in an expression is not supported in this version: write it with other functions",
        ),
        (
            "s COLLATE utf8",
            6,
            "COLLATE in an expression is not supported in this version: write it with other",
        ),
        (
            "l AT TIME ZONE 'UTC'",
            8,
            "AT TIME ZONE is not supported in this version: write CONVERT_TZ(text, zone,",
        ),
        (
            "UPPER(s RLIKE 'a')",
            12,
            "REGEXPLIKE in an expression is not supported in this version: write it with",
        ),
        ("a ^ 1", 8, "unexpected '^'; remove it"),
        ("!(a = 1)", 6, "unexpected '!'; remove it"),
        ("s IS OF (INT)", 6, "IS takes NULL, TRUE, FALSE and UNKNOWN, with or without NOT"),
        ("UPPER(DISTINCT s)", 21, "DISTINCT is legal with an aggregate function only; remove it"),
        ("UPPER(*)", 12, "* is legal with an aggregate function only; remove it"),
        ("UPPER(s) FILTER (WHERE ok)", 6, "FILTER is legal with an aggregate function only; remove it"),
        ("f(a) / 2", 6, "the types of the operands of this division are not known"),
        ("CAST(s AS BINARY(3))", 16, "a cast to BYTES of a length is not supported; cast to BYTES"),
        ("TIME '10:00:00'", 6, "Delta does not support TIME; compare strings"),
        ("MAP['k']", 6, "MAP takes pairs of a key and a value: MAP['a', 1, 'b', 2]"),
        ("MAP['k', NULL]", 6, "the types of the keys and values of this MAP are not known"),
        (
            "JSON_QUERY(s, '$' WITH WRAPPER)",
            24,
            "JSON_QUERY takes a text and a path, and not WITH; CAST its result in place of RETURNING",
        ),
        ("JSON_VALUE(s, '$.a' RETURNING INT)", 26, "JSON_VALUE takes a text and a path, and not RETURNING"),
        ("JSON_VALUE(s, '$.a' NULL ON EMPTY)", 31, "JSON_VALUE takes a text and a path, and not ON"),
        ("TO_TIMESTAMP_LTZ(b, 6)", 6, "the unit of the arguments of TO_TIMESTAMP_LTZ must be known"),
    ],
)
def test_refused(expression: str, column: int, message: str) -> None:
    error = refusal(*COLUMNS, f"c AS {expression}")
    assert error.message.startswith(f"computed column `c`: {message}")
    assert place(error) == (LINE, column)


@pytest.mark.parametrize(
    ("type", "column", "message"),
    [
        ("TIME(0)", 11, "type TIME: Delta has no TIME type"),
        ("ARRAY<TEXT>", 17, "unknown type `TEXT`; did you mean `STRING`?"),
    ],
)
def test_cast_to_a_refused_type(type: str, column: int, message: str) -> None:
    error = refusal("x STRING", f"c AS CAST(x AS {type})")
    assert error.message.startswith(message)
    assert place(error) == (3, column + 5)


def test_computed_columns_do_not_see_each_other() -> None:
    error = refusal("a INT", "first AS a + 1", "second AS `first` + 1")
    assert error.message.startswith(
        "computed column `second`: there is no physical or metadata column `first`"
    )
    assert place(error) == (4, 11)


@pytest.mark.parametrize(
    ("expression", "at", "message"),
    [
        ("a]", (3, 7), "expected ',' or ')' after column `c`, found ']'"),
        ("[a) + 1", (3, 8), "computed column `c`: this expression cannot be parsed at ')'"),
    ],
)
def test_brackets_that_do_not_match(expression: str, at: tuple[int, int], message: str) -> None:
    error = refusal("a INT", f"c AS {expression}")
    assert error.message.startswith(message)
    assert place(error) == at
