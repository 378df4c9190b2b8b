"""An ingest and a publish show each metric of the manual, with values that move, whatever reads the topic."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from bridge.metrics import BatchReport, ignore
from bridge.metrics.prometheus import exporting
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from tests.metrics.test_prometheus import free_address, scraped
from tests.metrics.test_registry import FLINKS
from tests.pipelines.world import Make, tombstone, upsert


@pytest.mark.parametrize("reader", ["consumer", "spark"])
def test_the_metrics_of_the_manual_move(make: Make, spark: SparkSession, reader: str) -> None:
    address = free_address()
    run = {"metrics": address}
    world = make(partitions=1, sections=f"ingest: {{reader: {reader}}}\n")
    copy = make(partitions=1)
    read, sent, seen = 0, 0, []
    with exporting(address, ignore):
        for records in ([upsert(1, "a"), upsert(2, "b")], [upsert(1, "c"), tombstone(2), upsert(1, "d")]):
            world.send(records)
            read += _bytes(records)
            ingest(spark, world.definition(run=run))
            publish(spark, copy.definition("copy", run=run))
            sent = _bytes(copy.received())
            found = {name: value for (name, labels), value in scraped(address).items() if not labels}
            assert (found["bridge_numBytesIn_total"], found["bridge_numBytesOut_total"]) == (read, sent)
            seen.append(found)
    first, second = seen
    for name in FLINKS:
        exposed = f"bridge_{name}" if f"bridge_{name}" in first else f"bridge_{name}_total"
        moves = {first[exposed], second[exposed]}
        assert len(moves) == 2 or name == "pendingRecords" or name.endswith("Lag"), (name, moves)
    assert (first["bridge_numRecordsIn_total"], second["bridge_numRecordsIn_total"]) == (2, 5)
    assert (first["bridge_numRecordsOut_total"], second["bridge_numRecordsOut_total"]) == (2, 4)
    assert second["bridge_tombstones_total"] == 1
    assert first["bridge_files_written_total"] < second["bridge_files_written_total"]
    commits = [json.loads(text)["bridge"] for c in world.history() if (text := c["userMetadata"])]
    assert [time.time() - c["newest"] / 1000 < 600 for c in commits] == [True, True]
    assert 0 <= second["bridge_currentFetchEventTimeLag"] <= second["bridge_currentEmitEventTimeLag"] < 60_000


def test_pending_records_are_what_the_batch_has_left(make: Make, spark: SparkSession) -> None:
    address = free_address()
    world = make(partitions=1)
    world.send([upsert(n, "a") for n in range(5)])
    pending = []
    definition = world.definition(run={"metrics": address, "max-offsets-per-batch": 2})

    def heard(report: BatchReport) -> None:
        found = scraped(address)
        pending.append(found["bridge_pendingRecords", frozenset()])

    ingest(spark, definition, listener=heard)
    assert pending == [3, 1, 0]


def _bytes(records: Iterable[tuple[object, object]]) -> int:
    """Of keys and values, which may be texts."""
    parts = [part for record in records for part in record if part is not None]
    return sum(len(part if isinstance(part, bytes) else str(part).encode()) for part in parts)
