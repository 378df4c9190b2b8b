"""Aggregates that are merged with added rows are those that SQLite computes from all rows, and those of a rebuild."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from bridge.metrics import BatchReport
from bridge.pipelines.scripts import driver_groups, few_rows, refresh
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import InsertPlan, Script, load_script
from bridge.ways import NotThisWay
from tests.delta.tables import create_fed
from tests.pipelines.scripts.oracle import Rows, computed
from tests.refusals import optional

COLUMNS, NAMES = "g STRING, k INT, v INT, p DECIMAL(28, 7)", ("g", "k", "v", "p")
QUERIES = {
    "counted": (
        "g STRING, k INT, n BIGINT, vs BIGINT, total INT, low INT, high STRING, few BIGINT",
        "g, k",
        "SELECT g, k, COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(g), COUNT(*) FILTER (WHERE v < 3) FROM e GROUP BY g, k",
    ),
    "plain": (
        "g STRING, n BIGINT, vs BIGINT, total INT, low INT, high STRING, ks BIGINT, gs BIGINT",
        "g",
        "SELECT g, COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(g), COUNT(DISTINCT k), COUNT(DISTINCT g) FROM e GROUP BY g",
    ),
    "plain_together": (
        "k INT, n BIGINT, g STRING, vs BIGINT, low INT",
        "g, k",
        "SELECT k, COUNT(*), g, COUNT(DISTINCT v), MIN(v) FROM e GROUP BY g, k",
    ),
    "priced": ("k INT, price DECIMAL(38, 7)", "k", "SELECT k, SUM(p) FROM e WHERE k > 1 GROUP BY k"),
    "means": (
        "g STRING, k INT, mean INT, few BIGINT, n BIGINT, price DECIMAL(38, 7), rounded DECIMAL(30, 1)",
        "g, k",
        "SELECT g, k, AVG(v), AVG(v) FILTER (WHERE v < 3 OR k = 2), COUNT(*), AVG(p), AVG(p) FILTER (WHERE v > 0) "
        "FROM e GROUP BY g, k",
    ),
    "whole": ("id STRING, n BIGINT, high INT", "id", "SELECT 'all', COUNT(*), MAX(v) FROM e"),
    "different": (
        "g STRING, k INT, vs BIGINT, n BIGINT, few BIGINT, high INT",
        "g, k",
        "SELECT g, k, COUNT(DISTINCT v), COUNT(*), COUNT(DISTINCT v) FILTER (WHERE v < 3 OR k = 1), MAX(v) FROM e "
        "WHERE v IS NULL OR v <> 5 GROUP BY g, k",
    ),
    "all_different": (
        "id STRING, gs BIGINT, n BIGINT",
        "id",
        "SELECT 'all', COUNT(DISTINCT g), COUNT(*) FROM e",
    ),
    "different_together": (
        "k INT, gs BIGINT",
        "k",
        "SELECT k, COUNT(DISTINCT g) FROM (SELECT g, k FROM e UNION ALL SELECT g, k FROM f) AS b GROUP BY k",
    ),
    "together": (
        "g STRING, n BIGINT",
        "g",
        "SELECT g, COUNT(*) FROM (SELECT g FROM e UNION ALL SELECT g FROM f WHERE v IS NOT NULL) AS b GROUP BY g",
    ),
}


IN_DEFAULT_TESTS = ("counted", "means", "different_together")


def script(lake: Path, queries: Collection[str] = tuple(QUERIES)) -> Path:
    parts = [
        f"CREATE TABLE {name} ({COLUMNS}) WITH ('connector' = 'delta', 'path' = '{name}');" for name in "ef"
    ]
    for name in queries:
        columns, key, query = QUERIES[name]
        # The users of a Delta table would see what is kept for an average.
        sink = "'print'" if "AVG" in query else f"'delta', 'path' = 'results/{name}'"
        parts.append(
            f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}) NOT ENFORCED) WITH ('connector' = {sink});\n"
            f"INSERT INTO {name} {query};"
        )
    file = lake / "added.sql"
    file.write_text("\n".join(parts))
    return file


def rows_of(spark: SparkSession, loaded: Script, name: str) -> list[Row]:
    """The rows of a result, in the columns of its sink."""
    plan = next(plan for plan in loaded.inserts if plan.name == name)
    table = spark.read.format("delta").load(str(ScriptState(loaded).result_target(plan)))
    return table.select(*(column.name for column in plan.columns)).collect()


def with_means(rows: list[tuple[Any, ...]]) -> Rows:
    """The rows of `means`: its prices have more digits than SQLite's numbers, whose AVG of integers is a fraction."""
    fewer = "CASE WHEN v < 3 OR k = 2 THEN v END"
    query = f"SELECT g, k, SUM(v) / COUNT(v), SUM({fewer}) / COUNT({fewer}), COUNT(*) FROM e GROUP BY g, k"
    numbers = computed(query, {"e": (NAMES[:3], [row[:3] for row in rows])})

    def mean(group: tuple[Any, ...], digits: str, least: int | None = None) -> Decimal | None:
        found = [
            p for g, k, v, p in rows if (g, k) == group and (least is None or (v is not None and v > least))
        ]
        with localcontext() as context:
            context.prec = 60
            return (
                (Decimal(sum(found)) / len(found)).quantize(Decimal(digits), ROUND_HALF_UP) if found else None
            )

    return Counter((*row, mean(row[:2], "1E-7"), mean(row[:2], "1E-1", 0)) for row in numbers)


def drawn(draw: random.Random, count: int) -> list[tuple[Any, ...]]:
    return [
        (
            draw.choice(["a", "b", "", None]),
            draw.choice([None, 1, 2, 3]),
            draw.choice([None, 1, 5, -4]),
            10**20 + n,
        )
        for n in range(count)
    ]


def played(
    spark: SparkSession, lake: Path, seed: int, batches: int, queries: Collection[str] = tuple(QUERIES)
) -> None:
    draw = random.Random(seed)
    loaded = load_script(script(lake, queries))
    assert all(plan.accumulators for plan in loaded.inserts)
    kept: dict[str, list[tuple[Any, ...]]] = {"e": [], "f": []}
    lines: list[str] = []
    for name in kept:
        create_fed(spark, lake / name, COLUMNS)
    for number in range(batches):
        for name, rows in kept.items():
            added = drawn(draw, 8 if name == "e" else 3)
            rows.extend(added)
            typed = [(g, k, v, Decimal(p)) for g, k, v, p in added]
            frame = spark.createDataFrame(typed, COLUMNS)
            frame.write.format("delta").mode("append").save(str(lake / name))
        reports: list[BatchReport] = []
        lines.clear()
        run_script(spark, loaded, listener=reports.append, out=lambda line, _: lines.append(line))
        assert len(lines) == len({line.lstrip("+-UI") for line in lines}), "a row that is printed has changed"
        method = "the groups of the added rows" if number else "all rows of its sources"
        assert {report.engine for report in reports} == {method}
        for name in queries:
            query = QUERIES[name][2]
            found = rows_of(spark, loaded, name)
            plain = {t: (NAMES, [(*row[:3], str(row[3])) for row in rows]) for t, rows in kept.items()}
            expected = with_means(kept["e"]) if name == "means" else computed(query, plain)
            if name == "priced":
                sums = Counter({row["k"]: row["price"] for row in found})
                exact: dict[int, int] = {}
                for _, k, _, p in kept["e"]:
                    if k is not None and k > 1:
                        exact[k] = exact.get(k, 0) + p
                assert sums == exact
            else:
                assert Counter(map(tuple, found)) == expected, f"{name}, batch {number}"
    again: list[BatchReport] = []
    run_script(spark, loaded, rebuild=True, listener=again.append)
    assert [(r.inserted, r.updated, r.deleted) for r in again] == [(0, 0, 0)] * len(queries)


@pytest.fixture(params=["driver", "few", "many"])
def number(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Groups of few rows come into the driver, where plain ones are computed; those of many stay in Spark."""
    if request.param == "few":
        monkeypatch.setattr(driver_groups, "MOST_BYTES", -1)
    if request.param == "many":
        monkeypatch.setattr(few_rows, "FEW_BYTES", -1)
    computed: list[bool] = []

    def watched(plan: InsertPlan, *given: Any) -> object:
        found = optional(driver_groups.driver_groups)(plan, *given)
        if plan.plain is not None:
            computed.append(found is not None)
        if found is None:
            raise NotThisWay("Spark computes it")
        return found

    monkeypatch.setattr(refresh, "driver_groups", watched)
    yield str(request.param)
    assert set(computed) == {request.param == "driver"}, "another way than the test is about"


def test_added_rows(spark: SparkSession, lake: Path, number: str) -> None:
    queries = {
        "driver": ("plain", "plain_together"),
        "few": (*IN_DEFAULT_TESTS, "plain"),
        "many": ("different", "means", "plain"),
    }
    played(spark, lake, seed=7, batches=2, queries=queries[number])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10, 14))
@pytest.mark.usefixtures("number")
def test_more_added_rows(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, batches=6)


@pytest.mark.slow
def test_different_values_of_a_clustered_source_are_computed_by_part(spark: SparkSession, lake: Path) -> None:
    """The files of the groups that changed are few then; the counts are the same."""
    for name, clustering in (("e", "CLUSTER BY (g)"), ("f", "")):
        create_fed(spark, lake / name, COLUMNS, clustering)
    loaded = load_script(script(lake))
    methods = set[str | None]()
    for _ in range(2):
        spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 1, 1, 1), ('a', 1, 2, 1), ('b', 1, 2, 1)")
        reports: list[BatchReport] = []
        run_script(spark, loaded, listener=reports.append)
        methods = {r.engine for r in reports if r.pipeline.endswith(".different")}
        rows = spark.read.format("delta").load(f"{lake}/results/different").select("g", "vs").collect()
        assert Counter(map(tuple, rows)) == Counter([("a", 2), ("b", 1)])
    assert methods == {"the parts that changed"}


@pytest.mark.slow
def test_results_that_keep_no_sums_are_computed_by_part(spark: SparkSession, lake: Path) -> None:
    """Those of an older bridge; and those that keep some for a query that was changed."""
    create_fed(spark, f"{lake}/e", "g STRING, v INT")
    text = (
        "CREATE TABLE e (g STRING, v INT) WITH ('connector' = 'delta', 'path' = 'e');"
        "CREATE TABLE m (g STRING, v INT, PRIMARY KEY (g) NOT ENFORCED) WITH ('connector' = 'blackhole');"
        "INSERT INTO m SELECT g, AVG(v) FROM e GROUP BY g;"
    )
    new = load_script(lake / "means.sql", text=text)
    old = replace(new, inserts=tuple(plan.without_kept_columns() for plan in new.inserts))
    other = load_script(lake / "means.sql", text=text.replace("AVG", "MAX"))
    renamed = "SET 'pipeline.name' = 'other';"
    keeping, changed = (
        load_script(lake / "means.sql", text=renamed + one) for one in (text, text.replace("AVG", "MAX"))
    )
    engines: list[str | None] = []
    steps = [(old, False), (new, False), (other, True), (keeping, False), (keeping, False), (changed, True)]
    for script, rebuild in [*steps, (keeping, True), (keeping, False)]:
        spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 4), ('a', {len(engines)})")
        reports: list[BatchReport] = []
        run_script(spark, script, rebuild=rebuild, listener=reports.append)
        engines += [report.engine for report in reports]
        function = "MAX" if rebuild and script is not keeping else "AVG"
        spark.read.format("delta").load(f"{lake}/e").createOrReplaceTempView("given")
        expected = spark.sql(f"SELECT CAST(FLOOR({function}(v)) AS INT) FROM given").collect()[0][0]
        assert rows_of(spark, script, "m") == [("a", expected)]
    whole, parts, groups = (
        "all rows of its sources",
        "the parts that changed",
        "the groups of the added rows",
    )
    assert engines == [whole, parts, whole, whole, groups, whole, whole, groups]
