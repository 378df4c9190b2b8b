"""Groups that the driver computes are those that Spark computes, or Spark is asked."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame, SparkSession

from bridge.delta.changes_in_driver import collect_changes
from bridge.pipelines.scripts import driver_groups as driver
from bridge.pipelines.scripts import few_rows
from bridge.pipelines.scripts.driver_groups import driver_groups
from bridge.pipelines.scripts.refresh import Method, refreshed
from bridge.pipelines.scripts.result import Result, open_result
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.source_tables import SourceRange, open_sources
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import Script, load_script

LEAST, GREATEST = -(2**63), 2**63 - 1
COLUMNS = {
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


def insert(name: str, key: list[str], columns: list[tuple[str, str, str]]) -> tuple[str, str]:
    """A sink and its INSERT; `columns` are a name, a type and a function."""
    typed = [*((c, NAMED[c], c) for c in key), *columns]
    declared = ", ".join(f"{c} {type}" for c, type, _ in typed)
    sink = f"CREATE TABLE {name} ({declared}, PRIMARY KEY ({', '.join(key)}) NOT ENFORCED) WITH ('connector' = 'print')"
    query = f"SELECT {', '.join(f for *_, f in typed)} FROM e GROUP BY {', '.join(key)}"
    return sink, f"INSERT INTO {name} {query}"


def bounds(columns: list[str]) -> list[tuple[str, str, str]]:
    return [(f"{f}_{c}".lower(), NAMED[c], f"{f}({c})") for c in columns for f in ("MIN", "MAX")]


def sums(columns: list[str]) -> list[tuple[str, str, str]]:
    types = {"p": "DECIMAL(38, 2)"}
    return [(f"sum_{c}", types.get(c, NAMED[c]), f"SUM({c})") for c in columns]


def counts(columns: list[str], of: str = "COUNT({})") -> list[tuple[str, str, str]]:
    return [(f"n{len(of)}_{c}", "BIGINT", of.format(c)) for c in columns]


DISTINCT = "COUNT(DISTINCT {})"
INSERTS = {
    "by_text": insert(
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
    "by_others": insert("by_others", ["b", "d", "at", "ntz", "l"], counts(["g", "d"], DISTINCT)),
}
SLOW = {
    "all_different": insert("all_different", ["k"], counts([c for c in COLUMNS if c != "p"], DISTINCT)),
    "by_rows": insert("by_rows", ["l", "y"], [("rows_", "BIGINT", "COUNT(*)"), *bounds(["g"])]),
}


def load(lake: Path, inserts: dict[str, tuple[str, str]], columns: dict[str, str] = NAMED) -> Script:
    declared = ", ".join(f"{name} {type}" for name, type in columns.items())
    parts = [f"CREATE TABLE e ({declared}) WITH ('connector' = 'delta', 'path' = 'e')"]
    text = ";\n".join(
        [*parts, *(sink for sink, _ in inserts.values()), *(query for _, query in inserts.values())]
    )
    return load_script(lake / "groups.sql", text=f"{text};")


def create(
    spark: SparkSession, lake: Path, columns: str = ", ".join(f"{c} {t}" for c, (t, _) in COLUMNS.items())
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{lake}/e` ({columns}) USING delta TBLPROPERTIES "
        "(delta.enableChangeDataFeed = true, delta.feature.timestampNtz = 'supported')"
    )


def add(spark: SparkSession, lake: Path, draw: random.Random, count: int) -> None:
    rows = [tuple(draw.choice(values) for _, values in COLUMNS.values()) for _ in range(count)]
    schema = ", ".join(f"{name} {type}" for name, (type, _) in COLUMNS.items())
    frame = spark.createDataFrame(rows, schema).coalesce(draw.choice([1, 2]))
    frame.write.format("delta").mode("append").save(f"{lake}/e")


def opened(
    spark: SparkSession, script: Script, name: str, version: int | None = None
) -> tuple[Result, dict[str, SourceRange]]:
    """The result of an INSERT, and what its source got since, or in that version."""
    state = ScriptState(script)
    plan = next(plan for plan in script.inserts if plan.name == name)
    result = open_result(spark, state, plan)
    assert result.progress is not None
    ranges = open_sources(spark, state, plan).ranges(result.progress.offsets)
    if version is not None:
        ranges = {name: replace(source, first=version, last=version) for name, source in ranges.items()}
    return result, ranges


def in_driver(spark: SparkSession, script: Script, name: str, version: int | None = None) -> pa.Table | None:
    result, ranges = opened(spark, script, name, version)
    return driver_groups(result.plan, result.table, ranges)


def by_spark(
    spark: SparkSession, script: Script, name: str, patch: pytest.MonkeyPatch, version: int | None = None
) -> pa.Table:
    result, ranges = opened(spark, script, name, version)
    with patch.context() as patched:
        patched.setattr(driver, "MOST_BYTES", -1)
        found = refreshed(spark, result.plan, result.table, ranges, Method.ADDED_GROUPS)
    assert isinstance(found.changes, DataFrame) and found.is_few
    return collect_changes(result.table.on(found.changes.sparkSession), found.changes)


def same(found: pa.Table | None, expected: pa.Table) -> None:
    assert found is not None and found.column_names == expected.column_names
    rows, others = (Counter(map(repr, t.cast(expected.schema).to_pylist())) for t in (found, expected))
    assert rows == others


def compare(spark: SparkSession, script: Script, patch: pytest.MonkeyPatch) -> None:
    for plan in script.inserts:
        same(in_driver(spark, script, plan.name), by_spark(spark, script, plan.name, patch))


def test_drawn_rows(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all types, with nulls; the files of the first rows lack columns."""
    draw, script = random.Random(5), load(lake, INSERTS)
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
    draw, script = random.Random(seed), load(lake, INSERTS | SLOW)
    create(spark, lake)
    add(spark, lake, draw, 30)
    run_script(spark, script)
    for _ in range(4):
        for _ in range(draw.choice([1, 2])):
            add(spark, lake, draw, draw.choice([1, 20]))
        OTHERS[draw.choice(list(OTHERS))](spark, lake, script)
        compare(spark, script, monkeypatch)
        run_script(spark, script)


NUMBERS = {"g": "STRING", "l": "BIGINT", "i": "INT", "p": "DECIMAL(20, 0)"}
TOTALS = {
    "totals": (
        "CREATE TABLE totals (g STRING, l BIGINT, i INT, p DECIMAL(38, 0), PRIMARY KEY (g) NOT ENFORCED) "
        "WITH ('connector' = 'print')",
        "INSERT INTO totals SELECT g, SUM(l), SUM(i), SUM(p) FROM e GROUP BY g",
    )
}


def test_sums_that_do_not_fit(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark raises an error, where a sum of Arrow is another number."""
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
    for version, values in enumerate(given, 1):
        spark.sql(f"INSERT INTO delta.`{lake}/e` VALUES {values}")
        if version == 1:
            run_script(spark, script)
        elif version == 2:
            found = in_driver(spark, script, "totals", version)
            same(found, by_spark(spark, script, "totals", monkeypatch, version))
        else:
            assert in_driver(spark, script, "totals", version) is None
            with pytest.raises(ArithmeticException, match="OVERFLOW"):
                by_spark(spark, script, "totals", monkeypatch, version)


def test_what_is_left_to_spark(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, files and places that are not those of the driver; with nothing in the way it computes them."""
    script = load(
        lake, {"n": insert("n", ["g"], [*counts(["k"]), *counts(["k"], DISTINCT)])}, dict(g="STRING", k="INT")
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
        (driver, "is_local", lambda _: False),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, value)
            assert computed() is None, name
    result, ranges = opened(spark, script, "n", 2)
    assert driver_groups(replace(result.plan, plain=None), result.table, ranges) is None
    whole = {name: replace(source, first=0) for name, source in ranges.items()}
    assert driver_groups(result.plan, result.table, whole) is None
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
    "sums": ("g, SUM(q)", "g STRING, x DECIMAL(38, 2)"),
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
        assert driver_groups(plan, result.table, {"e": source}) is None, plan.name
