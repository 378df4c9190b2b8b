"""Scripts run from topics to topics through a real broker.

The metrics of a script: the counters of all that it runs are there before its first batch.

A script whose state, source and sink are in a folder with a name that is no plain text in a URI.

Another writer restores a result while a script is at work.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge.cli.app import main
from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError, GapError, TableError
from bridge.metrics import BatchReport
from bridge.pipelines.scripts.explain import used_paths
from bridge.pipelines.scripts.run import run_script
from tests.delta.tables import create_fed
from tests.pipelines.ingest.test_run_folders import FOLDERS
from tests.pipelines.scripts.scripts import MakeScript, ScriptRun

PAGEVIEWS = """
CREATE TABLE pageviews (user_id BIGINT, page_id BIGINT, viewtime TIMESTAMP(3), user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND) WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE pageviews_per_region (user_region STRING, pv BIGINT, uv BIGINT, PRIMARY KEY (user_region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions', 'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '{prefix}');
INSERT INTO pageviews_per_region SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews
  GROUP BY user_region;
"""
MEANS = """
CREATE TABLE means (user_region STRING, mean BIGINT, PRIMARY KEY (user_region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-means');
INSERT INTO means SELECT user_region, AVG(page_id) FROM pageviews GROUP BY user_region;
"""
SHOWN = """
CREATE TABLE shown (user_region STRING, pv BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'views');
INSERT INTO shown SELECT user_region, COUNT(*) FROM pageviews GROUP BY user_region;
"""


def view(user: int, region: str | None) -> tuple[None, dict[str, Any]]:
    return None, {"user_id": user, "page_id": 1, "viewtime": "2026-11-25 10:00:00", "user_region": region}


def test_the_first_example_of_the_manuals(script_of: MakeScript) -> None:
    script = script_of(PAGEVIEWS + SHOWN + MEANS)
    script.create("views", "regions")
    script.send("views", [view(1, "a"), view(1, "a"), view(2, "b"), view(3, None)])
    script.run()
    means = {key["user_region"]: row["mean"] for key, row in script.received("means")}
    assert means == {"a": 1, "b": 1, None: 1}
    regions = {key["user_region"]: (row["pv"], row["uv"]) for key, row in script.received("regions")}
    assert regions == {"a": (2, 1), "b": (1, 1), None: (1, 1)}
    assert sorted(script.printed) == ["views> +I[a, 2]", "views> +I[b, 1]", "views> +I[null, 1]"]

    script.send("views", [view(4, "a"), view(2, "c")])
    summary = script.run()
    assert sorted((row["user_region"], row["pv"], row["uv"]) for _, row in script.received("regions")) == [
        ("a", 3, 2),
        ("c", 1, 1),
    ]
    assert script.printed == ["views> -U[a, 2]", "views> +U[a, 3]", "views> +I[c, 1]"]
    reads = [r.records_in for r in script.reports if r.verb == "ingest"]
    assert reads == [2], "INSERTs share what is read"
    means = {key["user_region"]: row for key, row in script.received("means")}
    assert means == {"c": {"user_region": "c", "mean": 1}}, "that of a is what it was, of one row more"
    assert summary.pipelines["insert", "script.pageviews_per_region"].updated == 1

    assert script.run().rounds == 1
    assert not script.received("regions") and not script.reports and not script.printed


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("script.before-commit", marks=pytest.mark.slow),
        "script.after-commit",
        pytest.param("publish.sent", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_dies_goes_on(script_of: MakeScript, arm: Callable[[str, str], Path], place: str) -> None:
    script = script_of(PAGEVIEWS)
    script.create("views", "regions")
    script.send("views", [view(1, "a"), view(2, "b")])
    fired = arm(place, "raise")
    with pytest.raises(Exception, match="failpoint"):
        script.run()
    assert fired.exists()
    script.run()
    assert sorted((row["user_region"], row["pv"]) for _, row in script.received("regions")) == [
        ("a", 1),
        ("b", 1),
    ]


UPSERTS = """
CREATE TABLE customers (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-c');
CREATE TABLE payments (id BIGINT, paid INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-p');
CREATE TABLE wide (id BIGINT, name STRING, paid INT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-w');
CREATE TABLE names (name STRING, n BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-n');
CREATE TABLE constants (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-v');
INSERT INTO wide SELECT COALESCE(c.id, p.id), c.name, p.paid FROM customers AS c FULL JOIN payments AS p ON c.id = p.id;
INSERT INTO names SELECT name, COUNT(*) FROM wide WHERE name IS NOT NULL GROUP BY name;
INSERT INTO constants VALUES (1, 'x'), (2, 'y');
"""


def key(id: int) -> dict[str, Any]:
    return {"id": id}


def test_streams_become_a_wide_table_and_an_insert_reads_what_another_one_writes(
    script_of: MakeScript,
) -> None:
    script = script_of(UPSERTS)
    script.create("c", "p")
    script.send("c", [(key(1), {"id": 1, "name": "ann"}), (key(2), {"id": 2, "name": "bob"})])
    script.send("p", [(key(2), {"id": 2, "paid": 20}), (key(3), {"id": 3, "paid": 30})])
    script.run()
    assert sorted((k["id"], r["name"], r["paid"]) for k, r in script.received("w")) == [
        (1, "ann", None),
        (2, "bob", 20),
        (3, None, 30),
    ]
    assert sorted((k["name"], r["n"]) for k, r in script.received("n")) == [("ann", 1), ("bob", 1)]
    assert sorted((k["id"], r["name"]) for k, r in script.received("v")) == [(1, "x"), (2, "y")]

    script.send("c", [(key(1), None), (key(3), {"id": 3, "name": "bob"})])
    script.send("p", [(key(3), {"id": 3, "paid": 31})])
    script.run()
    assert sorted(((k["id"], r and (r["name"], r["paid"])) for k, r in script.received("w")), key=str) == [
        (1, None),
        (3, ("bob", 31)),
    ]
    assert sorted(((k["name"], r and r["n"]) for k, r in script.received("n")), key=str) == [
        ("ann", None),
        ("bob", 2),
    ]
    assert not script.received("v")


LAST = """
CREATE TABLE events (id BIGINT, state STRING) WITH ({kafka}, 'topic' = '{prefix}-e');
CREATE TABLE states (id BIGINT, state STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}, 'topic' = '{prefix}-s');
INSERT INTO states SELECT id, UPPER(state) FROM events WHERE state <> 'skipped';
"""


def test_the_last_of_rows_that_are_only_added_counts(script_of: MakeScript) -> None:
    script = script_of(LAST)
    script.create("e", partitions=1)
    script.create("s")
    script.send("e", [(None, {"id": 1, "state": s}) for s in ("new", "paid", "sent", "skipped")])
    script.run()
    assert script.received("s") == [(key(1), {"id": 1, "state": "SENT"})]
    script.send("e", [(None, {"id": 1, "state": "lost"}), (None, {"id": 1, "state": "found"})])
    script.run()
    assert script.received("s") == [(key(1), {"id": 1, "state": "FOUND"})]


def test_rows_that_are_only_added_are_computed_again_by_their_key(script_of: MakeScript) -> None:
    script = script_of(LAST)
    script.create("e", partitions=1)
    script.create("s")
    script.send(
        "e", [(None, {"id": n, "state": s}) for n, s in ((1, "new"), (2, "new"), (2, "skipped"), (3, "x"))]
    )
    script.run()
    assert len(script.received("s")) == 3
    script.text = script.text.replace("state <> 'skipped'", "state <> 'new'")
    script.run(rebuild=True)
    assert sorted(script.received("s"), key=str) == [(key(1), None), (key(2), {"id": 2, "state": "SKIPPED"})]


def test_a_state_without_positions_names_the_way_out(script_of: MakeScript) -> None:
    script = script_of(LAST.replace(", PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert}", ") WITH ({kafka}"))
    script.create("e", "s", partitions=1)
    script.send("e", [(None, {"id": 1, "state": "new"})])
    script.run()
    script.text = LAST
    with pytest.raises(TableError) as error:
        script.run()
    assert str(error.value).endswith(
        "This state was made without the positions of its records, which a query of the script needs now; give the "
        "script another name (SET 'pipeline.name' = ...), and it starts anew"
    )


COUNTED = """
CREATE TABLE users (id INT, city STRING{key}) WITH ('connector' = 'delta', 'path' = 'users');
CREATE TABLE cities (city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'cities');
INSERT INTO cities SELECT city, COUNT(*) FROM users GROUP BY city;
"""
KEY = ", PRIMARY KEY (id) NOT ENFORCED"


def test_another_query_is_refused_until_it_is_rebuilt(
    script_of: MakeScript, spark: SparkSession, lake: Path
) -> None:
    create_fed(spark, f"{lake}/users", "id INT, city STRING")
    spark.sql(f"INSERT INTO delta.`{lake}/users` VALUES (1, 'ulm'), (2, 'ulm'), (3, 'bonn')")
    script = script_of(COUNTED.replace("{key}", KEY))

    def cities() -> dict[str, int]:
        return {row[0]: row[1] for row in spark.read.format("delta").load(f"{lake}/cities").collect()}

    script.run()
    assert cities() == {"ulm": 2, "bonn": 1}
    script.text = script.text.replace("GROUP BY", "WHERE id > 1 GROUP BY")
    with pytest.raises(DefinitionError) as error:
        script.run()
    assert str(error.value) == (
        "INSERT script.cities: its query, its sources or its sink are not those from which "
        f"{lake}/cities was computed. Run the script with --rebuild, which computes the result again and sends what "
        "differs; or give the script another name (SET 'pipeline.name' = ...), and it starts anew"
    )
    script.run(rebuild=True)
    assert cities() == {"ulm": 1, "bonn": 1}
    spark.sql(f"DELETE FROM delta.`{lake}/users` WHERE id = 3")
    script.run()
    assert cities() == {"ulm": 1}


def test_rows_of_others_are_not_deleted(script_of: MakeScript, spark: SparkSession, lake: Path) -> None:
    for name, columns in (("users", "id INT, city STRING"), ("cities", "city STRING, n BIGINT")):
        create_fed(spark, f"{lake}/{name}", columns)
    spark.sql(f"INSERT INTO delta.`{lake}/cities` VALUES ('ulm', 7)")
    with pytest.raises(TableError) as error:
        script_of(COUNTED.replace("{key}", KEY)).run()
    assert str(error.value) == (
        f"INSERT script.cities: {lake}/cities has rows that this INSERT did not write. A table with a PRIMARY KEY has "
        "exactly the rows of its query, so they would be deleted: name another table, or delete its rows first"
    )


def test_a_users_table_without_a_key_must_only_grow(
    script_of: MakeScript, spark: SparkSession, lake: Path
) -> None:
    create_fed(spark, f"{lake}/users", "id INT, city STRING")
    text = COUNTED.replace("{key}", "").replace(
        "(city STRING, n BIGINT, PRIMARY KEY (city) NOT ENFORCED)", "(city STRING)"
    )
    script = script_of(
        text.replace("SELECT city, COUNT(*) FROM users GROUP BY city", "SELECT city FROM users")
    )
    spark.sql(f"INSERT INTO delta.`{lake}/users` VALUES (1, 'ulm'), (2, 'ulm')")
    script.run()
    spark.sql(f"DELETE FROM delta.`{lake}/users` WHERE id = 1")
    with pytest.raises(TableError) as error:
        script.run()
    assert str(error.value) == (
        f"table {lake}/users: rows were updated or deleted in versions 2 to 2, but a table without a PRIMARY KEY is "
        "read as append-only; declare its key in CREATE TABLE"
    )


def test_rows_that_share_a_key_are_refused(script_of: MakeScript, spark: SparkSession, lake: Path) -> None:
    script = script_of(
        "CREATE TABLE t (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector' = 'delta', 'path' = 't');\n"
        "INSERT INTO t VALUES (1, 'a'), (1, 'b'), (2, 'c');"
    )
    with pytest.raises(TableError) as error:
        script.run()
    assert str(error.value) == (
        "INSERT t: 1 rows of the query have a key (id) that another row has, too, such as (id: 1), so it is not known "
        "which one counts; nothing was written. To go on, group the rows, or keep one of each key with ROW_NUMBER()"
    )
    assert spark.read.format("delta").load(f"{lake}/t").count() == 0


def test_changes_that_are_gone_name_the_way_out(
    script_of: MakeScript, spark: SparkSession, lake: Path
) -> None:
    create_fed(spark, f"{lake}/users", "id INT, city STRING")
    script = script_of(COUNTED.replace("{key}", KEY))
    script.run()
    for id in (1, 2):
        spark.sql(f"INSERT INTO delta.`{lake}/users` VALUES ({id}, 'ulm')")
    spark.sql(f"DELETE FROM delta.`{lake}/users` WHERE id = 1")
    spark.sql(f"ALTER TABLE delta.`{lake}/users` SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    spark.sql(f"INSERT INTO delta.`{lake}/users` VALUES (3, 'bonn')")
    spark.sql(f"ALTER TABLE delta.`{lake}/users` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    with pytest.raises(GapError) as error:
        script.run()
    assert "the change data feed was off for part of them; run the script with --rebuild" in str(error.value)
    script.run(rebuild=True)
    found = spark.read.format("delta").load(f"{lake}/cities").collect()
    assert {row[0]: row[1] for row in found} == {"ulm": 1, "bonn": 1}


TEXT = """
SET 'bridge.metrics' = 'script.prom';
CREATE TABLE views (user_id BIGINT, region STRING) WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE regions (region STRING, pv BIGINT, PRIMARY KEY (region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions');
CREATE TABLE users (user_id BIGINT) WITH ('connector' = 'delta', 'path' = 'users');
INSERT INTO regions SELECT region, COUNT(*) FROM views GROUP BY region;
INSERT INTO users SELECT user_id FROM views;
"""


def test_counters_begin_at_0(script_of: MakeScript, lake: Path) -> None:
    """A first value above 0 is no increase for Prometheus, so that alerts would miss bad records of a first batch."""
    script, stopped = script_of(TEXT), threading.Event()
    script.create("views", partitions=1)
    stopped.set()
    script.run(stop=stopped)
    shown = (lake / "script.prom").read_text()
    counted = re.findall(
        r'^bridge_batch_seconds_count\{pipeline="(.*?)",.*verb="(.*?)"\} 0\.0$', shown, re.MULTILINE
    )
    assert sorted(counted) == [
        ("script.regions", "insert"),
        ("script.results-regions", "publish"),
        ("script.sources-views", "ingest"),
        ("script.users", "insert"),
    ]
    assert 'bridge_bad_records_total{pipeline="script.sources-views"' in shown


SCRIPT = """
SET 'bridge.bad-records' = 'quarantine';
CREATE TABLE views (region STRING, user_id BIGINT) WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-users');
CREATE TABLE cities (name STRING, city STRING, PRIMARY KEY (name) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'cities');
CREATE TABLE regions (region STRING, n BIGINT, PRIMARY KEY (region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions');
CREATE TABLE wide (id BIGINT, city STRING, q BIGINT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'wide');
CREATE TABLE seen (region STRING, name STRING) WITH ('connector' = 'delta', 'path' = 'seen');
INSERT INTO regions SELECT region, COUNT(*) FROM views GROUP BY region;
INSERT INTO wide SELECT u.id, c.city, 10 / u.id FROM users AS u JOIN cities AS c ON u.name = c.name;
INSERT INTO seen SELECT region, CAST(user_id AS STRING) FROM views;
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_a_script_finds_a_folder_by_its_name(
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = lake / name
    folder.mkdir()
    made = spark.createDataFrame([("ann", "Rome"), ("bob", "Bonn")], "name STRING, city STRING")
    made.write.format("delta").option("delta.enableChangeDataFeed", "true").save(f"{folder}/cities")
    script = ScriptRun(spark, broker, folder, unique("s"), SCRIPT)
    script.create("views", "users", "regions", partitions=1)
    script.send("views", [(None, {"region": "a", "user_id": n}) for n in range(3)])
    script.send("users", [({"id": n}, {"id": n, "name": "ann"}) for n in (0, 1)])
    script.run()
    script.send("views", [(None, {"region": "b", "user_id": 3}), (None, {"region": "a", "user_id": 3})])
    script.send("users", [({"id": 2}, {"id": 2, "name": "bob"}), ({"id": 1}, None)])
    script.run()
    assert {key["region"]: row["n"] for key, row in script.received("regions")} == {"a": 4, "b": 1}

    def rows(table: str) -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in spark.read.format("delta").load(f"{folder}/{table}").collect())

    assert rows("wide") == [(2, "Bonn", 5)]
    assert rows("seen") == [("a", "0"), ("a", "1"), ("a", "2"), ("a", "3"), ("b", "3")]
    assert [path.name for path in lake.iterdir()] == [name]
    assert all(path.startswith(f"{folder}/") for path in used_paths(script.script()))
    assert main(["run", str(folder / "script.sql"), "--explain"]) == 0
    assert f"{folder}/bridge-state/script" in "".join(capsys.readouterr().out.split("\n"))


COUNTS = """
CREATE TABLE views (region STRING) WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE regions (region STRING, views BIGINT, PRIMARY KEY (region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions');
INSERT INTO regions SELECT region, COUNT(*) FROM views GROUP BY region;
"""


def test_a_result_that_is_restored_during_a_run_is_refreshed_again(
    script_of: MakeScript, spark: SparkSession, lake: Path
) -> None:
    """The restored rows are known to be those of older sources; the next round computes what is new since then."""
    script = script_of(COUNTS)
    script.create("views", "regions", partitions=1)
    script.send("views", [(None, {"region": "a"})])
    stop, inserts = threading.Event(), list[BatchReport]()

    def listener(report: BatchReport) -> None:
        if report.verb != "insert":
            return
        inserts.append(report)
        if len(inserts) == 1:
            script.send("views", [(None, {"region": "a"}), (None, {"region": "b"})])
        elif len(inserts) == 2:
            (table,) = lake.glob("**/results/*")
            DeltaTable(str(table)).restore(inserts[0].version or 0, protocol_downgrade_allowed=True)
        else:
            stop.set()

    run_script(spark, script.script(), listener=listener, every_seconds=0.1, stop=stop)
    script.run()
    last = {key["region"]: row and row["views"] for key, row in script.received("regions")}
    assert last == {"a": 2, "b": 1}
    (table,) = lake.glob("**/results/*")
    assert {tuple(row)[:2] for row in spark.read.format("delta").load(str(table)).collect()} == {
        ("a", 2),
        ("b", 1),
    }


BY_PARTS = COUNTS.replace("GROUP BY region", "GROUP BY region HAVING COUNT(*) > 0")
"""Which computes the changed groups from all of their rows."""


@pytest.mark.parametrize("text", [COUNTS, BY_PARTS])
def test_a_state_that_is_restored_is_not_counted_twice(script_of: MakeScript, lake: Path, text: str) -> None:
    """Its rows come again from the topic: an INSERT that adds what is new to its result must not add them."""
    script = script_of(text)
    script.create("views", "regions", partitions=1)
    script.send("views", [(None, {"region": "a"})])
    script.run()
    script.send("views", [(None, {"region": "a"}), (None, {"region": "b"})])
    script.run()
    (table,) = lake.glob("**/sources/*")
    state = DeltaTable(str(table))
    state.restore(state.version() - 1, protocol_downgrade_allowed=True)
    if text == COUNTS:
        with pytest.raises(
            TableError, match=r"a writer other than this script did it, such as RESTORE.*--rebuild"
        ):
            script.run()
    script.run(rebuild=text == COUNTS)
    script.send("views", [(None, {"region": "b"})])
    script.run()
    assert {key["region"]: row and row["views"] for key, row in script.received("regions")} == {
        "a": 2,
        "b": 2,
    }
