"""Lineage of scripts: from their topics and tables to their topics and tables, column by column.

The columns of sources from which the columns of a result come.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError
from bridge.pipelines.scripts.lineage import column_origins
from bridge.sql import load_script
from tests.metrics.openlineage import events_in, facet_of
from tests.pipelines.scripts.scripts import MakeScript, ScriptRun

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


def test_a_script(script_of: MakeScript, broker: Broker, lake: Path) -> None:
    script = script_of(TEXT)
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


TABLES = """
CREATE TABLE v (id BIGINT, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', 'topic' = 'v', 'format' = 'json');
CREATE TABLE c (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'c');
"""


@pytest.mark.parametrize(
    ("columns", "query", "wanted"),
    [
        (
            "a BIGINT, b STRING",
            "SELECT id, 'x' FROM v",
            {"a": [("v", "id", "IDENTITY")]},
        ),
        (
            "a BIGINT, b STRING, PRIMARY KEY (a) NOT ENFORCED",
            "SELECT c.id, MAX(v.page || c.name) FROM c JOIN v ON v.id = c.id WHERE v.ts IS NOT NULL GROUP BY c.id",
            {
                "a": [("c", "id", "IDENTITY")],
                "b": [("c", "name", "AGGREGATION"), ("v", "page", "AGGREGATION")],
            },
        ),
        (
            "a BIGINT, b STRING",
            "SELECT id, page FROM v UNION ALL SELECT id + 1, page FROM v",
            {"a": [("v", "id", "TRANSFORMATION")], "b": [("v", "page", "IDENTITY")]},
        ),
        (
            "a TIMESTAMP(3), b BIGINT, PRIMARY KEY (a) NOT ENFORCED",
            "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
            "GROUP BY window_start, window_end",
            {"a": [("v", "ts", "TRANSFORMATION")]},
        ),
        (
            "a BIGINT, b STRING, PRIMARY KEY (a) NOT ENFORCED",
            "SELECT id, page FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM v) "
            "WHERE n = 1",
            {"a": [("v", "id", "IDENTITY")], "b": [("v", "page", "IDENTITY")]},
        ),
    ],
)
def test_origins(
    tmp_path: Path, columns: str, query: str, wanted: dict[str, list[tuple[str, str, str]]]
) -> None:
    sink = f"CREATE TABLE s ({columns}) WITH ('connector' = 'delta', 'path' = 's');"
    script = load_script(tmp_path / "s.sql", text=f"{TABLES}{sink}\nINSERT INTO s {query};")
    found = column_origins(script.inserts[0])
    assert {name: sorted(origins) for name, origins in found.items()} == wanted
