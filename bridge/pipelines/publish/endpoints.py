"""The two ends of a publish: its table and its topic, with the columns that the table has now."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from bridge.config import refuse_unpublishable
from bridge.definition import Definition
from bridge.delta.log_description import describe
from bridge.kafka import admin, topic_creation
from bridge.pipelines.changes import row_gate
from bridge.pipelines.publish.added_columns import with_added_columns
from bridge.pipelines.runtime.preflight import publish_warnings, published_table

__all__ = ["Endpoints"]


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
