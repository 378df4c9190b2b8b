"""A job from Delta tables to topics of a real broker."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message, Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bridge.cdc_jobs import load_job
from bridge.delta.file_state import FileState
from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError, ConcurrentRunError
from bridge.metrics import BatchReport
from bridge.pipelines.cdc_jobs.run import run_job
from bridge.pipelines.runtime.lease import LeaseTiming, acquire_lease_in
from tests.cdc_jobs.jobs import write_table
from tests.metrics.openlineage import edges, events_in
from tests.reader import messages

JOB = """
source:
  type: delta
  path: shop
  tables: eu.\\.*
  primary-keys: eu.items:order_id,line;eu.\\.*:id
sink:
  type: upsert-kafka
  properties.bootstrap.servers: ${kafka.servers}
  sink.add-tableId-to-header-enabled: true
route:
  - source-table: eu.(orders|items|people)
    sink-table: PREFIX.$1
transform:
  - source-table: eu.people
    projection: id, UPPER(name) AS label
    filter: name <> 'nobody'
pipeline:
  name: shop
  bridge.state: state
"""


CDC = """
source:
  type: kafka
  properties.bootstrap.servers: SERVERS
  topic: PREFIX-in
  value.format: debezium-json
  scan.startup.mode: earliest-offset
  ddl: CREATE TABLE shop.orders (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
sink:
  type: kafka
  properties.bootstrap.servers: SERVERS
  value.format: canal-json
  topic: PREFIX-out
  sink.custom-header: team:shop
transform:
  - source-table: shop.orders
    projection: \\*, __table_name__ AS t
"""


def documents(message: Message) -> tuple[Any, Any]:
    key, value = message.key(), message.value()
    return None if key is None else json.loads(key), None if value is None else json.loads(value)


def test_tables_go_to_their_topics(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """Two tables as they are and one with a projection and filter: first whole, then what has changed."""
    prefix, places = unique("shop"), dict[str, dict[int, int]]()
    eu = lake / "shop" / "eu"
    two = pa.array([1, 2], pa.int64())
    write_table(eu / "orders", {"id": two, "total": pa.array([5, 6])})
    write_table(eu / "items", {"order_id": two, "line": two, "what": pa.array(["a", "b"])})
    write_table(eu / "people", {"id": two, "name": pa.array(["ann", "nobody"])})
    file = lake / "shop.yaml"
    file.write_text(f"{JOB.replace('PREFIX', prefix)}  bridge.lineage: events.jsonl\n")
    reports: list[BatchReport] = []

    def run() -> int:
        job = load_job(file, environ={"KAFKA_SERVERS": broker.bootstrap})
        return run_job(spark, job, listener=reports.append).rounds

    def received(table: str) -> list[tuple[Any, Any]]:
        found = list(messages(broker.bootstrap, f"{prefix}.{table}", places.setdefault(table, {})))
        for message in found:
            assert dict(message.headers() or ()) == {
                "namespace": b"",
                "schemaName": prefix.encode(),
                "tableName": table.encode(),
            }
        return sorted(map(documents, found), key=str)

    assert run() == 1
    assert received("orders") == [({"id": 1}, {"id": 1, "total": 5}), ({"id": 2}, {"id": 2, "total": 6})]
    assert received("items") == [
        ({"order_id": 1, "line": 1}, {"order_id": 1, "line": 1, "what": "a"}),
        ({"order_id": 2, "line": 2}, {"order_id": 2, "line": 2, "what": "b"}),
    ]
    assert received("people") == [({"id": 1}, {"id": 1, "label": "ANN"})]
    events = events_in(lake / "events.jsonl")
    assert edges(events) == {
        edge
        for table in ("items", "orders", "people")
        for edge in ((f"{eu}/{table}", "shop.run"), ("shop.run", f"{prefix}.{table}"))
    }
    (people,) = (d for d in events[-1]["outputs"] if d["name"].endswith("people"))
    (label,) = people["facets"]["columnLineage"]["fields"]["label"]["inputFields"]
    assert (label["name"], label["field"]) == (f"{eu}/people", "name")
    assert people["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert {(r.verb, r.pipeline) for r in reports} == {
        ("publish", f"shop.{prefix}.items"),
        ("publish", f"shop.{prefix}.orders"),
        ("insert", f"shop.{prefix}.people"),
        ("publish", f"shop.results-{prefix}.people"),
    }

    DeltaTable(str(eu / "orders")).delete("id = 1")
    DeltaTable(str(eu / "people")).update(updates={"name": "'bob'"}, predicate="id = 2")
    reports.clear()
    run()
    assert received("orders") == [({"id": 1}, None)]
    assert received("items") == []
    assert received("people") == [({"id": 2}, {"id": 2, "label": "BOB"})]
    assert not [r for r in reports if r.pipeline.endswith("items")]

    folder, timing = load_job(file, environ={"KAFKA_SERVERS": broker.bootstrap}).folder, LeaseTiming(0.1)
    reports.clear()
    with (
        acquire_lease_in(
            FileState(spark, folder, "bridge.state"), "job", name="shop", verb="run", timing=timing
        ),
        pytest.raises(
            ConcurrentRunError, match=r"job\.lease\.json: another run is at work, `run` of 'shop' in "
        ),
    ):
        run()
    assert not reports


def send_changes(
    broker: Broker, topic: str, *changes: tuple[dict[str, Any] | None, dict[str, Any] | None, str]
) -> None:
    """Messages of Debezium: the row before, the row after, and the operation."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for before, after, op in changes:
        value = json.dumps({"before": before, "after": after, "op": op}).encode()
        producer.produce(topic, key=b"1", value=value)
    assert producer.flush(30) == 0


def test_a_topic_goes_to_a_topic(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    """Messages of Debezium become Canal's, which name the table; all of them are in the first partition."""
    prefix, places = unique("cdc"), dict[int, int]()
    broker.create_topic(f"{prefix}-in", partitions=2)
    broker.create_topic(f"{prefix}-out", partitions=3)
    file = lake / "cdc.yaml"
    file.write_text(CDC.replace("PREFIX", prefix).replace("SERVERS", broker.bootstrap))

    def received() -> list[tuple[Any, Any]]:
        run_job(spark, load_job(file, environ={}))
        found = list(messages(broker.bootstrap, f"{prefix}-out", places))
        assert all(m.partition() == 0 and m.headers() == [("team", b"shop")] for m in found)
        return [documents(message) for message in found]

    ann, bob = {"id": 1, "name": "ann"}, {"id": 1, "name": "bob"}
    sent = {"t": "orders"}
    about = {"database": "shop", "table": "orders", "pkNames": ["id"]}
    send_changes(broker, f"{prefix}-in", (None, ann, "c"))
    assert received() == [({"id": 1}, {"data": [ann | sent], "type": "INSERT"} | about)]
    send_changes(broker, f"{prefix}-in", (ann, bob, "u"))
    update = {"old": [ann | sent], "data": [bob | sent], "type": "UPDATE"}
    assert received() == [({"id": 1}, update | about)]


@pytest.mark.slow
def test_a_row_whose_projection_fails_stops_the_job_or_is_left_out(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    prefix, places = unique("cdc"), dict[int, int]()
    broker.create_topic(f"{prefix}-in", partitions=1)
    broker.create_topic(f"{prefix}-out", partitions=1)
    text = (
        CDC.replace("PREFIX", prefix).replace("SERVERS", broker.bootstrap).replace("name STRING", "n BIGINT")
    )
    text = text.replace("\\*, __table_name__ AS t", "id, 10 / n AS q")
    file = lake / "cdc.yaml"

    def run(way: str, *after: dict[str, Any]) -> tuple[list[BatchReport], list[Any]]:
        send_changes(broker, f"{prefix}-in", *((row, row, "u") for row in after))
        file.write_text(f"{text}pipeline:\n  bridge.bad-records: {way}\n")
        reports: list[BatchReport] = []
        run_job(spark, load_job(file, environ={}), listener=reports.append)
        found = messages(broker.bootstrap, f"{prefix}-out", places)
        return reports, [(d["type"], d["data"]) for _, d in map(documents, found)]

    _, sent = run("fail", {"id": 1, "n": 5}, {"id": 2, "n": 2})
    assert sorted(sent, key=str) == [("INSERT", [{"id": 1, "q": 2}]), ("INSERT", [{"id": 2, "q": 5}])]
    with pytest.raises(BadRecordError, match=r"row \(id: 1\): division by zero in 10 / n\. Nothing of this"):
        run("fail", {"id": 1, "n": 0}, {"id": 2, "n": 1})
    reports, sent = run("skip")
    assert [r.bad_records for r in reports if r.verb == "insert"] == [1]
    assert sorted(sent, key=str)[0] == ("DELETE", [{"id": 1, "q": 2}])
    assert ("UPDATE", [{"id": 2, "q": 10}]) in sent
    _, sent = run("skip", {"id": 1, "n": 1})
    assert sent == [("INSERT", [{"id": 1, "q": 10}])]


def test_counters_are_there_before_the_first_batch(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]
) -> None:
    prefix, stopped = unique("shop"), threading.Event()
    eu = lake / "shop" / "eu"
    write_table(eu / "orders", {"id": pa.array([1], pa.int64()), "total": pa.array([5])})
    write_table(eu / "people", {"id": pa.array([1], pa.int64()), "name": pa.array(["ann"])})
    file = lake / "shop.yaml"
    file.write_text(f"{JOB.replace('PREFIX', prefix)}  bridge.metrics: shop.prom\n")
    stopped.set()
    run_job(spark, load_job(file, environ={"KAFKA_SERVERS": broker.bootstrap}), stop=stopped)
    shown = re.findall(
        r'^bridge_batch_seconds_count\{.*verb="(\w+)"\} 0', (lake / "shop.prom").read_text(), re.M
    )
    assert sorted(shown) == ["insert", "publish", "publish"]
