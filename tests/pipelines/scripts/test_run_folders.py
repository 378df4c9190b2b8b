"""A script whose state, source and sink are in a folder with a name that is no plain text in a URI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.cli.app import main
from bridge.embedded.broker import Broker
from bridge.pipelines.scripts.explain import used_paths
from tests.pipelines.ingest.test_run_folders import FOLDERS
from tests.pipelines.scripts.scripts import ScriptRun

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
