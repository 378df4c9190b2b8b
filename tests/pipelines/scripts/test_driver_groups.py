"""What the driver computes is what Spark does; the rest is left to Spark, which raises its own errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.errors import ConcurrentRunError
from bridge.pipelines.scripts import driver_groups as driver
from bridge.pipelines.scripts import few_rows
from bridge.pipelines.scripts.driver_groups import driver_groups
from bridge.pipelines.scripts.result import open_result
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.source_tables import SourceRange, open_sources
from bridge.pipelines.scripts.state import ScriptState
from tests.pipelines.scripts.both_ways import (
    DISTINCT,
    by_spark,
    counts,
    create,
    in_driver,
    insert,
    load,
    opened,
    same,
)
from tests.refusals import optional

LEAST = -(2**63)
NUMBERS = {"g": "STRING", "l": "BIGINT", "i": "INT", "p": "DECIMAL(20, 0)"}
TOTALS = {
    "totals": (
        "CREATE TABLE totals (g STRING, l BIGINT, i INT, p DECIMAL(38, 0), PRIMARY KEY (g) NOT ENFORCED) "
        "WITH ('connector' = 'print')",
        "INSERT INTO totals SELECT g, SUM(l), SUM(i), SUM(p) FROM e GROUP BY g",
    )
}


def test_sums_of_integers_wrap(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the batch, and where it is merged with the result."""
    script = load(lake, TOTALS, NUMBERS)
    create(spark, lake, "g STRING, l BIGINT, i INT, p DECIMAL(20, 0)")
    most = 2**31 - 1
    given = [
        f"('a', {2**62 - 1}, {most - 1}, 1), ('b', 0, 0, 0)",
        f"('a', {2**62 - 1}, 1, 3), ('c', NULL, NULL, NULL)",
        f"('a', {2**62 + 1}, 0, 0)",
        f"('b', {LEAST}, 0, 0), ('b', -1, 0, 0)",
        "('a', 0, 2, 0)",
        f"('b', 0, {most}, 0), ('b', 0, 1, 0)",
    ]
    sums = {}
    for version, values in enumerate(given, 1):
        spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES {values}")
        if version == 1:
            run_script(spark, script)
            continue
        found = in_driver(spark, script, "totals", version)
        same(found, by_spark(spark, script, "totals", monkeypatch, version))
        assert found is not None
        sums[version] = {row["g"]: (row["l"], row["i"]) for row in found.to_pylist()}
    assert sums == {
        2: {"a": (2**63 - 2, most), "c": (None, None)},
        3: {"a": (LEAST, most - 1)},
        4: {"b": (2**63 - 1, 0)},
        5: {"a": (2**62 - 1, -(2**31))},
        6: {"b": (0, -(2**31))},
    }


def test_what_is_left_to_spark(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, files and places that are not those of the driver; with nothing in the way it computes them."""
    script = load(
        lake,
        {"n": insert({"g": "STRING"}, "n", ["g"], [*counts(["k"]), *counts(["k"], DISTINCT)])},
        dict(g="STRING", k="INT"),
    )
    create(spark, lake, "g STRING, k INT")
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 1)")
    run_script(spark, script)
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 1), ('b', 2)")

    def computed(version: int = 2) -> list[tuple[object, ...]] | None:
        found = in_driver(spark, script, "n", version)
        return None if found is None else sorted(tuple(row.values()) for row in found.to_pylist())

    groups = [("a", 2, 1, "+U"), ("b", 1, 1, "+U")]
    assert computed() == groups
    for owner, name, value in (
        (few_rows, "FEW_BYTES", 1),
        (driver, "MOST_BYTES", 1),
        (driver, "MOST_ROWS", 1),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, value)
            assert computed() is None, name
    result, ranges = opened(spark, script, "n", 2)
    assert optional(driver_groups)(replace(result.plan, plain=None), result.table, ranges) is None
    whole = {name: replace(source, first=0) for name, source in ranges.items()}
    assert optional(driver_groups)(result.plan, result.table, whole) is None
    spark.sql(f"OPTIMIZE delta.`{lake}/e`")
    assert computed(3) == [], "no row was added"
    spark.sql(f"UPDATE delta.`{lake}/e` SET k = 3 WHERE g = 'b'")
    assert computed(4) is None and computed() == groups, "an update is Spark's to refuse"
    state = Path(str(result.table.target.path))
    (file,) = state.glob("*.parquet")
    file.rename(state / "gone")
    assert computed() is None
    (state / "gone").rename(file)
    assert computed() == groups
    first = next(f for f in (lake / "e").glob("*.parquet") if pq.read_metadata(f).num_rows == 1)
    first.write_bytes(b"PAR1")
    assert computed() is None


LEFT = {
    "doubles": ("g, MAX(f)", "g STRING, x DOUBLE"),
    "binary": ("raw, COUNT(*)", "g BYTES, x BIGINT"),
    "prices": ("q, COUNT(*)", "g DECIMAL(29, 2), x BIGINT"),
    "different": ("g, COUNT(DISTINCT q)", "g STRING, x BIGINT"),
    "counted": ("g, COUNT(f)", "g STRING, x BIGINT"),
}


def test_types_that_are_left_to_spark(spark: SparkSession, lake: Path) -> None:
    columns = {"g": "STRING", "f": "DOUBLE", "q": "DECIMAL(29, 2)", "raw": "BYTES"}
    inserts = {
        name: (
            f"CREATE TABLE {name} ({declared}, PRIMARY KEY (g) NOT ENFORCED) WITH ('connector' = 'print')",
            f"INSERT INTO {name} SELECT {selected} FROM e GROUP BY {selected.split(',')[0]}",
        )
        for name, (selected, declared) in LEFT.items()
    }
    script = load(lake, inserts, columns)
    create(spark, lake, "g STRING, f DOUBLE, q DECIMAL(29, 2), raw BINARY")
    for _ in range(2):
        spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a', 1, 2, X'00')")
    for plan in script.inserts:
        assert plan.plain is not None
        state = ScriptState(script)
        result = open_result(spark, state, plan)
        source = SourceRange(open_sources(spark, state, plan).tables["e"], 2, 2, appends=True)
        assert optional(driver_groups)(plan, result.table, {"e": source}) is None, plan.name


def test_another_run_that_commits_meanwhile(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first merged the result as it was before, so its MERGE fails."""
    script = load(lake, {"n": insert({"g": "STRING"}, "n", ["g"], counts(["g"]))}, {"g": "STRING"})
    create(spark, lake, "g STRING")
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a')")
    run_script(spark, script)
    spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES ('a')")
    (first, _), (second, _) = (opened(spark, script, "n") for _ in range(2))
    sources = open_sources(spark, ScriptState(script), first.plan)
    waiting = [second]

    def hit(name: str) -> None:
        if name == "script.before-commit" and waiting:
            waiting.pop().refresh(sources)

    monkeypatch.setattr(failpoints, "hit", hit)
    with pytest.raises(ConcurrentRunError):
        first.refresh(sources)
    monkeypatch.undo()
    assert second.table.delta().toDF().collect() == [("a", 2)]
    assert opened(spark, script, "n")[0].refresh(sources) is None
