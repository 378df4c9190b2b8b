"""Lineage of a real ingest, publish and check: topic, table and topic are one graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.definition import DeltaTarget
from bridge.embedded.broker import Broker
from bridge.errors import BadRecordError
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.pipelines.quality.check import check
from bridge.pipelines.runtime.lineage import table_dataset, topic_datasets
from tests.metrics.openlineage import edges, events_in, facet_of
from tests.pipelines.world import Make, tombstone, upsert

COLUMNS = (
    "id BIGINT, name STRING, amount DECIMAL(10, 2), at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', "
    "part INT METADATA FROM 'partition' VIRTUAL, label AS UPPER(name), PRIMARY KEY (id) NOT ENFORCED"
)
SUITE = {
    "name": "orders",
    "expectations": [
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}},
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 5}},
    ],
    "meta": {},
}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENLINEAGE_NAMESPACE", "OPENLINEAGE_PARENT_ID"):
        monkeypatch.delenv(name, raising=False)


def test_topic_table_topic_is_one_graph(make: Make, spark: SparkSession, broker: Broker, lake: Path) -> None:
    (lake / "suite.json").write_text(json.dumps(SUITE))
    sections = "quality: {suite: suite.json, on-failure: warn}\n"
    first = make(columns=COLUMNS, partitions=1, sections=sections)
    second = make(columns=COLUMNS, partitions=1)
    run = {"lineage": "events.jsonl"}
    first.send([upsert(1, "a"), upsert(2, "b"), upsert(1, "c")])
    definition = first.definition(run=run)
    ingest(spark, definition)
    publish(spark, second.definition("copy", run=run))
    first.send([tombstone(2)])
    ingest(spark, definition)
    publish(spark, second.definition("copy", run=run))
    check(spark, definition)

    events = events_in(lake / "events.jsonl")
    assert [(e["job"]["name"], e["eventType"]) for e in events] == [
        (job, kind)
        for job in ("orders.ingest", "copy.publish", "orders.ingest", "copy.publish", "orders.check")
        for kind in ("START", "COMPLETE")
    ]
    assert len({e["run"]["runId"] for e in events}) == 5
    table = f"{lake}/table"
    assert edges(events) == {
        (first.topic, "orders.ingest"),
        ("orders.ingest", table),
        (table, "copy.publish"),
        ("copy.publish", second.topic),
        (table, "orders.check"),
        ("orders.check", f"{table}_quality"),
    }
    namespaces = {(d["namespace"], d["name"]) for e in events for d in (*e["inputs"], *e["outputs"])}
    assert namespaces == {
        (f"kafka://{broker.bootstrap}", first.topic),
        (f"kafka://{broker.bootstrap}", second.topic),
        ("file", table),
        ("file", f"{table}_quality"),
    }

    _, read, _, sent, _, read_again, _, sent_again, _, judged = events
    assert facet_of(read, "inputs", 0, "inputStatistics")["rowCount"] == 3
    assert facet_of(read, "inputs", 0, "bridge_kafkaOffsets")["partitions"] == [
        {"partition": 0, "from": 0, "to": 3}
    ]
    assert facet_of(read_again, "inputs", 0, "bridge_kafkaOffsets")["partitions"] == [
        {"partition": 0, "from": 3, "to": 4}
    ]
    assert facet_of(read, "outputs", 0, "outputStatistics")["rowCount"] == 2
    assert facet_of(sent, "outputs", 0, "outputStatistics")["rowCount"] == 2
    assert facet_of(sent, "outputs", 0, "bridge_kafkaOffsets")["partitions"] == [{"partition": 0, "to": 2}]
    assert facet_of(sent_again, "outputs", 0, "bridge_kafkaOffsets")["partitions"] == [
        {"partition": 0, "from": 2, "to": 3}
    ]
    written, published = (
        facet_of(event, side, 0, "version")["datasetVersion"]
        for event, side in ((read_again, "outputs"), (sent_again, "inputs"))
    )
    assert written == published
    assert facet_of(read, "outputs", 0, "storage")["storageLayer"] == "delta"
    types = {f["name"]: f.get("type") for f in facet_of(read, "outputs", 0, "schema")["fields"]}
    assert (types["id"], types["amount"], types["at"]) == ("BIGINT", "DECIMAL(10,2)", "TIMESTAMP")
    assert facet_of(sent, "inputs", 0, "schema") == facet_of(read, "outputs", 0, "schema")
    assert origins(read) == {
        "id": {"id": "IDENTITY"},
        "name": {"name": "IDENTITY"},
        "amount": {"amount": "IDENTITY"},
        "at": {"at": "IDENTITY"},
        "part": {"part": "IDENTITY"},
        "label": {"name": "TRANSFORMATION"},
    }
    assert origins(sent) == {name: {name: "IDENTITY"} for name in ("id", "name", "amount", "at")}
    assert judged["run"]["facets"]["processing_engine"]["version"] == spark.version
    assert [
        (a["assertion"], a["column"], a["success"], a["severity"])
        for a in facet_of(judged, "inputs", 0, "dataQualityAssertions")["assertions"]
    ] == [
        ("expect_column_values_to_not_be_null", "name", True, "warn"),
        ("expect_column_values_to_be_between", "amount", False, "warn"),
    ]
    assert facet_of(judged, "inputs", 0, "version")["datasetVersion"] == written


def origins(event: dict[str, Any], number: int = 0) -> dict[str, dict[str, str]]:
    """The columns from which each column of an output comes, and how."""
    fields = facet_of(event, "outputs", number, "columnLineage")["fields"]
    return {
        name: {o["field"]: o["transformations"][0]["subtype"] for o in field["inputFields"]}
        for name, field in fields.items()
    }


def test_a_run_that_fails_says_no_key(make: Make, spark: SparkSession, lake: Path) -> None:
    world = make(partitions=1)
    world.send([('{"id":471147114711}', "no document")])
    with pytest.raises(BadRecordError):
        ingest(spark, world.definition(run={"lineage": "events.jsonl"}))
    last = events_in(lake / "events.jsonl")[-1]
    assert last["eventType"] == "FAIL"
    assert last["run"]["facets"]["errorMessage"]["message"] == "BadRecordError"
    assert "471147114711" not in (lake / "events.jsonl").read_text()


def test_a_pattern_stands_for_the_topics_that_are_there(make: Make, broker: Broker) -> None:
    world = make(columns="id BIGINT")
    broker.create_topic(f"{world.topic}-2", partitions=1)
    options = {"connector": "kafka", "topic": None, "topic-pattern": f"{world.topic}.*", "key.format": None}
    world.options = {**options, "scan.startup.mode": "earliest-offset"}
    found = topic_datasets(world.definition().topic, ("ingest", "orders"))
    assert [(d.name, d.shares_counts) for d in found] == [(world.topic, True), (f"{world.topic}-2", True)]


@pytest.fixture
def catalog_table(spark: SparkSession, unique: Callable[[str], str]) -> Iterator[str]:
    name = f"default.{unique('T').replace('-', '_')}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_table_of_the_catalog_has_the_name_of_its_location_before_it_is_there(
    spark: SparkSession, catalog_table: str
) -> None:
    target = DeltaTarget(table=catalog_table)
    before = table_dataset(spark, target)
    spark.sql(f"CREATE TABLE {catalog_table} (id BIGINT) USING delta")
    assert table_dataset(spark, target) == before
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert before.symlink == (warehouse, catalog_table)
    assert (before.namespace, before.name) == (
        "file",
        f"{str(warehouse).removeprefix('file:')}/{catalog_table.rpartition('.')[2].lower()}",
    )


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/lake/orders/", "file", "/lake/orders"),
        ("/lake/a #1?", "file", "/lake/a #1?"),
        ("file:///lake/a%20b", "file", "/lake/a b"),
        ("s3a://bucket/lake/orders", "s3://bucket", "lake/orders"),
        ("abfss://c@a.dfs.core.windows.net/orders", "abfss://c@a.dfs.core.windows.net", "orders"),
        ("hdfs://name:8020/orders", "hdfs://name:8020", "/orders"),
        ("gs://bucket", "gs://bucket", "/"),
    ],
)
def test_names_of_tables(spark: SparkSession, path: str, namespace: str, name: str) -> None:
    dataset = table_dataset(spark, DeltaTarget(path=path))
    assert (dataset.namespace, dataset.name) == (namespace, name)
