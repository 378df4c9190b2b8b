"""Which of rows with equal times ROW_NUMBER keeps, over a topic that only adds rows: those that Flink 2.0.2 keeps."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.expressions.vectors import drawn_seed
from tests.pipelines.scripts.scripts import MakeScript

_RANKED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY {by}k ORDER BY {column} {order}) AS r FROM {table}"
_QUERIES = {
    "last": (_RANKED.format(by="", column="ts", order="DESC", table="e"), "k"),
    "first": (_RANKED.format(by="", column="ts", order="ASC", table="e"), "k"),
    "top": (_RANKED.format(by="", column="v", order="DESC", table="e"), "k"),
    "viewed": (_RANKED.format(by="", column="ts", order="DESC", table="odd"), "k"),
    "windowed": (
        _RANKED.format(
            by="window_start, window_end, ",
            column="ts",
            order="DESC",
            table="TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECONDS))",
        ),
        "window_start, k",
    ),
}
SOURCES = """
CREATE TABLE e (k STRING, ts TIMESTAMP(3), v INT, n INT, WATERMARK FOR ts AS ts) WITH ({kafka}, 'topic' = '{prefix}-e');
CREATE VIEW odd AS SELECT * FROM e WHERE MOD(n, 2) = 1;
"""
INSERTS = {
    name: f"CREATE TABLE s_{name} (k STRING, n INT{', window_start TIMESTAMP(3)' * ('window' in key)}, "
    f"PRIMARY KEY ({key}) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = '{name}');\n"
    f"INSERT INTO s_{name} SELECT k, n{', window_start' * ('window' in key)} FROM ({query}) AS q WHERE r = 1;\n"
    for name, (query, key) in _QUERIES.items()
}


def kept(rows: list[dict[str, Any]]) -> dict[str, dict[Any, int]]:
    """What Flink has after these rows, in the order of their arrival."""
    found: dict[str, dict[Any, dict[str, Any]]] = {name: {} for name in _QUERIES}
    for row in rows:
        k, window = row["k"], (row["k"], row["ts"][:-1])
        for name, key in (("last", k), ("viewed", k), ("windowed", window)):
            if name == "viewed" and row["n"] % 2 == 0:
                continue
            if key not in found[name] or found[name][key]["ts"] <= row["ts"]:
                found[name][key] = row
        if k not in found["first"] or found["first"][k]["ts"] > row["ts"]:
            found["first"][k] = row
        if k not in found["top"] or found["top"][k]["v"] < row["v"]:
            found["top"][k] = row
    return {name: {key: row["n"] for key, row in by.items()} for name, by in found.items()}


@pytest.mark.parametrize("count", [1, pytest.param(len(_QUERIES), marks=pytest.mark.slow)])
def test_rows_with_equal_times(script_of: MakeScript, spark: SparkSession, lake: Path, count: int) -> None:
    """Of some drawn queries, or of all."""
    seed = drawn_seed()
    names = random.Random(seed).sample(sorted(_QUERIES), count)
    text = SOURCES + "".join(INSERTS[name] for name in names)
    script = script_of(text)
    script.create("e", partitions=1)
    draw = random.Random(7)
    sent: list[dict[str, Any]] = []
    for batch in range(2):
        times = [f"2020-01-01 00:00:{batch}{draw.randrange(3)}" for _ in range(30)]
        rows = [
            {"k": draw.choice("ab"), "ts": ts, "v": draw.randrange(2), "n": len(sent) + i}
            for i, ts in enumerate(times if batch else sorted(times))
        ]
        sent += rows
        script.send("e", [(None, row) for row in rows])
        script.run()
        known = kept(sent)
        # Those of the last window are not known yet.
        known["windowed"] = {k: n for k, n in known["windowed"].items() if k[1] < f"2020-01-01 00:00:{batch}"}
        for name in names:
            expected = known[name]
            frame = spark.read.format("delta").load(f"{lake}/{name}")
            found = {
                (row["k"], str(row["window_start"])[:18]) if name == "windowed" else row["k"]: row["n"]
                for row in frame.collect()
            }
            assert found == expected, (name, batch)
