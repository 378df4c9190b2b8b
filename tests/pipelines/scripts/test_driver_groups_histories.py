"""Groups of drawn rows of all types that the driver computes are those that Spark computes."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import Script
from tests.pipelines.scripts.both_ways import (
    DISTINCT,
    by_spark,
    counts,
    create,
    in_driver,
    insert,
    load,
    same,
)

LEAST, GREATEST = -(2**63), 2**63 - 1
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "g": ("STRING", ["", "a", "é", "\uffff", "\U0001f600", None]),
    "k": ("INT", [-5, 0, 3, None]),
    "l": ("BIGINT", [LEAST, GREATEST, 0, 1, 2, None]),
    "y": ("TINYINT", [-1, 1, None]),
    "h": ("SMALLINT", [-300, 300, None]),
    "n": ("BIGINT", [-(2**50), 2**50, None]),
    "b": ("BOOLEAN", [True, False, None]),
    "d": ("DATE", [date(1600, 1, 1), date(9999, 12, 31), date(1970, 1, 1), None]),
    "at": ("TIMESTAMP", [datetime(1600, 2, 29, 1, 2, 3, 4), datetime(2300, 1, 1), None]),
    "ntz": ("TIMESTAMP_NTZ", [datetime(1600, 2, 29, 1, 2, 3, 4), datetime(9999, 1, 1), None]),
    "p": ("DECIMAL(28, 2)", [Decimal("9" * 26), Decimal("-0.01"), Decimal("1.5"), None]),
}
FLINK = {"at": "TIMESTAMP_LTZ(6)", "ntz": "TIMESTAMP(6)"}
NAMED = {name: FLINK.get(name, type) for name, (type, _) in COLUMNS.items()}
BOUNDED = [name for name in COLUMNS if name not in ("y", "h", "n")]
SUMMED = ["k", "y", "h", "n", "p"]
DECLARED = ", ".join(f"{name} {type}" for name, (type, _) in COLUMNS.items())
inserted = partial(insert, NAMED)


def bounds(columns: list[str]) -> list[tuple[str, str, str]]:
    return [(f"{f}_{c}".lower(), NAMED[c], f"{f}({c})") for c in columns for f in ("MIN", "MAX")]


def sums(columns: list[str]) -> list[tuple[str, str, str]]:
    types = {"p": "DECIMAL(38, 2)"}
    return [(f"sum_{c}", types.get(c, NAMED[c]), f"SUM({c})") for c in columns]


INSERTS = {
    "by_text": inserted(
        "by_text",
        ["g"],
        [
            ("rows_", "BIGINT", "COUNT(*)"),
            *bounds(BOUNDED),
            *sums(SUMMED),
            *counts(["b", "p"]),
            *counts(["l"], DISTINCT),
        ],
    ),
    "by_others": inserted("by_others", ["b", "d", "at", "ntz", "l"], counts(["g", "d"], DISTINCT)),
}
SLOW = {
    "all_different": inserted("all_different", ["k"], counts([c for c in COLUMNS if c != "p"], DISTINCT)),
    "by_rows": inserted("by_rows", ["l", "y"], [("rows_", "BIGINT", "COUNT(*)"), *bounds(["g"])]),
}


def add(spark: SparkSession, lake: Path, draw: random.Random, count: int) -> None:
    rows = [tuple(draw.choice(values) for _, values in COLUMNS.values()) for _ in range(count)]
    frame = spark.createDataFrame(rows, DECLARED).coalesce(draw.choice([1, 2]))
    frame.write.format("delta").mode("append").save(f"{lake}/e")


def compare(spark: SparkSession, script: Script, patch: pytest.MonkeyPatch) -> None:
    for plan in script.inserts:
        same(in_driver(spark, script, plan.name), by_spark(spark, script, plan.name, patch))


def test_drawn_rows(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all types, with nulls; the files of the first rows lack columns."""
    draw, script = random.Random(5), load(lake, INSERTS, NAMED)
    create(spark, lake, "g STRING, b BOOLEAN")
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', true), (NULL, NULL)")
    missing = ", ".join(f"{name} {type}" for name, (type, _) in COLUMNS.items() if name not in "gb")
    spark.sql(f"ALTER TABLE delta.`{lake}/e` ADD COLUMNS ({missing})")
    add(spark, lake, draw, 12)
    run_script(spark, script)
    add(spark, lake, draw, 12)
    compare(spark, script, monkeypatch)


def _optimized(spark: SparkSession, lake: Path, script: Script) -> None:
    spark.sql(f"OPTIMIZE delta.`{lake}/e`")


def _changed_result(statement: str) -> Callable[[SparkSession, Path, Script], None]:
    def change(spark: SparkSession, lake: Path, script: Script) -> None:
        for plan in script.inserts:
            path = ScriptState(script).result_target(plan)
            spark.sql(statement.format(t=f"delta.`{path}`", c=plan.columns[-1].name))

    return change


OTHERS = {
    "optimized": _optimized,
    "optimized result": _changed_result("OPTIMIZE {t}"),
    "updated result": _changed_result("UPDATE {t} SET {c} = NULL WHERE crc32(CAST({c} AS STRING)) % 3 = 0"),
    "deleted result": _changed_result("DELETE FROM {t} WHERE crc32(CAST({c} AS STRING)) % 3 = 1"),
    "nothing": lambda *_: None,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10, 14))
def test_drawn_histories(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Others write between the batches."""
    draw, script = random.Random(seed), load(lake, INSERTS | SLOW, NAMED)
    create(spark, lake, DECLARED)
    add(spark, lake, draw, 30)
    run_script(spark, script)
    for _ in range(4):
        for _ in range(draw.choice([1, 2])):
            add(spark, lake, draw, draw.choice([1, 20]))
        OTHERS[draw.choice(list(OTHERS))](spark, lake, script)
        compare(spark, script, monkeypatch)
        run_script(spark, script)
