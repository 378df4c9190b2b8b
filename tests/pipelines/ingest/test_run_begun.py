"""A batch that was begun where sessions take no settings, and not recorded: other compute reads it again as a whole."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from bridge import failpoints
from bridge.backend import Feature
from bridge.backend.classic import ClassicBackend
from bridge.errors import BridgeError
from bridge.pipelines.ingest.run import ingest
from tests.pipelines.world import Make, key, value


@pytest.mark.slow
def test_a_batch_that_serverless_compute_has_begun(
    make: Make, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(partitions=1, sections="merge: {engine: spark}\n")
    world.send([(key(1), value(1, "a"))])
    ingest(spark, world.definition())
    world.send([(key(1), value(1, name)) for name in "bcd"])

    def hit(name: str) -> None:
        if name == "ingest.merged":
            raise BridgeError("killed")

    with monkeypatch.context() as serverless:
        serverless.setattr(ClassicBackend, "can", lambda _, f: "no" if f is Feature.SETTINGS else None)
        serverless.setattr(failpoints, "hit", hit)
        with pytest.raises(BridgeError, match="killed"):
            ingest(spark, world.definition())
    (batch,) = world.batches(run={"max-offsets-per-batch": 1})
    assert (batch.records_in, batch.unchanged) == (3, 1)
    assert "is read again as a whole" in str(batch.reader)
    assert [row[1] for row in world.rows()] == ["d"]
