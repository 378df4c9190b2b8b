"""Rows for which an INSERT fails: a run stops and names them, or leaves them out as long as they fail.

Groups of windows for which an INSERT fails are left out when these close, and come with late rows.

Bad records and failing rows of a script over a real broker.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError
from bridge.metrics import BatchReport
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import load_script
from tests.delta.tables import create_fed
from tests.pipelines.scripts import test_refresh_windows as windows
from tests.pipelines.scripts.oracle import Rows, computed
from tests.pipelines.scripts.scripts import MakeScript, ScriptRun

_SOURCES = """
CREATE TABLE t (id INT, a INT, b INT, s STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 't');
CREATE TABLE u (id INT, c INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'u');
CREATE TABLE e (id INT, a INT, b INT, s STRING) WITH ('connector' = 'delta', 'path' = 't');
CREATE VIEW v AS SELECT id, a / b AS q, CAST(s AS INT) AS n FROM t;
"""
_INSERTS = {
    "projected": ("id INT, q INT", "id", "SELECT id, a / b FROM t"),
    "filtered": ("id INT", "id", "SELECT id FROM t WHERE a / b > 0"),
    "viewed": ("id INT, q INT", "id", "SELECT id, q FROM v WHERE id > 0"),
    "summed": ("g INT, n INT", "g", "SELECT a, SUM(a / b) FROM t GROUP BY a"),
    "grouped": ("g INT, n BIGINT", "g", "SELECT a / b, COUNT(*) FROM t GROUP BY a / b"),
    "averaged": ("g INT, n INT", "g", "SELECT a, AVG(a / b) FROM v2 GROUP BY a"),
    "joined": ("id INT, k INT", "id, k", "SELECT t.id, u.id FROM t JOIN u ON t.a / t.b = u.id"),
    "outer": ("id INT, k INT", "id, k", "SELECT t.id, u.id FROM t LEFT JOIN u ON t.a / t.b = u.id"),
    "ranked": (
        "id INT, n BIGINT",
        "id",
        "SELECT id, n FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY a / b ORDER BY id) AS n FROM t) WHERE n <= 1",
    ),
    "united": (
        "id INT, q INT",
        "id",
        "SELECT id, SUM(q) FROM (SELECT id, a / b AS q FROM t UNION ALL SELECT id, c FROM u) AS x GROUP BY id",
    ),
}
_SPARK = {
    "projected": "SELECT id, a DIV b FROM good",
    "filtered": "SELECT id FROM good WHERE a DIV b > 0",
    "viewed": "SELECT id, a DIV b FROM good",
    "summed": "SELECT a, SUM(a DIV b) FROM good GROUP BY a",
    "grouped": "SELECT a DIV b, COUNT(*) FROM good GROUP BY a DIV b",
    "averaged": "SELECT a, SUM(a DIV b) DIV COUNT(a DIV b) FROM good GROUP BY a",
    "joined": "SELECT good.id, u.id FROM good JOIN u ON good.a DIV b = u.id",
    "outer": "SELECT good.id, u.id FROM good LEFT JOIN u ON good.a DIV b = u.id",
    "ranked": (
        "SELECT id, n FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY a DIV b ORDER BY id) AS n FROM good) "
        "WHERE n = 1"
    ),
    "united": "SELECT id, SUM(q) FROM (SELECT id, a DIV b AS q FROM good UNION ALL SELECT id, c FROM u) GROUP BY id",
}


def _create(spark: SparkSession, lake: Path, *rows: str) -> None:
    for name, columns in (("t", "id INT, a INT, b INT, s STRING"), ("u", "id INT, c INT")):
        create_fed(spark, f"{lake}/{name}", columns)
    spark.sql(f"INSERT INTO delta.`{lake}/u` VALUES (1, 10), (2, 20)")
    spark.sql(f"INSERT INTO delta.`{lake}/t` VALUES {', '.join(rows)}")


def _script(names: list[str], mode: str) -> str:
    sinks = "".join(
        f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}) NOT ENFORCED) "
        f"WITH ('connector' = 'delta', 'path' = '{name}');\nINSERT INTO {name} {query};\n"
        for name in names
        for columns, key, query in [_INSERTS[name]]
    )
    view = "CREATE VIEW v2 AS SELECT id, a, b FROM t;\n"
    return f"SET 'bridge.bad-records' = '{mode}';\n{_SOURCES}{view}{sinks}"


def _run(spark: SparkSession, lake: Path, text: str, *, rebuild: bool = False) -> dict[str, BatchReport]:
    reports: list[BatchReport] = []
    script = load_script(lake / "failing.sql", text=text)
    run_script(spark, script, listener=reports.append, rebuild=rebuild)
    return {report.pipeline.removeprefix("failing."): report for report in reports}


def _rows(spark: SparkSession, lake: Path, name: str) -> list[str]:
    return sorted(map(str, spark.read.format("delta").load(f"{lake}/{name}").collect()))


def _expected(spark: SparkSession, lake: Path, name: str) -> list[str]:
    spark.read.format("delta").load(f"{lake}/t").where("b <> 0").createOrReplaceTempView("good")
    spark.read.format("delta").load(f"{lake}/u").createOrReplaceTempView("u")
    columns = [c.strip().split()[0] for c in _INSERTS[name][0].split(",")]
    return sorted(map(str, spark.sql(_SPARK[name]).toDF(*columns).collect()))


def _follows(spark: SparkSession, lake: Path, names: list[str], count: int, mode: str = "skip") -> None:
    """Rows get bad and good again in `count` steps; each result is that of the good rows, however it is computed."""
    _create(spark, lake, "(1, 4, 2, 'x')", "(2, 4, 4, 'x')", "(3, 4, 0, 'x')", "(4, 6, 3, 'x')")
    text, table = _script(names, mode), f"delta.`{lake}/t`"
    steps = [
        ("", 1),
        (f"UPDATE {table} SET b = IF(id = 3, 1, 0) WHERE id IN (1, 3)", 1),
        (f"DELETE FROM {table} WHERE id = 1", 0),
        (f"INSERT INTO {table} VALUES (5, 4, 0, 'x'), (6, 8, 2, 'x')", 1),
    ]
    for change, bad in steps[:count]:
        if change:
            spark.sql(change)
        reports = _run(spark, lake, text)
        for name in names:
            assert _rows(spark, lake, name) == _expected(spark, lake, name), (name, change)
            assert reports[name].bad_records == bad, (name, change)


def test_rows_are_left_out_as_long_as_they_fail(spark: SparkSession, lake: Path) -> None:
    _follows(spark, lake, ["summed"], 2, "quarantine")
    reason = "division by zero in a / b"
    assert _quarantined(spark, lake, "summed") == [(0, 't ["3"]', reason), (1, 't ["1"]', reason)]


@pytest.mark.slow
def test_rows_are_left_out_of_all_queries_as_long_as_they_fail(spark: SparkSession, lake: Path) -> None:
    _follows(spark, lake, list(_INSERTS), 4)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id, a / b FROM t", "division by zero in a / b"),
        ("SELECT id, 1 FROM v WHERE 100 / n > 0", "a value that is no INT in CAST(s AS INT)"),
        ("SELECT a, COUNT(*) FILTER (WHERE a % b = 0) FROM t GROUP BY a", "division by zero in a % b"),
    ],
)
def test_a_run_stops_and_names_the_row(spark: SparkSession, lake: Path, query: str, reason: str) -> None:
    _create(spark, lake, "(1, 4, 2, '5')", "(7, 4, 0, 'secret')")
    sink = "CREATE TABLE o (x INT, y BIGINT, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'o')"
    with pytest.raises(BadRecordError) as stopped:
        _run(spark, lake, f"{_SOURCES}{sink};\nINSERT INTO o {query};\n")
    message = str(stopped.value)
    assert re.match(
        rf"INSERT failing\.o: delta .*/t, row \(id: 7\): {re.escape(reason)}\. Nothing of this", message
    )
    assert "SET 'bridge.bad-records' = 'quarantine' stores them in a Delta table, 'skip' counts" in message
    assert "secret" not in message


def test_what_is_not_read_or_not_taken_does_not_fail(spark: SparkSession, lake: Path) -> None:
    _create(spark, lake, "(1, 4, 2, '5')", "(7, 4, 0, 'x')")
    _run(
        spark,
        lake,
        f"{_SOURCES}CREATE TABLE o (x INT, y INT, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'delta', "
        "'path' = 'o');\nINSERT INTO o SELECT id, CASE WHEN b <> 0 THEN a / b END FROM (SELECT id, a, b, 1 / b AS z "
        "FROM t) WHERE b = 0 OR 1 / b = 0;\n",
    )
    assert _rows(spark, lake, "o") == ["Row(x=1, y=2)", "Row(x=7, y=None)"]


def test_added_rows_that_fail_are_left_out(spark: SparkSession, lake: Path) -> None:
    """Neither of the two ways of a table that only gets rows computes rows before again."""
    _create(spark, lake, "(1, 4, 2, 'x')", "(2, 4, 0, 'x')")
    text = (
        f"SET 'bridge.bad-records' = 'skip';\n{_SOURCES}"
        "CREATE TABLE added (id INT, q INT) WITH ('connector' = 'delta', 'path' = 'added');\n"
        "CREATE TABLE merged (a INT, n BIGINT, q INT, PRIMARY KEY (a) NOT ENFORCED) "
        "WITH ('connector' = 'delta', 'path' = 'merged');\n"
        "INSERT INTO added SELECT id, a / b FROM e;\n"
        "INSERT INTO merged SELECT a, COUNT(*), SUM(a / b) FROM e GROUP BY a;\n"
    )
    _run(spark, lake, text)
    spark.sql(f"INSERT INTO delta.`{lake}/t` VALUES (3, 4, 1, 'x'), (4, 4, 0, 'x'), (5, 5, 0, 'x')")
    reports = _run(spark, lake, text)
    assert {n: (r.engine, r.bad_records) for n, r in reports.items()} == {
        "added": ("the added rows", 2),
        "merged": ("the groups of the added rows", 2),
    }
    assert _rows(spark, lake, "added") == ["Row(id=1, q=2)", "Row(id=3, q=4)"]
    assert _rows(spark, lake, "merged") == ["Row(a=4, n=2, q=6)"]


def _quarantined(spark: SparkSession, lake: Path, name: str) -> list[tuple[int, str, str]]:
    """Batch, table and key, and reason of each row in the quarantine of an INSERT."""
    rows = spark.read.format("delta").load(f"{lake}/{name}_quarantine")
    assert {row.pipeline for row in rows.collect()} <= {f"failing.{name}"}
    shown = "concat_ws(' ', array_join(tables, ','), to_json(row_key.value))"
    return sorted(map(tuple, rows.selectExpr("batch", shown, "reason").collect()))


@pytest.mark.slow
def test_rows_that_fail_are_quarantined_once(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends between the commits of quarantine and result leaves rows that the next run writes again."""
    _create(spark, lake, "(1, 4, 2, 'x')", "(3, 4, 0, 'x')")
    text, table, reason = (
        _script(["projected"], "quarantine"),
        f"delta.`{lake}/t`",
        "division by zero in a / b",
    )
    _run(spark, lake, text)
    assert _quarantined(spark, lake, "projected") == [(0, 't ["3"]', reason)]

    def end(place: str) -> None:
        if place == "script.before-commit":
            raise RuntimeError(place)

    spark.sql(f"INSERT INTO {table} VALUES (5, 4, 0, 'x')")
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "hit", end)
        with pytest.raises(RuntimeError, match=r"script\.before-commit"):
            _run(spark, lake, text)
    attempt = [(0, 't ["3"]', reason), (1, 't ["5"]', reason)]
    assert _quarantined(spark, lake, "projected") == attempt
    spark.sql(f"INSERT INTO {table} VALUES (6, 8, 0, 'x')")
    assert _run(spark, lake, text)["projected"].bad_records == 2
    assert _quarantined(spark, lake, "projected") == [*attempt, (1, 't ["6"]', reason)]
    spark.sql(f"UPDATE {table} SET b = 2 WHERE id IN (3, 5)")
    _run(spark, lake, text, rebuild=True)
    assert _quarantined(spark, lake, "projected") == [(2, 't ["6"]', reason)]


def windowed(spark: SparkSession, lake: Path, seed: int, lateness: int) -> None:
    """Groups of windows fail when these close, and are corrected by late rows."""
    draw = random.Random(seed)
    create_fed(spark, lake / "t", "h INT, g STRING, v INT, ts TIMESTAMP_NTZ")
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


_TEXT = """
CREATE TABLE t (id INT, a INT, b INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-in');
CREATE TABLE o (id INT, q INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-out');
INSERT INTO o SELECT id, a / b FROM t;
"""


@pytest.mark.slow
def test_bad_records_and_failing_rows(script_of: MakeScript, spark: SparkSession, lake: Path) -> None:
    """A row that gets bad is deleted from the topic, once: not again when it is deleted while it is bad."""
    script = script_of(_TEXT)
    script.create("in", "out", partitions=1)

    def run(way: str, *rows: tuple[int, object, object] | int) -> list[tuple[object, object]]:
        documents = [
            ({"id": row}, None)
            if isinstance(row, int)
            else ({"id": row[0]}, dict(zip(("id", "a", "b"), row, strict=True)))
            for row in rows
        ]
        script.send("in", documents)
        script.text = f"SET 'bridge.bad-records' = '{way}';{_TEXT}"
        script.run()
        return sorted((key["id"], value and value["q"]) for key, value in script.received("out"))

    def bad(verb: str) -> int:
        return sum(report.bad_records for report in script.reports if report.verb == verb)

    with pytest.raises(BadRecordError) as stopped:
        run("fail", (1, 4, 2), (2, "secret", 1))
    assert (
        "SET 'bridge.bad-records' = 'quarantine' to continue and quarantine such records, or 'skip' to"
        in str(stopped.value)
    )
    assert "pipeline file" not in str(stopped.value) and "secret" not in str(stopped.value)
    assert run("skip") == [(1, 2)]
    assert (bad("ingest"), bad("insert")) == (1, 0)
    assert run("quarantine", (1, 4, 0), (3, "secret", 1), (4, 8, 2)) == [(1, None), (4, 4)]
    assert (bad("ingest"), bad("insert")) == (1, 1)
    assert run("quarantine", 1) == []
    assert (bad("ingest"), bad("insert")) == (0, 0)
    state = lake / "bridge-state" / "script"
    records = spark.read.format("delta").load(str(state / "sources" / "t_quarantine")).collect()
    assert [(r.pipeline, r.offset, bytes(r.key), r.row_key) for r in records] == [
        ("script.sources-t", 3, b'{"id": 3}', None)
    ]
    rows = spark.read.format("delta").load(str(state / "results" / "o_quarantine")).collect()
    assert [(r.pipeline, r.tables, [tuple(k) for k in r.row_key], r.offset, r.reason) for r in rows] == [
        ("script.o", ["t"], [("t", "id", "1")], None, "division by zero in a / b")
    ]

    spark.sql(f'UPDATE delta.`{state}/sources/t_quarantine` SET value = \'{{"id": 3, "a": 3, "b": 1}}\'')
    pipelines = ScriptState(script.script())
    ingest = pipelines.ingest(pipelines.tables["t"])
    assert ingest is not None
    assert replay(spark, ingest).replayed == 1
    assert run("quarantine") == [(3, 3)]


_EVENTS = "CREATE TABLE e (g INT, a INT, b INT) WITH ({kafka}, 'topic' = '{prefix}-in');\n"
_SINKS = """
CREATE TABLE o (g INT, q INT) WITH ('connector' = 'blackhole');
CREATE TABLE n (g INT, q INT, PRIMARY KEY (g) NOT ENFORCED) WITH ('connector' = 'blackhole');
CREATE TABLE w (a INT, b INT) WITH ('connector' = 'blackhole');
"""
_PLAIN = (
    f"{_EVENTS}{_SINKS}INSERT INTO o SELECT g, a FROM e;\nINSERT INTO n SELECT g, SUM(a) FROM e GROUP BY g;\n"
)
_DIVIDED = _PLAIN.replace("g, a FROM", "g, a / b FROM").replace("SUM(a)", "SUM(a / b)")
_PAIRS = "INSERT INTO w SELECT l.a, l.a / r.b FROM e AS l JOIN e AS r ON l.g = r.g AND l.b > 0;\n"


def _event(g: int, a: int, b: int) -> tuple[None, dict[str, object]]:
    return None, {"g": g, "a": a, "b": b}


def _kafka_quarantined(spark: SparkSession, lake: Path, name: str) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(
        str(lake / "bridge-state" / "script" / "results" / f"{name}_quarantine")
    )
    chosen = rows.select("topic", "partition", "offset", "row_key", "reason", "timestamp").collect()
    assert all((row.timestamp is None) == (row.topic is None) for row in chosen)
    return sorted((*row[:3], [tuple(key[1:]) for key in row[3]], row[4]) for row in chosen)


@pytest.mark.slow
def test_rows_of_a_topic_without_a_key_are_named_by_their_records(
    script_of: MakeScript, spark: SparkSession, lake: Path
) -> None:
    script = script_of(_DIVIDED + _PAIRS)
    script.create("in", partitions=1)
    topic, reason = script.topic("in"), "division by zero in a / b"
    script.send("in", [_event(1, 4, 2), _event(1, 5, 0)])
    with pytest.raises(
        BadRecordError, match=rf"INSERT script\.o: {topic}-0 at offset 1: {reason}\. Nothing of"
    ):
        script.run()

    script.text = f"SET 'bridge.bad-records' = 'quarantine';{_DIVIDED}{_PAIRS}"
    script.run()
    assert {r.pipeline: r.bad_records for r in script.reports if r.verb == "insert"} == {
        "script.o": 1,
        "script.n": 1,
        "script.w": 1,
    }
    script.send("in", [_event(2, 6, 0), _event(2, 7, 0), _event(2, 7, 0), _event(2, 8, 1)])
    script.run()
    of_rows: list[tuple[object, ...]] = [(topic, 0, offset, [], reason) for offset in (1, 2, 3, 4)]
    assert _kafka_quarantined(spark, lake, "o") == _kafka_quarantined(spark, lake, "n") == of_rows
    pairs = [
        (left, {name: value for name, value in key})
        for _, _, left, key, _ in _kafka_quarantined(spark, lake, "w")
    ]
    assert [(left, right["topic"], right["partition"], right["offset"]) for left, right in pairs] == [
        (0, topic, "0", "1"),
        *((5, topic, "0", str(offset)) for offset in (2, 3, 4)),
    ], "each pair once"


@pytest.mark.slow
def test_a_state_goes_on_as_it_was_made(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """One that keeps no positions gets none; one that keeps them does so while no query asks for them, too."""
    insert = "INSERT INTO n SELECT g, SUM(a) FROM e GROUP BY g;"
    summed = f"SET 'bridge.bad-records' = 'quarantine';{_EVENTS}{_SINKS}{insert}"
    divided = summed.replace("SUM(a)", "SUM(a / b)")
    made = []
    for texts, places in (((summed, divided), [None] * 4), ((divided, summed, divided), [0, 1, 2, 3, 4, 5])):
        script = ScriptRun(spark, broker, lake / f"of-{len(texts)}", unique("s"), "")
        made.append(script)
        script.folder.mkdir()
        script.create("in", partitions=1)
        for number, script.text in enumerate(texts):
            script.send("in", [_event(1, 5, 0), _event(1, 5, 0)])
            script.run(rebuild=number > 0)
        found = _kafka_quarantined(spark, script.folder, "n")
        assert [(offset, key) for _, _, offset, key, _ in found] == [(place, []) for place in places]
        script.text = divided.replace("quarantine", "fail")
    for script, place in zip(made, ("kafka {}", "{}-0 at offset 0"), strict=True):
        with pytest.raises(
            BadRecordError, match=f"n: {place.format(script.topic('in'))}: division by zero in a / b"
        ):
            script.run(rebuild=True)
