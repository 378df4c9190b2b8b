"""Which delivery a pipeline gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from bridge.pipelines.publish.delivery import AtLeastOnce, ExactlyOnce, delivery_for
from bridge.pipelines.publish.destination import Destination
from bridge.publish_progress import PublishProgress, PublishRange
from tests.pipelines.world import World


@pytest.mark.parametrize(
    ("guarantee", "kind"),
    [("at-least-once", AtLeastOnce), ("none", AtLeastOnce), ("exactly-once", ExactlyOnce)],
)
def test_the_guarantee_names_the_delivery(
    spark: SparkSession,
    broker: Broker,
    lake: Path,
    unique: Callable[[str], str],
    guarantee: str,
    kind: type[object],
) -> None:
    """An open range that has no shards gets them where there are transactions."""
    options = {"sink.delivery-guarantee": guarantee}
    if guarantee == "exactly-once":
        options["sink.transactional-id-prefix"] = unique("tx")
    world = World.make(spark, broker, lake, unique, options=options)
    definition = world.definition()
    with delivery_for(spark, definition, Destination(definition, definition.topic)) as delivery:
        assert isinstance(delivery, kind)
        assert delivery.take_over() is None
        progress = PublishProgress(definition.name, "table", 3, 0)
        recorded = delivery.record(progress.opened(PublishRange(4, 4, snapshot=True)))
        assert recorded.batch == 1 and set(recorded.topics) == {world.topic}
        assert recorded.open is not None
        assert recorded.open.shards == (2 if guarantee == "exactly-once" else 0)
    with delivery_for(spark, definition, Destination(definition, definition.topic)) as delivery:
        taken_over = delivery.take_over()
        assert taken_over is not None and taken_over.open == recorded.open
