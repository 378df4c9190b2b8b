"""Aggregates have the types and values that Flink itself gave (`make flink-vectors`), or are refused."""

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
