"""Lineage of scripts: from their topics and tables to their topics and tables, column by column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError
from tests.metrics.openlineage import events_in, facet_of
from tests.pipelines.scripts.scripts import ScriptRun

TEXT = """
SET 'bridge.lineage' = 'events.jsonl';
CREATE TABLE views (user_id BIGINT, page STRING, region STRING)
  WITH ({kafka}, 'topic' = '{prefix}-views', 'properties.client.id' = 'hidden');
CREATE TABLE regions (region STRING, pv BIGINT, last_user BIGINT, PRIMARY KEY (region) NOT ENFORCED)
  WITH ({upsert}, 'topic' = '{prefix}-regions');
CREATE TABLE pages (user_id BIGINT, page STRING) WITH ('connector' = 'delta', 'path' = 'pages');
CREATE TABLE shown (user_id BIGINT) WITH ('connector' = 'print');
CREATE VIEW named AS SELECT user_id, UPPER(page) AS page FROM views WHERE region <> 'x';
INSERT INTO regions SELECT region, COUNT(*), MAX(user_id) FROM views GROUP BY region;
INSERT INTO pages SELECT user_id, page FROM named;
INSERT INTO shown SELECT user_id FROM named;
"""


def test_a_script(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> None:
    script = ScriptRun(spark, broker, lake, unique("s"), TEXT)
    script.create("views", partitions=1)
    script.send("views", [(None, {"user_id": n, "page": "a", "region": "r"}) for n in range(3)])
    script.run()
    events = events_in(lake / "events.jsonl")
    assert [(e["job"]["name"], e["eventType"]) for e in events] == [
        ("script.run", "START"),
        ("script.run", "COMPLETE"),
    ]
    end = events[-1]
    kafka = f"kafka://{broker.bootstrap}"
    named = [(d["namespace"], d["name"]) for d in (*end["inputs"], *end["outputs"])]
    assert named == [
        (kafka, script.topic("views")),
        (kafka, script.topic("regions")),
        ("file", f"{lake}/pages"),
    ]
    assert facet_of(end, "inputs", 0, "inputStatistics")["rowCount"] == 3
    assert facet_of(end, "inputs", 0, "bridge_kafkaOffsets")["partitions"][0]["to"] == 3
    assert [facet_of(end, "outputs", n, "outputStatistics")["rowCount"] for n in (0, 1)] == [1, 3]
    assert facet_of(end, "outputs", 1, "version")["datasetVersion"] == "1"
    views = {"namespace": kafka, "name": script.topic("views")}
    assert facet_of(end, "outputs", 0, "columnLineage")["fields"] == {
        "region": {"inputFields": [origin(views, "region", "IDENTITY")]},
        "last_user": {"inputFields": [origin(views, "user_id", "AGGREGATION")]},
    }
    assert facet_of(end, "outputs", 1, "columnLineage")["fields"] == {
        "user_id": {"inputFields": [origin(views, "user_id", "IDENTITY")]},
        "page": {"inputFields": [origin(views, "page", "TRANSFORMATION")]},
    }
    sql = end["job"]["facets"]["sql"]
    assert sql["query"].splitlines()[0] == (
        "CREATE VIEW named AS SELECT user_id, UPPER(page) AS page FROM views WHERE region <> 'x';"
    )
    assert sql["query"].count("INSERT INTO") == 3 and "hidden" not in str(events)


def origin(dataset: dict[str, str], field: str, subtype: str) -> dict[str, Any]:
    return {**dataset, "field": field, "transformations": [{"type": "DIRECT", "subtype": subtype}]}


def test_other_targets_are_refused_where_they_are_written(
    spark: SparkSession, broker: Broker, lake: Path
) -> None:
    script = ScriptRun(spark, broker, lake, "s", "SET 'bridge.lineage' = 'http://h?key=hidden';")
    with pytest.raises(
        DefinitionError, match=r"script\.sql:1:5: SET 'bridge\.lineage': .*no query"
    ) as refused:
        script.script()
    assert "hidden" not in str(refused.value)
