"""Brokers of older versions: an ingest, and publishes with both guarantees, which docs/deploy.md promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.kafka.admin import broker_version
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.operations import surroundings
from bridge.pipelines.operations.surroundings import Outcome
from bridge.pipelines.publish.run import publish
from tests.docs.pages import DOCS
from tests.pipelines.world import World, tombstone, upsert

pytestmark = pytest.mark.slow

_PLAIN = {"properties.enable.idempotence": "false"}
_ONCE = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "old"}


# Kafka 2.8 has KRaft as a preview, without idempotent producers and transactions.
@pytest.mark.parametrize(("version", "guarantees"), [("2.8.2", [_PLAIN]), ("3.3.2", [{}, _ONCE])])
def test_an_ingest_and_a_publish(
    version: str,
    guarantees: list[dict[str, str]],
    spark: SparkSession,
    tmp_path: Path,
    lake: Path,
    unique: Callable[[str], str],
) -> None:
    assert f"Kafka {version}" in (DOCS / "deploy.md").read_text(encoding="utf-8")
    with Broker(tmp_path / "broker", version=version) as broker:
        world = World.make(spark, broker, lake, unique)
        world.send([upsert(1, "a"), upsert(2, "b"), tombstone(2)])
        assert ingest(spark, world.definition()).inserted == 1
        assert verify(spark, world.definition()).equal
        older = tuple(int(part) for part in version.split(".")[:2])
        assert broker_version({"bootstrap.servers": broker.bootstrap}, timeout=10) == older
        for number, options in enumerate(guarantees):
            out = World.make(
                spark, broker, lake, unique, options=options, sections="publish: {start: snapshot}\n"
            )
            definition = out.definition(f"out{number}", {"checkpoint": f"out{number}"})
            ((outcome, _),) = surroundings.version(definition, sends=True, timeout=10)
            assert outcome is Outcome.FINE
            assert publish(spark, definition).records_out == 1
            assert verify(spark, definition, direction="publish").equal
        once = World.make(spark, broker, lake, unique, options=_ONCE).definition()
        ((outcome, text),) = surroundings.version(once, sends=True, timeout=10)
        told = (
            "the brokers are older than Kafka 3.3, the oldest one that an exactly-once publish is tested with"
        )
        assert outcome is (Outcome.FINE if _ONCE in guarantees else Outcome.WARNING)
        assert (told in text) is (_ONCE not in guarantees)
