"""Aggregate functions have the types of Flink in Spark.

Aggregates have the types and values that Flink itself gave (`make flink-vectors`), or are refused.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from benchmarks.flink_vectors.aggregates import GROUPS, aggregates, members
from benchmarks.flink_vectors.corpus import columns
from bridge.errors import BridgeError
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import Script, load_script
from tests.expressions.vectors import Vector, drawn_seed, inputs, is_same, values_of
from tests.expressions.vectors import vectors as vectors_of
from tests.sql.scripts import plan, refusal

FROM = "FROM `views` AS `views` GROUP BY `views`.`region`"

ONES, HALF = "CAST(4294967295 AS BIGINT)", "CAST(2147483648 AS BIGINT)"
WRAPPED = f"CAST((((SUM(`views`.`page`) & {ONES}) + {HALF}) & {ONES}) - {HALF} AS INT)"
FILTER = "FILTER(WHERE `views`.`ok`)"
LOWER = f"SUM(`views`.`user_id` & {ONES}) {FILTER}"


@pytest.mark.parametrize(
    ("call", "type", "spark"),
    [
        ("COUNT(page)", "BIGINT", "COUNT(`views`.`page`)"),
        ("COUNT(DISTINCT page, user_id)", "BIGINT", "COUNT(DISTINCT `views`.`page`, `views`.`user_id`)"),
        ("COUNT(*) FILTER (WHERE page > 1)", "BIGINT", "COUNT(*) FILTER(WHERE `views`.`page` > 1)"),
        ("SUM(page)", "INT", f"CAST({WRAPPED} AS INT)"),
        ("SUM(page)", "BIGINT", f"CAST({WRAPPED} AS BIGINT)"),
        (
            "SUM(user_id) FILTER (WHERE ok)",
            "BIGINT",
            f"CAST((SHIFTLEFT((SUM(SHIFTRIGHT(`views`.`user_id`, 32)) {FILTER}) + SHIFTRIGHT({LOWER}, 32), 32) "
            f"| (({LOWER}) & {ONES})) AS BIGINT)",
        ),
        ("SUM(price)", "DECIMAL(38, 2)", "CAST(SUM(`views`.`price`) AS DECIMAL(38, 2))"),
        (
            "SUM(CAST(page AS DECIMAL(29, 1)))",
            "DECIMAL(38, 1)",
            "CAST(TRY_SUM(TRY_CAST(`views`.`page` AS DECIMAL(29, 1))) AS DECIMAL(38, 1))",
        ),
        ("SUM(CAST(page AS DOUBLE))", "DOUBLE", "CAST(SUM(CAST(`views`.`page` AS DOUBLE)) AS DOUBLE)"),
        ("MIN(ts)", "TIMESTAMP(3)", "CAST(MIN(`views`.`ts`) AS TIMESTAMP_NTZ)"),
        ("MAX(DISTINCT page)", "INT", "CAST(MAX(DISTINCT `views`.`page`) AS INT)"),
        (
            "AVG(page) FILTER (WHERE ok)",
            "INT",
            "CAST(SUM(`views`.`page`) FILTER(WHERE `views`.`ok`) DIV NULLIF(COUNT(`views`.`page`) "
            "FILTER(WHERE `views`.`ok`), 0) AS INT)",
        ),
        (
            "AVG(DISTINCT price)",
            "DECIMAL(38, 6)",
            "CAST(SUM(DISTINCT `views`.`price`) / CAST(NULLIF(COUNT(DISTINCT `views`.`price`), 0) AS DECIMAL(20, 0)) "
            "AS DECIMAL(38, 6))",
        ),
    ],
)
def test_calls(call: str, type: str, spark: str) -> None:
    found = plan(f"SELECT region, {call} FROM views GROUP BY region", f"a STRING, b {type}")
    assert found.spark_sql == f"SELECT `views`.`region` AS `a`, {spark} AS `b` {FROM}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("SUM(region)", "16: SUM does not take STRING"),
        ("COUNT(*) FILTER (WHERE page)", "39: a condition is BOOLEAN, and this is INT"),
        ("UPPER(region) FILTER (WHERE ok)", "16: FILTER is legal with an aggregate function only; remove it"),
        ("AVG(ts)", "16: AVG does not take TIMESTAMP(3)"),
        ("MAX(tags)", "16: MAX does not take MAP<STRING, INT>"),
        ("SUM(*)", "16: only COUNT(*) takes *; name a column for SUM"),
        ("COUNT(DISTINCT *)", "16: only COUNT(*) takes *; name a column for COUNT"),
        ("SUM()", "16: SUM takes one argument, not 0"),
        ("COUNT(page, user_id)", "16: COUNT takes one argument, not 2"),
        ("SUM(COUNT(*))", "20: aggregate functions cannot be nested; aggregate a subquery in FROM"),
        (
            "STDDEV_POP(page)",
            "16: the aggregate function STDDEV_POP is not supported in this version: the supported ones are "
            "COUNT, SUM, "
            "MIN, MAX, AVG",
        ),
        (
            "LISTAGG(region)",
            "16: the function LISTAGG is not supported in this version: write it with other functions or operators",
        ),
    ],
)
def test_refused(call: str, message: str) -> None:
    assert refusal(f"SELECT region, {call} FROM views GROUP BY region") == f"t.sql:6:{message}"


_DRAWN, _AT_ONCE = 12, 60
_FILE = Path(__file__).with_name("vectors.jsonl")
_KNOWN = re.compile(
    r"(MIN|MAX)\((DISTINCT )?c_[fd]\).*NaN|COUNT\(DISTINCT c_d\)|.*(SUM|AVG)\(.*c_(m2|n0)\).* of \([^)]*\b3, .*None",
    re.IGNORECASE,
)
"""Differences that the documentation lists: NaN is the greatest number, -0.0 is 0.0, and whether a sum of DECIMALs has
too many digits on its way depends on the order of rows."""
_TOLERANCE = 1e-15
"""Of a sum of doubles, which depends on the order of its rows."""


def _script(chosen: Sequence[Vector], path: str = "t.sql") -> Script:
    """The aggregates of one script. Raises BridgeError where the bridge refuses one."""
    declared = ", ".join(f"v{n} {vector.type.removesuffix(' NOT NULL')}" for n, vector in enumerate(chosen))
    calls = ", ".join(vector.expression for vector in chosen)
    text = (
        f"CREATE TABLE inputs ({columns()}) WITH ('connector' = 'delta', 'path' = 'inputs');\n"
        f"CREATE TABLE s (rid INT, {declared}, PRIMARY KEY (rid) NOT ENFORCED) WITH ('connector' = 'blackhole');\n"
        f"INSERT INTO s SELECT rid, {calls} FROM inputs GROUP BY rid;\n"
    )
    return load_script(path, text=text, environ={})


def _accepted(chosen: Sequence[Vector]) -> list[Vector]:
    found = []
    for vector in chosen:
        try:
            _script([vector])
        except BridgeError:
            continue
        found.append(vector)
    return found


def _values(spark: SparkSession, chosen: Sequence[Vector]) -> list[list[Any]]:
    """By group; an error in place of the values where Spark has one for a group."""
    try:
        return values_of(spark.sql(_script(chosen).inserts[0].spark_sql))
    except PySparkException as error:
        if len(chosen) > 1:
            middle = len(chosen) // 2
            return _values(spark, chosen[:middle]) + _values(spark, chosen[middle:])
        return [[{"error": str(error)[:200]}] * len(GROUPS)]


def _faults(chosen: Sequence[Vector], values: Sequence[Sequence[Any]]) -> list[str]:
    found = [
        f"{vector.expression} of {GROUPS[group]}: Flink {flink}, Spark {actual}"
        for vector, of_groups in zip(chosen, values, strict=True)
        for group, (flink, actual) in enumerate(zip(vector.values, of_groups, strict=True))
        if vector.is_judged(group) and not _is_same(vector, flink, actual)
    ]
    return [fault for fault in found if not _KNOWN.match(fault)]


def _is_same(vector: Vector, flink: Any, actual: Any) -> bool:
    if is_same(flink, actual, of_float=vector.type.startswith("FLOAT")):
        return True
    is_sum = re.search(r"(SUM|AVG)\(", vector.expression) and isinstance(flink, dict) and "double" in flink
    return bool(
        is_sum and actual and math.isclose(float(flink["double"]), actual["double"], rel_tol=_TOLERANCE)
    )


def test_flink_was_asked_for_all() -> None:
    assert [vector.expression for vector in vectors_of(_FILE, len(GROUPS))] == aggregates()


@pytest.mark.parametrize("drawn", [_DRAWN, pytest.param(None, marks=pytest.mark.slow)])
def test_values(spark: SparkSession, drawn: int | None) -> None:
    seed = drawn_seed()
    every = list(vectors_of(_FILE, len(GROUPS)))
    chosen = _accepted(every if drawn is None else random.Random(seed).sample(every, drawn))
    inputs(spark, members()).persist().createOrReplaceTempView("inputs")
    found = [v for at in range(0, len(chosen), _AT_ONCE) for v in _values(spark, chosen[at : at + _AT_ONCE])]
    assert _faults(chosen, found) == [], f"drawn with {seed=}"


@pytest.mark.slow
def test_values_of_rows_that_are_added(spark: SparkSession, lake: Path) -> None:
    seed = drawn_seed()
    chosen = _accepted(
        [v for v in vectors_of(_FILE, len(GROUPS)) if not re.search(r"c_([fd]2?)\)", v.expression)]
    )
    random.Random(seed).shuffle(chosen)
    rows = list(members())
    random.Random(seed).shuffle(rows)
    parts = [chosen[at : at + _AT_ONCE] for at in range(0, len(chosen), _AT_ONCE)]
    scripts = [_script(part, str(lake / f"p{n}.sql")) for n, part in enumerate(parts)]
    for at in (0, len(rows) // 2):
        fresh = inputs(spark, rows[at : at + len(rows) // 2 if not at else None])
        fresh.write.format("delta").option("delta.enableChangeDataFeed", "true").mode("append").save(
            str(lake / "inputs")
        )
        for script in scripts:
            run_script(spark, script)
    for part, script in zip(parts, scripts, strict=True):
        table = spark.read.format("delta").load(str(ScriptState(script).result_target(script.inserts[0])))
        found = values_of(table.select("rid", *(f"v{n}" for n in range(len(part)))))
        assert _faults(part, found) == [], f"drawn with {seed=}"
