"""A script with its file, state, sources and sinks on S3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from bridge.pipelines.scripts.run import run_script
from bridge.sql import load_script
from bridge.store_options import given_settings
from tests.object_store import BUCKET, KEY, SECRET, ObjectStore
from tests.pipelines.scripts.scripts import MakeScript

SCRIPT = """
SET 'bridge.bad-records' = 'quarantine';
CREATE TABLE views (region STRING, user_id BIGINT) WITH ({kafka}, 'topic' = '{prefix}-views');
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-users');
CREATE TABLE cities (name STRING, city STRING, PRIMARY KEY (name) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'cities');
CREATE TABLE regions (region STRING, n BIGINT, PRIMARY KEY (region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions');
CREATE TABLE wide (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'delta', 'path' = 'wide');
CREATE TABLE seen (region STRING, name STRING) WITH ('connector' = 'delta', 'path' = 'seen');
INSERT INTO regions SELECT region, COUNT(*) FROM views GROUP BY region;
INSERT INTO wide SELECT u.id, c.city FROM users AS u JOIN cities AS c ON u.name = c.name;
INSERT INTO seen SELECT region, CAST(user_id AS STRING) FROM views;
"""


def test_a_script_on_s3_reads_and_writes_tables_and_topics(
    script_of: MakeScript, spark: SparkSession, lake: Path, unique: Callable[[str], str], store: ObjectStore
) -> None:
    folder = unique("script")
    bucket = f"s3a://{BUCKET}/{folder}"
    made = spark.createDataFrame([("ann", "Rome"), ("bob", "Bonn")], "name STRING, city STRING")
    made.write.format("delta").option("delta.enableChangeDataFeed", "true").save(f"{bucket}/cities")
    topics = script_of(SCRIPT)
    topics.create("views", "users", "regions", partitions=1)
    topics.script()
    file = lake / "script.sql"
    store.client().put_object(Bucket=BUCKET, Key=f"{folder}/script.sql", Body=file.read_bytes())
    file.unlink()
    with given_settings(lambda: {f"spark.hadoop.{k}": v for k, v in store.settings().items()}):
        script = load_script(f"{bucket}/script.sql")

    topics.send("views", [(None, {"region": "a", "user_id": n}) for n in range(3)])
    topics.send("users", [({"id": n}, {"id": n, "name": "ann"}) for n in (0, 1)])
    run_script(spark, script)
    topics.send("views", [(None, {"region": "b", "user_id": 3})])
    topics.send("users", [({"id": 2}, {"id": 2, "name": "bob"}), ({"id": 1}, None)])
    run_script(spark, script)

    def rows(table: str, columns: str) -> list[dict[str, object]]:
        """Read by delta-rs with a login of its own."""
        found = DeltaTable(f"{bucket}/{table}", storage_options=store.delta_rs_options())
        query = f"SELECT {columns} FROM t ORDER BY {columns}"
        result = QueryBuilder().register("t", found).execute(query).read_all()
        return list(pa.table(result).to_pylist())

    assert {key["region"]: row["n"] for key, row in topics.received("regions")} == {"a": 3, "b": 1}
    assert rows("wide", "id, city") == [{"id": 0, "city": "Rome"}, {"id": 2, "city": "Bonn"}]
    assert [row["name"] for row in rows("seen", "name")] == ["0", "1", "2", "3"]
    assert list(lake.iterdir()) == []
    written = [name for name in store.names(folder) if name.endswith(".json")]
    assert any("bridge-state" in name for name in store.names(folder))
    assert not any(SECRET in store.text(name) or KEY in store.text(name) for name in written)
