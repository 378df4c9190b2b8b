"""A job whose tables and state are in a folder with a name that is no plain text in a URI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bridge.cdc_jobs import load_job
from bridge.cli.app import main
from bridge.embedded.broker import Broker
from bridge.errors import TableError
from bridge.pipelines.cdc_jobs.run import run_job
from tests.cdc_jobs.jobs import write_table
from tests.pipelines.cdc_jobs.test_run import CDC, JOB, send_changes
from tests.pipelines.ingest.test_run_folders import FOLDERS
from tests.reader import messages


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_a_job_finds_a_folder_by_its_name(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], name: str
) -> None:
    """From Delta tables, as they are and by a projection; and from a topic, which is kept in the state."""
    folder, prefix = lake / name, unique("f")
    two = pa.array([1, 2], pa.int64())
    eu, readable = lake / "made", "%20" not in name
    write_table(eu / "orders", {"id": two, "total": pa.array([5, 6])})
    write_table(eu / "items", {"order_id": two, "line": two, "what": pa.array(["a", "b"])})
    write_table(eu / "people", {"id": two, "name": pa.array(["ann", "nobody"])})
    folder.mkdir()
    (folder / "shop").mkdir()
    eu = eu.rename(folder / "shop" / "eu")  # delta-rs does not write to each of these folders
    for file, text in (("shop.yaml", JOB), ("cdc.yaml", CDC)):
        (folder / file).write_text(text.replace("PREFIX", prefix).replace("SERVERS", broker.bootstrap))

    def received(topic: str) -> list[object]:
        found = messages(broker.bootstrap, f"{prefix}{topic}")
        return sorted((json.loads(message.value() or b"null") for message in found), key=str)

    def run(file: str) -> None:
        run_job(spark, load_job(folder / file, environ={"KAFKA_SERVERS": broker.bootstrap}))

    if readable:
        run("shop.yaml")
        assert received(".orders") == [{"id": 1, "total": 5}, {"id": 2, "total": 6}]
        assert received(".people") == [{"id": 1, "label": "ANN"}]
        spark.sql(f"UPDATE delta.`{eu}/people` SET name = 'bob' WHERE id = 2")
        spark.sql(f"DELETE FROM delta.`{eu}/orders` WHERE id = 1")
        run("shop.yaml")
        assert received(".people") == [{"id": 1, "label": "ANN"}, {"id": 2, "label": "BOB"}]
        assert None in received(".orders")
    else:
        with pytest.raises(
            TableError, match="in a name, which delta-rs takes for another one; give the folder"
        ):
            run("shop.yaml")

    for topic in ("-in", "-out"):
        broker.create_topic(f"{prefix}{topic}", partitions=1)
    for after in ("ann", "bob"):
        send_changes(broker, f"{prefix}-in", (None, {"id": 1, "name": after}, "c"))
        run("cdc.yaml")
    assert [dict(row)["data"][0]["name"] for row in received("-out")] == ["ann", "bob"]  # type: ignore[call-overload]
    assert main(["run", str(folder / "cdc.yaml"), "--explain"]) == 0
    assert [path.name for path in lake.iterdir()] == [name]
