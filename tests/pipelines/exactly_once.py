"""A publish in transactions, for one test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.embedded.broker import Broker
from tests.ledger import Ledger
from tests.pipelines.world import World

Arm = Callable[[str, str], Path]
Make = Callable[..., tuple[World, Ledger]]

SHARDS = 3


def exactly_once(
    spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str], **options: str | None
) -> tuple[World, Ledger]:
    """A publish with several transactions a shard, and several chunks a snapshot."""
    defaults = {
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": unique("tx"),
        "sink.parallelism": str(SHARDS),
    }
    world = World.make(spark, broker, lake, unique, options={**defaults, **options})
    world.sections = "publish: {transaction-rows: 10, snapshot-chunk-rows: 40}\n"
    ledger = Ledger(spark, f"{lake}/table")
    ledger.create()
    return world, ledger
