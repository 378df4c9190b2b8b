"""Topics to which the driver sends by itself have the records of those to which Spark's tasks send."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.delta.table import open_table
from bridge.embedded.broker import Broker
from bridge.pipelines.publish.driver_records import driver_records
from bridge.pipelines.publish.run import publish
from bridge.pipelines.publish.sharding import FileShardLimits
from tests.delta.tables import append, at, by_marks, frame, made
from tests.pipelines.world import World
from tests.reader import messages


@pytest.mark.parametrize(
    ("key", "once"), [(True, False), (False, False), (True, True)], ids=["upserts", "appends", "transactions"]
)
def test_a_topic_has_the_same_records(
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    key: bool,
    once: bool,
) -> None:
    """Two runs of each, which share a producer in the driver; the topics have several partitions. Transactions whose
    shards are files are never sent by the driver, however small."""
    columns = "id BIGINT, v STRING" + (", PRIMARY KEY (id) NOT ENFORCED" if key else "")
    fields = (T.StructField("id", T.LongType()), T.StructField("v", T.StringType()))
    options: dict[str, str | None] = (
        {} if key else {"connector": "kafka", "key.format": None, "value.format": None, "format": "json"}
    )
    if once:
        options |= {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": unique("tx")}
    limits = FileShardLimits(min_rows=10, min_rows_per_file=1, max_imbalance=10) if once else None
    worlds = {
        name: World.make(
            spark,
            broker,
            lake,
            unique,
            columns=columns,
            options=options,
            cleanup="compact" if key else "delete",
        )
        for name in ("auto", "spark")
    }
    for name, world in worlds.items():
        world.sections = f"publish: {{encoder: {name}}}\n"
    table = made(spark, lake / "table", fields=fields)
    sent: list[bool] = []

    def noted(*given: Any) -> Any:
        sent.append(False)
        found = driver_records(*given)
        sent[-1] = True
        return found

    monkeypatch.setattr("bridge.pipelines.publish.run.driver_records", noted)
    for number in range(3):
        rows = [(id, f"v{number}") for id in range(number * 10, number * 10 + 30)]
        if key:
            changes = [("-D" if id % 7 == 6 else "+U", id, v) for id, v in rows]
            by_marks(table, frame(table, changes), key=["id"], progress=at(number))
        else:
            append(open_table(spark, table.target, fields), rows)
        found = {}
        for name, world in worlds.items():
            definition = world.definition(name, run={"checkpoint": f"checkpoint-{name}"})
            assert publish(spark, definition, file_shard_limits=limits).records_out > 20
            records = messages(broker.bootstrap, world.topic)
            parts = ((m.key(), m.value(), m.headers(), m.partition() if key else None) for m in records)
            found[name] = sorted(parts, key=str)
        assert found["auto"] == found["spark"]
    first = [False, False]  # a snapshot
    assert sent == ([] if once else [*first, True, False, True, False])
    logged = [json.loads(file.read_text())["bridge"] for file in lake.glob("checkpoint-auto/publish/*.json")]
    by_file = [progress for progress in logged if (progress["open"] or {}).get("files")]
    assert bool(by_file) is once
