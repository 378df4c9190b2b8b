"""INSERTs that write columns of one table: it has the full join of their results, in any order of commits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.delta.ingest_progress import last_batch
from bridge.delta.table import open_table
from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError, TableError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest import run_state
from bridge.pipelines.resync.table_to_topic import resync
from bridge.pipelines.scripts.run import run_script
from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import load_script
from tests.pipelines.scripts.oracle import computed
from tests.pipelines.scripts.scripts import MakeScript, ScriptRun
from tests.pipelines.scripts.test_refresh_histories import TABLES, Sources, apply, create, drawn, result

WIDE = """
SET 'bridge.state' = 'state';
CREATE TABLE t (h INT, id INT, g STRING, v INT, PRIMARY KEY (h, id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 't');
CREATE TABLE u (h INT, id INT, name STRING, w INT, PRIMARY KEY (h, id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'u');
CREATE TABLE wide (h INT, id INT, g STRING, v INT, w INT, n BIGINT, PRIMARY KEY (h, id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'results/wide');
INSERT INTO wide (h, id, g, v) SELECT h, id, g, v FROM t;
INSERT INTO wide (w, h, id) SELECT w + 0, h, id FROM u WHERE name <> 'a';
INSERT INTO wide (h, id, n) SELECT h, v, COUNT(*) FROM t GROUP BY h, v;
"""
EXPECTED = """
SELECT k.h, k.id, t.g, t.v, u.w, c.n FROM (
  SELECT h, id FROM t WHERE g IS NOT NULL OR v IS NOT NULL
  UNION SELECT h, id FROM u WHERE name <> 'a' AND w IS NOT NULL UNION SELECT h, v FROM t) AS k
LEFT JOIN t ON t.h = k.h AND t.id = k.id LEFT JOIN u ON u.h = k.h AND u.id = k.id AND u.name <> 'a'
LEFT JOIN (SELECT h, v, COUNT(*) AS n FROM t GROUP BY h, v) AS c ON c.h = k.h AND c.v IS k.id
"""


def played(spark: SparkSession, lake: Path, seed: int, histories: int, batches: int) -> None:
    """Plays drawn changes of the sources and compares the table after every batch; a rebuild finds no difference."""
    draw, kept = random.Random(seed), Sources({table: {} for table in TABLES})
    create(spark, lake)
    file = lake / "wide.sql"
    file.write_text(WIDE)
    loaded = load_script(file)
    for number in range(batches):
        apply(spark, lake, drawn(draw, histories, 4, kept))
        run_script(spark, loaded)
        tables = {table: (TABLES[table][1], list(rows.values())) for table, rows in kept.items()}
        assert result(spark, lake, "wide") == computed(EXPECTED, tables), f"batch {number}, seed {seed}"
    again = run_script(spark, loaded, rebuild=True)
    changed = [total.inserted + total.updated + total.deleted for total in again.pipelines.values()]
    assert changed == [0, 0, 0]


def test_histories(spark: SparkSession, lake: Path) -> None:
    played(spark, lake, 1, histories=40, batches=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10, 14))
def test_longer_histories(spark: SparkSession, lake: Path, seed: int) -> None:
    played(spark, lake, seed, histories=300, batches=6)


TOPICS = """
CREATE TABLE customers (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-c');
CREATE TABLE payments (id BIGINT, customer BIGINT, paid INT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-p');
CREATE TABLE wide (id BIGINT, name STRING, paid INT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert},
  'topic' = '{prefix}-w', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{prefix}');
INSERT INTO wide (id, name) SELECT id, name FROM customers;
INSERT INTO wide (id, paid, n) SELECT customer, SUM(paid), COUNT(*) FROM payments GROUP BY customer;
"""


def pair(**row: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"id": row["id"]}, row


def gone(id: int) -> tuple[dict[str, Any], None]:
    return {"id": id}, None


@pytest.fixture
def script(script_of: MakeScript) -> ScriptRun:
    made = script_of(TOPICS)
    made.create("c", "p", "w")
    return made


def sent(script: ScriptRun) -> list[tuple[Any, ...]]:
    found = [(k["id"], *((r["name"], r["paid"], r["n"]) if r else ())) for k, r in script.received("w")]
    return sorted(found, key=lambda row: row[0])


def test_a_row_is_sent_once_with_the_columns_of_all(
    script: ScriptRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.send("c", [pair(id=1, name="ann"), pair(id=2, name="bob")])
    script.send(
        "p", [pair(id=7, customer=2, paid=5), pair(id=8, customer=2, paid=6), pair(id=9, customer=3, paid=1)]
    )
    script.run()
    assert {row[0]: row for row in sent(script)} == {
        1: (1, "ann", None, None),
        2: (2, "bob", 11, 2),
        3: (3, None, 1, 1),
    }
    script.send("c", [gone(1), gone(2), pair(id=3, name="cyd")])
    script.send("p", [gone(9)])
    script.run()
    last = {row[0]: row for row in sent(script)}
    assert last == {1: (1,), 2: (2, None, 11, 2), 3: (3, "cyd", None, None)}

    state, spark = ScriptState(script.script()), script.spark
    publish = state.publishes
    assert set(publish) == {"wide"}
    assert verify(spark, publish["wide"]).equal
    script.send("w", [pair(id=3, name="x", paid=4, n=4)])
    assert resync(spark, publish["wide"]).updated == 1
    assert [row for row in sent(script) if row[0] == 3][-1] == (3, "cyd", None, None)

    table = open_table(spark, publish["wide"].delta, [], extra_columns="unused")
    batches = [last_batch(table, f"script.{name}") for name in ("wide", "wide-2")]
    monkeypatch.setattr(run_state, "PROGRESS_MS", 0)
    assert script.run().rounds == 1
    assert [(r.verb, r.records_out) for r in script.reports] == [("publish", 0)], "a version without rows"
    assert [last_batch(table, f"script.{name}") for name in ("wide", "wide-2")] == [n + 1 for n in batches]
    assert not sent(script)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("place", ["script.before-commit", "script.after-commit", "publish.sent"])
def test_a_run_that_dies_goes_on(
    script: ScriptRun, arm: Callable[[str, str], Path], place: str, after: int
) -> None:
    """Before the commit of either INSERT, between the two, and after both."""
    script.send("c", [pair(id=1, name="ann")])
    script.send("p", [pair(id=7, customer=1, paid=5)])
    if after and place == "publish.sent":
        pytest.skip("there is one publish")
    fired = arm(place, f"raise after {after}")
    with pytest.raises(Exception, match="failpoint"):
        script.run()
    assert fired.exists()
    script.run()
    assert sent(script)[-1] == (1, "ann", 5, 1)
    assert verify(script.spark, ScriptState(script.script()).publishes["wide"]).equal


@pytest.mark.slow
def test_other_lists_and_rows_of_others(spark: SparkSession, broker: Broker, lake: Path) -> None:
    """A column may move to a later INSERT with a rebuild; values that no INSERT wrote are not overwritten."""
    head = (
        "CREATE TABLE t (id INT, a INT, b INT, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'delta', 'path' = 't');\n"
    )
    script = ScriptRun(spark, broker, lake, "s", "")
    one, other = (
        "INSERT INTO t (id, a) VALUES (1, 1), (2, 1);\n",
        "INSERT INTO t (id, b) VALUES (1, 2), (3, 2);\n",
    )

    def rows() -> Counter[tuple[Any, ...]]:
        return Counter(
            map(tuple, spark.read.format("delta").load(f"{lake}/t").select("id", "a", "b").collect())
        )

    script.text = head + one + other
    script.run()
    assert rows() == Counter([(1, 1, 2), (2, 1, None), (3, None, 2)])
    script.text = head + one.replace("(2, 1)", "(4, 1)") + other
    with pytest.raises(DefinitionError, match="Run the script with --rebuild"):
        script.run()
    script.run(rebuild=True)
    assert rows() == Counter([(1, 1, 2), (4, 1, None), (3, None, 2)])

    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD COLUMN c INT")
    spark.sql(f"UPDATE delta.`{lake}/t` SET c = 9 WHERE id = 1")
    script.text = (
        head.replace("b INT,", "b INT, c INT,") + one + other + "INSERT INTO t (id, c) VALUES (1, 3);"
    )
    with pytest.raises(TableError, match="has rows that this INSERT did not write"):
        script.run(rebuild=True)
