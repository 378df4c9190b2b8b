"""SUM and AVG of integers wrap as Flink's do, by every way in which a refresh computes them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import load_script
from tests.delta.tables import create_fed
from tests.expressions.vectors import drawn_seed

BITS = {"t": 8, "s": 16, "i": 32, "b": 64}
TYPES = {"t": "TINYINT", "s": "SMALLINT", "i": "INT", "b": "BIGINT"}
SUMS = {f"s{c}": (type, f"SUM({{}}{c})") for c, type in TYPES.items()}
MEANS = {f"a{c}": (type, f"AVG({{}}{c})") for c, type in TYPES.items()}
SOME = {f"f{c}": (type, f"SUM({{}}{c}) FILTER (WHERE {{}}id > 3)") for c, type in TYPES.items()}
DISTINCT = {"d": ("BIGINT", "SUM(DISTINCT {}b)"), "da": ("BIGINT", "AVG(DISTINCT {}b)")}
NESTED = "(SELECT g, id, SUM(b) AS b, SUM(i) AS i, SUM(s) AS s, SUM(t) AS t FROM k GROUP BY g, id)"
WAYS = {
    "plain": (SUMS, "e", "the groups of the added rows"),
    "merged": (SUMS | MEANS | SOME, "e", "the groups of the added rows"),
    "different": (SUMS | DISTINCT, "e", "the parts that changed"),
    "joined": (SUMS, "e AS l JOIN o ON l.id = o.id", "the groups of the added rows"),
    "updated": (SUMS | MEANS | SOME | DISTINCT, "k", "the parts that changed"),
    "nested": (SUMS | MEANS, f"{NESTED} AS n", "the parts that changed"),
    "whole": (SUMS | MEANS, "k AS w", "all rows of its sources"),
}
"""The columns of a result, what it is computed from, and how."""
COLUMNS = "g STRING, id INT, t TINYINT, s SMALLINT, i INT, b BIGINT"


def wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def expected(columns: dict[str, tuple[str, str]], rows: list[dict[str, Any]]) -> list[int | None]:
    """Flink 2.0.2 was asked: SUM wraps in the type of its argument, AVG divides a sum that wraps in 64 bits."""
    found: list[int | None] = []
    for name, (_, call) in columns.items():
        column = name[-1] if name[-1] in BITS else "b"
        values = [row[column] for row in rows if "FILTER" not in call or row["id"] > 3]
        values = [value for value in values if value is not None]
        values = list(set(values)) if "DISTINCT" in call else values
        if not values:
            found.append(None)
        elif "AVG" in call:
            total = wrapped(sum(values), 64)
            found.append(abs(total) // len(values) * (1 if total >= 0 else -1))
        else:
            found.append(wrapped(sum(values), BITS[column]))
    return found


def script(names: Collection[str]) -> str:
    parts = [
        f"CREATE TABLE e ({COLUMNS}) WITH ('connector' = 'delta', 'path' = 'e')",
        "CREATE TABLE o (id INT) WITH ('connector' = 'delta', 'path' = 'o')",
        f"CREATE TABLE k ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'k')",
    ]
    for name in names:
        columns, source, _ = WAYS[name]
        group = {"joined": "l.g", "whole": "CONCAT(g, '')"}.get(name, "g")
        declared = ", ".join(f"{column} {type}" for column, (type, _) in columns.items())
        calls = ", ".join(
            call.format(*["l." if name == "joined" else ""] * 2) for _, call in columns.values()
        )
        parts += [
            f"CREATE TABLE {name} (g STRING, {declared}, PRIMARY KEY (g) NOT ENFORCED) "
            "WITH ('connector' = 'blackhole')",
            f"INSERT INTO {name} SELECT {group}, {calls} FROM {source} GROUP BY {group}",
        ]
    return ";\n".join([*parts, ""])


def drawn(draw: random.Random, id: int) -> dict[str, Any]:
    ends = {
        c: [(1 << (n - 1)) - 1, -(1 << (n - 1)), -1, 0, (1 << (n - 2)) + 3, None] for c, n in BITS.items()
    }
    return {"g": draw.choice("ab"), "id": id, **{c: draw.choice(values) for c, values in ends.items()}}


@pytest.mark.parametrize(("ways", "batches"), [(2, 2), pytest.param(len(WAYS), 3, marks=pytest.mark.slow)])
def test_sums_wrap_by_every_way(spark: SparkSession, lake: Path, ways: int, batches: int) -> None:
    seed = drawn_seed()
    draw = random.Random(seed)
    loaded = load_script(lake / "sums.sql", text=script(draw.sample(list(WAYS), ways)))
    for name, columns in (("e", COLUMNS), ("o", "id INT"), ("k", COLUMNS)):
        create_fed(spark, lake / name, columns)
    spark.sql(f"INSERT INTO delta.`{lake}/o` VALUES {', '.join(f'({n})' for n in range(40))}")
    added: list[dict[str, Any]] = []
    keyed: dict[int, dict[str, Any]] = {}
    for batch in range(batches):
        fresh = [drawn(draw, len(added) + n) for n in range(9)]
        added += fresh
        spark.createDataFrame(fresh, COLUMNS).write.format("delta").mode("append").save(f"{lake}/e")
        gone = draw.sample(sorted(keyed), len(keyed) // 2)
        changed = [drawn(draw, id) for id in {*gone[1:], *range(batch * 6, batch * 6 + 6)}]
        keyed = {id: row for id, row in keyed.items() if id not in gone} | {row["id"]: row for row in changed}
        if gone:
            spark.sql(f"DELETE FROM delta.`{lake}/k` WHERE id IN ({', '.join(map(str, gone))})")
        spark.createDataFrame(changed, COLUMNS).write.format("delta").mode("append").save(f"{lake}/k")
        reports: list[BatchReport] = []
        run_script(spark, loaded, listener=reports.append)
        for plan in loaded.inserts:
            calls, source, way = WAYS[plan.name]
            engine = next(r.engine for r in reports if r.pipeline.endswith(f".{plan.name}"))
            assert engine == (way if batch else "all rows of its sources"), plan.name
            groups = defaultdict(list)
            for row in keyed.values() if source.startswith("k") or plan.name == "nested" else added:
                groups[row["g"]].append(row)
            table = spark.read.format("delta").load(str(ScriptState(loaded).result_target(plan)))
            found = {row[0]: list(row[1:]) for row in table.select("g", *calls).collect()}
            assert found == {g: expected(calls, rows) for g, rows in groups.items()}, (plan.name, seed)
