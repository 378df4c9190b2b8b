"""Groups of windows for which an INSERT fails are left out when these close, and come with late rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script
from tests.pipelines.scripts import test_refresh_windows as windows
from tests.pipelines.scripts.oracle import Rows, computed


def windowed(spark: SparkSession, lake: Path, seed: int, lateness: int) -> None:
    """Groups of windows fail when these close, and are corrected by late rows."""
    draw = random.Random(seed)
    spark.sql(
        f"CREATE TABLE delta.`{lake / 't'}` (h INT, g STRING, v INT, ts TIMESTAMP_NTZ) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    late = f"SET 'table.exec.emit.allow-lateness' = '{lateness} s';" if lateness else ""
    columns = "ws TIMESTAMP(3), we TIMESTAMP(3), h INT, q BIGINT, PRIMARY KEY (we, h) NOT ENFORCED"
    script = load_script(
        lake / "windows.sql",
        text=f"SET 'bridge.state' = 'state';\nSET 'bridge.bad-records' = 'quarantine';\n{late}"
        f"CREATE TABLE t (h INT, g STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '{windows.DELAY}' "
        f"SECOND) WITH ({windows.FROM_DELTA});\n"
        f"CREATE TABLE o ({columns}) WITH ('connector' = 'delta', 'path' = 'results/o');\n"
        "INSERT INTO o SELECT window_start, window_end, h, SUM(h) / COUNT(v) FROM "
        f"TABLE({windows.CALLS['hop'][0]}) GROUP BY window_start, window_end, h;",
    )
    expected = windows.Expected("hop", lateness)
    before: set[tuple[Any, ...]] = set()
    stored: set[tuple[Any, ...]] = set()
    for number in range(6):
        batch = windows.drawn(draw, 20, number * 25)
        windows.append(spark, lake, batch)
        expected.add(batch)
        reports: list[BatchReport] = []
        run_script(spark, script, listener=reports.append)
        closed = [row for row in expected.rows if row[1] <= expected.watermark]
        found = {"w": (("ws", "we", "h", "g", "v"), closed)}
        groups = "FROM w GROUP BY ws, we, h HAVING COUNT(v)"
        rows = spark.read.format("delta").load(f"{lake}/results/o")
        shown = rows.selectExpr(
            "unix_seconds(cast(ws AS timestamp))", "unix_seconds(cast(we AS timestamp))", "h", "q"
        )
        assert Rows(map(tuple, shown.collect())) == computed(
            f"SELECT ws, we, h, SUM(h) / COUNT(v) {groups} > 0", found
        )
        failing = set(computed(f"SELECT ws, we, h {groups} = 0", found))
        assert [r.bad_records for r in reports] == [len(failing - before)], number
        stored |= {(number, *key) for key in failing - before}
        before = failing
    keys = (
        spark.read.format("delta")
        .load(f"{lake}/results/o_quarantine")
        .selectExpr("batch", "row_key.value AS v", "row_key.column AS c")
    )
    assert {tuple(row.c) for row in keys.collect()} == {("window_start", "window_end", "h")}
    assert Rows(
        map(
            tuple,
            keys.selectExpr(
                "batch",
                "unix_seconds(cast(v[0] AS timestamp))",
                "unix_seconds(cast(v[1] AS timestamp))",
                "cast(v[2] AS int)",
            ).collect(),
        )
    ) == Rows(stored)
    assert stored


@pytest.mark.slow
@pytest.mark.parametrize("lateness", [0, 10])
def test_groups_of_windows_are_left_out(spark: SparkSession, lake: Path, lateness: int) -> None:
    windowed(spark, lake, 1, lateness)
