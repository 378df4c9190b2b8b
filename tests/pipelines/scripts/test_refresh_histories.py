"""Results are those that SQLite computes from the newest rows of the sources, after every batch of drawn changes.

Many histories run at once: each has a number `h`, which is in every key and in every GROUP BY, so no row of one belongs
to another one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import Column, SparkSession

from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script
from tests.delta.tables import create_fed
from tests.expressions.vectors import drawn_seed
from tests.pipelines.scripts.oracle import Rows, computed

TABLES = {
    "t": ("h INT, id INT, g STRING, v INT", ("h", "id", "g", "v")),
    "u": ("h INT, id INT, name STRING, w INT", ("h", "id", "name", "w")),
}
QUERIES = {
    "filtered": ("h INT, id INT, g STRING", "h, id", "SELECT h, id, g FROM t WHERE v > 2 OR g = 'b'"),
    "grouped": (
        "h INT, g STRING, n BIGINT, ids BIGINT, total INT, low INT, high INT, small BIGINT",
        "h, g",
        "SELECT h, g, COUNT(*), COUNT(DISTINCT v), SUM(v), MIN(v), MAX(v), COUNT(*) FILTER (WHERE v < 3) "
        "FROM t GROUP BY h, g",
    ),
    "having": (
        "h INT, g STRING, n BIGINT",
        "h, g",
        "SELECT h, g, COUNT(v) FROM t GROUP BY h, g HAVING COUNT(*) > 1",
    ),
    "distinct_rows": ("h INT, g STRING, v INT", "h, g, v", "SELECT DISTINCT h, g, v FROM t"),
    "joined": (
        "h INT, id INT, g STRING, name STRING",
        "h, id",
        "SELECT t.h, t.id, t.g, u.name FROM t JOIN u ON t.h = u.h AND t.id = u.id",
    ),
    "left_joined": (
        "h INT, id INT, g STRING, w INT",
        "h, id",
        "SELECT t.h, t.id, t.g, u.w FROM t LEFT JOIN u ON t.h = u.h AND t.id = u.id",
    ),
    "wide": (
        "h INT, id INT, g STRING, name STRING",
        "h, id",
        "SELECT COALESCE(t.h, u.h), COALESCE(t.id, u.id), t.g, u.name "
        "FROM t FULL JOIN u ON t.h = u.h AND t.id = u.id",
    ),
    "by_reference": (
        "h INT, id INT, name STRING",
        "h, id",
        "SELECT t.h, t.id, u.name FROM t JOIN u ON t.h = u.h AND t.v = u.id",
    ),
    "by_name": (
        "h INT, name STRING, n BIGINT, total INT",
        "h, name",
        "SELECT u.h, u.name, COUNT(*), SUM(t.v) FROM t JOIN u ON t.h = u.h AND t.id = u.id GROUP BY u.h, u.name",
    ),
    "together": (
        "h INT, g STRING, n BIGINT",
        "h, g",
        "SELECT h, g, COUNT(*) FROM (SELECT h, g FROM t UNION ALL SELECT h, name AS g FROM u) AS b GROUP BY h, g",
    ),
    "top": (
        "h INT, g STRING, id INT, v INT, place BIGINT",
        "h, g, place",
        "SELECT h, g, id, v, place FROM (SELECT h, g, id, v, "
        "ROW_NUMBER() OVER (PARTITION BY h, g ORDER BY v DESC, id) AS place FROM t) AS r WHERE place <= 2",
    ),
    "computed_keys": (
        "h BIGINT, g STRING, n BIGINT",
        "h, g",
        "SELECT h + 100, g, COUNT(*) FROM t GROUP BY h + 100, g",
    ),
    "all_rows": (
        "h BIGINT, name STRING, n BIGINT",
        "h, name",
        "SELECT t.h + 100, u.name, COUNT(*) FROM t LEFT JOIN u ON t.h = u.h AND t.v = u.id GROUP BY t.h + 100, u.name",
    ),
    "joined_groups": (
        "name STRING, g STRING, n BIGINT, total INT",
        "name, g",
        "SELECT u.name, t.g, COUNT(*), SUM(t.v) FROM t JOIN u ON t.h = u.h AND t.v = u.id WHERE t.id > 0 "
        "GROUP BY u.name, t.g",
    ),
    "counted_groups": (
        "h INT, n BIGINT, groups_ BIGINT",
        "h, n",
        "SELECT h, n, COUNT(*) FROM (SELECT h, g, COUNT(*) AS n FROM t GROUP BY h, g) AS c GROUP BY h, n",
    ),
}
"""Columns and key of the sink, and the query, which means the same to Flink and to SQLite."""
COMPUTED_FROM_ALL_ROWS = {"all_rows"}
IN_DEFAULT_TESTS = ("grouped", "wide", "joined_groups", "all_rows")

Sources = dict[str, dict[tuple[int, int], tuple[Any, ...]]]


def create(spark: SparkSession, lake: Path, events: Sequence[str] = ()) -> None:
    """Create the sources as Delta tables with a change feed; `events` are more of them, with the columns of `t`."""
    for table in (*TABLES, *events):
        columns = TABLES.get(table, TABLES["t"])[0]
        create_fed(spark, lake / table, columns)


def drawn(draw: random.Random, histories: int, keys: int, kept: Sources) -> dict[str, list[tuple[Any, ...]]]:
    """Draws changes of both tables and applies them to `kept`; the last value is whether the row is deleted."""
    changes: dict[str, list[tuple[Any, ...]]] = {}
    for table, rows in kept.items():
        touched = {(h, draw.randrange(keys)) for h in range(histories) for _ in range(draw.randrange(4))}
        changes[table] = []
        for key in sorted(touched):
            row = (*key, draw.choice(["a", "b", "c", "", None]), draw.choice([None, *range(keys)]))
            is_deleted = draw.random() < 0.3
            changes[table].append((*row, is_deleted))
            if is_deleted:
                rows.pop(key, None)
            else:
                rows[key] = row
    return changes


def apply(spark: SparkSession, lake: Path, changes: dict[str, list[tuple[Any, ...]]]) -> None:
    """Merges drawn changes into the source tables, as a user would."""
    for table, rows in changes.items():
        frame = spark.createDataFrame(rows, f"{TABLES[table][0]}, gone BOOLEAN")
        merge = (
            DeltaTable.forPath(spark, str(lake / table))
            .alias("t")
            .merge(frame.alias("s"), "t.h = s.h AND t.id = s.id")
        )
        values: dict[str, str | Column] = {name: f"s.{name}" for name in TABLES[table][1]}
        merge = merge.whenMatchedDelete("s.gone").whenMatchedUpdate(set=values)
        merge.whenNotMatchedInsert("NOT s.gone", values).execute()


def add(
    spark: SparkSession, lake: Path, draw: random.Random, histories: int, rows: list[Any], table: str
) -> None:
    """Appends drawn rows to a table without a key, in two commits, or in none."""
    for _ in range(draw.choice([0, 1, 2])):
        new = [
            (
                draw.randrange(histories),
                draw.randrange(4),
                draw.choice(["a", "b", None]),
                draw.choice([None, 0, 1, 2, 3]),
            )
            for _ in range(draw.randrange(1, 2 * histories))
        ]
        frame = spark.createDataFrame(new, TABLES["t"][0])
        frame.coalesce(1).write.format("delta").mode("append").save(str(lake / table))
        rows += new


def script(lake: Path, queries: dict[str, tuple[str, str, str]], events: Sequence[str] = ()) -> Path:
    """`events` are tables without a key, which have the columns of `t`."""
    parts = ["SET 'bridge.state' = 'state';"]
    for table in (*TABLES, *events):
        columns = TABLES.get(table, TABLES["t"])[0]
        key = "" if table in events else ", PRIMARY KEY (h, id) NOT ENFORCED"
        parts.append(
            f"CREATE TABLE {table} ({columns}{key}) WITH ('connector' = 'delta', 'path' = '{table}');"
        )
    for name, (columns, key, query) in queries.items():
        primary = f", PRIMARY KEY ({key}) NOT ENFORCED" if key else ""
        parts.append(
            f"CREATE TABLE {name} ({columns}{primary}) WITH ('connector' = 'delta', 'path' = 'results/{name}');\n"
            f"INSERT INTO {name} {query};"
        )
    file = lake / "histories.sql"
    file.write_text("\n".join(parts))
    return file


def result(spark: SparkSession, lake: Path, name: str) -> Rows:
    return Counter(
        tuple(row) for row in spark.read.format("delta").load(str(lake / "results" / name)).collect()
    )


def played(
    spark: SparkSession,
    lake: Path,
    seed: int,
    queries: dict[str, tuple[str, str, str]],
    histories: int,
    batches: int,
    events: Sequence[str] = (),
) -> None:
    """Plays drawn histories and compares every result after every batch."""
    draw = random.Random(seed)
    kept: Sources = {table: {} for table in TABLES}
    added: dict[str, list[Any]] = {table: [] for table in events}
    create(spark, lake, events)
    loaded = load_script(script(lake, queries, events))
    for number in range(batches):
        apply(spark, lake, drawn(draw, histories, 4, kept))
        for table, rows in added.items():
            add(spark, lake, draw, histories, rows, table)
        run_script(spark, loaded)
        tables = {table: (TABLES[table][1], list(rows.values())) for table, rows in kept.items()}
        tables |= {table: (TABLES["t"][1], rows) for table, rows in added.items()}
        for name, (_, _, query) in queries.items():
            found, expected = result(spark, lake, name), computed(query, tables)
            more, missing = ((a - b).most_common(3) for a, b in ((found, expected), (expected, found)))
            assert found == expected, (
                f"{name}, batch {number}, seed {seed}: {more} too many, {missing} missing"
            )


def test_a_hundred_histories(spark: SparkSession, lake: Path) -> None:
    """Of a drawn query; those of all queries are played by the slow test."""
    seed = drawn_seed()
    name = random.Random(seed).choice(IN_DEFAULT_TESTS)
    played(spark, lake, seed, {name: QUERIES[name]}, histories=100, batches=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 20))
def test_five_thousand_histories(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, QUERIES, histories=500, batches=6)


def test_which_are_computed_in_parts(lake: Path) -> None:
    plans = load_script(script(lake, QUERIES)).inserts
    assert {p.name for p in plans if not p.parts} == COMPUTED_FROM_ALL_ROWS
