"""Warns when a topic of a publish has another number of partitions than before: keys then change partitions."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from bridge.bridge_folders import partition_counts_file
from bridge.definition import Definition, Topic
from bridge.kafka.topic_creation import partition_counts
from bridge.storage import TextFile

__all__ = ["PartitionCount"]


class PartitionCount:
    """The last known numbers of partitions, in a file of `run.checkpoint`; only warnings depend on them."""

    def __init__(self, spark: SparkSession, definition: Definition) -> None:
        self._file = TextFile(spark, partition_counts_file(definition.run.checkpoint))
        self._known = _parsed(self._file.read())

    def warnings(self, topic: Topic) -> list[str]:
        """Warn of each topic whose keys may have moved since the last call, by this run or an earlier one; records
        without a key have no warnings. Raises KafkaError."""
        if topic.key is None:
            return []
        now = partition_counts(topic)
        changed = {name: self._known[name] for name in now if self._known.get(name, now[name]) != now[name]}
        if {**self._known, **now} != self._known:
            self._known = {**self._known, **now}
            self._file.write(json.dumps(self._known))
        return [
            f"topic '{name}' has {now[name]} partitions by now, it had {before}: most keys have moved to another "
            "partition, and readers may see older records of a key after newer ones"
            for name, before in changed.items()
        ]


def _parsed(text: str | None) -> dict[str, int]:
    try:
        return {str(name): int(count) for name, count in json.loads(text or "{}").items()}
    except (ValueError, TypeError, AttributeError):
        return {}
