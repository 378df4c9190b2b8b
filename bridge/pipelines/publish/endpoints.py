"""The two ends of a publish: its table and its topic, with the columns that the table has now.

Warns when a topic of a publish has another number of partitions than before: keys then change partitions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyspark.sql import SparkSession

from bridge.bridge_folders import partition_counts_file
from bridge.config import refuse_unpublishable
from bridge.definition import Definition, Topic
from bridge.delta.log_description import describe
from bridge.kafka import admin, topic_creation
from bridge.kafka.topic_creation import partition_counts
from bridge.pipelines.changes import row_gate
from bridge.pipelines.publish.added_columns import with_added_columns
from bridge.pipelines.runtime.preflight import publish_warnings, published_table
from bridge.small_files import TextFile


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


class Endpoints:
    """`topic` (its names resolved) and `table` of one run.

    Raises DefinitionError for a pipeline that cannot be published, TableError, KafkaError.
    """

    def __init__(self, spark: SparkSession, definition: Definition) -> None:
        refuse_unpublishable(definition.topic)
        row_gate.refuse_quarantine(definition)
        self._spark, self._definition = spark, definition
        self._declared = admin.resolve(definition.topic), published_table(spark, definition)
        self.refresh()

    def prepare(self) -> Iterator[str | None]:
        """Compile the gate for the table and create topics that do not exist (`topic.create`); yield warnings.

        Raises DefinitionError for a gate that cannot be evaluated, KafkaError.
        """
        yield row_gate.check_ready(self._spark, self._definition, self.table.fields)
        yield from topic_creation.prepare_topics(self.topic)
        yield from publish_warnings(self.topic)

    def refresh(self) -> None:
        """Read the table's columns as they are now; see `with_added_columns`. Raises TableError."""
        topic, table = self._declared
        found = describe(self._spark, table.target)
        present = found.schema if found is not None else table.read({}).schema
        self.topic, self.table = with_added_columns(self._definition, topic, table, present)
