"""Groups and pairs for which an INSERT fails are left out as long as they fail, in every way of a refresh.

After every batch of drawn changes results are those that SQLite computes of the groups and pairs that do not fail, and
the quarantine has those that began to fail. Many histories run at once: `h` is in every key.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.errors import BadRecordError
from bridge.metrics import BatchReport
from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script
from tests.pipelines.scripts.oracle import computed
from tests.pipelines.scripts.test_refresh_histories import TABLES, Sources, apply, create, drawn, result

_GROUPS = "FROM t GROUP BY h, g"
_FAIL = "HAVING COUNT(v) = 0"
_PAIRED = "FROM t JOIN u ON t.h = u.h AND t.id = u.id WHERE t.v IS NOT NULL AND u.w = 0"
_GOOD_PAIR = "(t.v IS NULL OR COALESCE(u.w, 1) <> 0)"
QUERIES = {
    "average": (
        "h INT, g STRING, q BIGINT",
        "h, g",
        f"SELECT h, g, SUM(id) / COUNT(v) {_GROUPS}",
        f"SELECT h, g, SUM(id) / COUNT(v) {_GROUPS} HAVING COUNT(v) > 0",
        f"SELECT h, g {_GROUPS} {_FAIL}",
        "SUM(id) / COUNT(v)",
    ),
    "having": (
        "h INT, g STRING, n BIGINT",
        "h, g",
        f"SELECT h, g, COUNT(*) {_GROUPS} HAVING NOT 3 / COUNT(v) > 2",
        f"SELECT h, g, COUNT(*) {_GROUPS} HAVING COUNT(v) > 0 AND NOT 3 / COUNT(v) > 2",
        f"SELECT h, g {_GROUPS} {_FAIL}",
        "3 / COUNT(v)",
    ),
    "above": (
        "h INT, g STRING, q BIGINT",
        "h, g",
        f"SELECT h, g, 12 / n FROM (SELECT h, g, COUNT(v) AS n {_GROUPS}) AS c",
        f"SELECT h, g, 12 / COUNT(v) {_GROUPS} HAVING COUNT(v) > 0",
        f"SELECT h, g {_GROUPS} {_FAIL}",
        "12 / n",
    ),
    "ranked": (
        "h INT, g STRING, q BIGINT, place BIGINT",
        "h, place",
        "SELECT h, g, q, place FROM (SELECT h, g, q, ROW_NUMBER() OVER (PARTITION BY h ORDER BY q DESC, g) AS place "
        f"FROM (SELECT h, g, SUM(id) / COUNT(v) AS q {_GROUPS}) AS c) AS r WHERE place <= 2",
        "SELECT h, g, q, place FROM (SELECT h, g, q, ROW_NUMBER() OVER (PARTITION BY h ORDER BY q DESC, g) AS place "
        f"FROM (SELECT h, g, SUM(id) / COUNT(v) AS q {_GROUPS} HAVING COUNT(v) > 0) AS c) AS r WHERE place <= 2",
        f"SELECT h, g {_GROUPS} {_FAIL}",
        "SUM(id) / COUNT(v)",
    ),
    "all_rows": (
        "h BIGINT, name STRING, q BIGINT",
        "h, name",
        "SELECT t.h + 100, u.name, SUM(t.id) / COUNT(u.w) FROM t LEFT JOIN u ON t.h = u.h AND t.v = u.id "
        "GROUP BY t.h + 100, u.name",
        "SELECT t.h + 100, u.name, SUM(t.id) / COUNT(u.w) FROM t LEFT JOIN u ON t.h = u.h AND t.v = u.id "
        "GROUP BY t.h + 100, u.name HAVING COUNT(u.w) > 0",
        "SELECT t.h + 100, u.name FROM t LEFT JOIN u ON t.h = u.h AND t.v = u.id GROUP BY t.h + 100, u.name "
        "HAVING COUNT(u.w) = 0",
        "SUM(t.id) / COUNT(u.w)",
    ),
    "joined_groups": (
        "name STRING, w INT, q BIGINT",
        "name, w",
        "SELECT u.name, u.w, SUM(t.id) / COUNT(u.w) FROM t JOIN u ON t.h = u.h AND t.v = u.id GROUP BY u.name, u.w",
        "SELECT u.name, u.w, SUM(t.id) / COUNT(u.w) FROM t JOIN u ON t.h = u.h AND t.v = u.id GROUP BY u.name, u.w "
        "HAVING COUNT(u.w) > 0",
        "SELECT u.name, u.w FROM t JOIN u ON t.h = u.h AND t.v = u.id GROUP BY u.name, u.w HAVING COUNT(u.w) = 0",
        "SUM(t.id) / COUNT(u.w)",
    ),
    "pairs": (
        "h INT, id INT, w INT",
        "h, id",
        "SELECT t.h, t.id, u.w FROM t JOIN u ON t.h = u.h AND t.id = u.id AND (t.v / u.w > 0 OR u.name = 'a')",
        "SELECT t.h, t.id, u.w FROM t JOIN u ON t.h = u.h AND t.id = u.id AND (t.v / u.w > 0 OR u.name = 'a') "
        f"AND {_GOOD_PAIR}",
        f"SELECT t.h, t.id, u.h, u.id {_PAIRED}",
        "t.v / u.w",
    ),
    "outer_pairs": (
        "h INT, id INT, w INT",
        "h, id",
        "SELECT t.h, t.id, u.w FROM t LEFT JOIN u ON t.h = u.h AND t.id = u.id AND (t.v / u.w > 0 OR u.name = 'a')",
        "SELECT t.h, t.id, u.w FROM t LEFT JOIN u ON t.h = u.h AND t.id = u.id AND (t.v / u.w > 0 OR u.name = 'a') "
        f"AND {_GOOD_PAIR}",
        f"SELECT t.h, t.id, u.h, u.id {_PAIRED}",
        "t.v / u.w",
    ),
}
"""Columns and key of the sink, and the query; for SQLite the result and the keys of what fails; what fails."""
PAIRS = ("pairs", "outer_pairs")


def text(names: Sequence[str], mode: str) -> str:
    parts = [f"SET 'bridge.state' = '{mode}-state';\nSET 'bridge.bad-records' = '{mode}';"]
    for table, (columns, _) in TABLES.items():
        key = "PRIMARY KEY (h, id) NOT ENFORCED"
        parts.append(
            f"CREATE TABLE {table} ({columns}, {key}) WITH ('connector' = 'delta', 'path' = '{table}');"
        )
    for name in names:
        columns, key, query, *_ = QUERIES[name]
        parts.append(
            f"CREATE TABLE {mode}_{name} ({columns}, PRIMARY KEY ({key}) NOT ENFORCED) "
            f"WITH ('connector' = 'delta', 'path' = 'results/{mode}_{name}');\nINSERT INTO {mode}_{name} {query};"
        )
    return "\n".join(parts)


def quarantined(spark: SparkSession, lake: Path, name: str) -> set[tuple[int, tuple[str | None, ...], str]]:
    """Batch, values of the key, and reason."""
    rows = spark.read.format("delta").load(f"{lake}/results/{name}_quarantine").collect()
    found = [(row.batch, tuple(key.value for key in row.row_key), row.reason) for row in rows]
    assert len(set(found)) == len(found)
    return set(found)


def played(
    spark: SparkSession, lake: Path, seed: int, names: Sequence[str], histories: int, batches: int
) -> None:
    draw = random.Random(seed)
    kept: Sources = {table: {} for table in TABLES}
    create(spark, lake)
    loaded = load_script(lake / "groups.sql", text=text(names, "quarantine"))
    before: dict[str, set[tuple[Any, ...]]] = {name: set() for name in names}
    stored: dict[str, set[tuple[int, tuple[str | None, ...], str]]] = {name: set() for name in names}
    for number in range(batches):
        changes = drawn(draw, histories, 4, kept)
        apply(spark, lake, changes)
        new = {table: {row[:2] for row in rows} for table, rows in changes.items()}
        reports: list[BatchReport] = []
        run_script(spark, loaded, listener=reports.append)
        counts = {r.pipeline.partition("quarantine_")[2]: r.bad_records for r in reports}
        tables = {table: (TABLES[table][1], list(rows.values())) for table, rows in kept.items()}
        for name in names:
            *_, right, bad, expression = QUERIES[name]
            where = f"{name}, batch {number}, seed {seed}"
            found, expected = result(spark, lake, f"quarantine_{name}"), computed(right, tables)
            more, missing = ((a - b).most_common(3) for a, b in ((found, expected), (expected, found)))
            assert found == expected, f"{where}: {more} too many, {missing} missing"
            failing = set(computed(bad, tables))
            is_new = [k for k in failing if k[:2] in new["t"] or k[2:] in new["u"]]
            began = set(is_new) if name in PAIRS else failing - before[name]
            before[name] = failing
            shown = {tuple(None if v is None else str(v) for v in key) for key in began}
            stored[name] |= {(number, key, f"division by zero in {expression}") for key in shown}
            assert counts[name] == len(began), where
            assert quarantined(spark, lake, f"quarantine_{name}") == stored[name], where
    assert all(stored.values())
    good = {
        "t": [(*key, row[2], 1, False) for key, row in kept["t"].items()],
        "u": [(h, id, "a", 1, False) for h in range(histories) for id in range(4)],
    }
    apply(spark, lake, good)
    run_script(spark, loaded)
    run_script(spark, load_script(lake / "fail.sql", text=text(names, "fail")))
    for name in names:
        assert result(spark, lake, f"quarantine_{name}") == result(spark, lake, f"fail_{name}"), name


def test_groups_are_left_out_as_long_as_they_fail(spark: SparkSession, lake: Path) -> None:
    played(spark, lake, 1, ["average"], histories=20, batches=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [10, 11])
def test_in_every_way_of_a_refresh(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, list(QUERIES), histories=200, batches=5)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        (
            "SELECT g, SUM(h) / COUNT(v) FROM t GROUP BY g",
            r"delta .*/t, group \(g: b\): division by zero in SUM\(h\) / COUNT\(v\)",
        ),
        (
            "SELECT g, COUNT(*) FROM t GROUP BY g HAVING 1 / COUNT(v) > 0",
            r"delta .*/t, group \(g: b\): division by zero in 1 / COUNT\(v\)",
        ),
        (
            "SELECT g, 1 / n FROM (SELECT g, COUNT(v) AS n FROM t GROUP BY g) AS c",
            r"delta .*/t, group \(g: b\): division by zero in 1 / n",
        ),
        (
            "SELECT t.g, CAST(t.id AS BIGINT) FROM t JOIN u ON t.g = u.name AND t.h / u.w = 1",
            r"delta .*/t, row \(h: 9, id: 1\) and delta .*/u, row \(h: 9, id: 3\): division by zero in t\.h / u\.w",
        ),
    ],
)
@pytest.mark.slow
def test_a_run_stops_and_names_the_group_or_the_pair(
    spark: SparkSession, lake: Path, query: str, place: str
) -> None:
    create(spark, lake)
    spark.sql(f"INSERT INTO delta.`{lake}/t` VALUES (7, 1, 'a', 4711), (9, 1, 'b', NULL)")
    spark.sql(f"INSERT INTO delta.`{lake}/u` VALUES (7, 2, 'a', 7), (9, 3, 'b', 0)")
    sink = (
        "CREATE TABLE o (g STRING, n BIGINT) WITH ('connector' = 'print');"
        if " JOIN " in query
        else "CREATE TABLE o (g STRING, n BIGINT, PRIMARY KEY (g) NOT ENFORCED) WITH ('connector' = 'delta', "
        "'path' = 'o');"
    )
    script = load_script(lake / "stop.sql", text=f"{text([], 'fail')}{sink}INSERT INTO o {query};")
    with pytest.raises(BadRecordError) as stopped:
        run_script(spark, script)
    message = str(stopped.value)
    assert re.match(
        rf"INSERT stop\.o: {place}\. Nothing of this batch was written\. Correct the row", message
    )
    assert "SET 'bridge.bad-records' = 'quarantine' stores them in a Delta table, 'skip' counts" in message
    assert "4711" not in message
