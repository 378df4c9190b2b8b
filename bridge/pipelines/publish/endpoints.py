"""Opens the two ends of a publish: its table and its topic, with the columns that the table has now.

Columns may have been added after the DDL was written. `PartitionCount` warns when a topic has another number of
partitions than before: keys then change partitions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.bridge_folders import PARTITION_COUNTS
from bridge.columns import data_type
from bridge.config import refuse_unpublishable
from bridge.definition import Definition, Topic
from bridge.delta.delta_errors import error_names
from bridge.delta.feed_consumers import FeedConsumers
from bridge.delta.log_description import describe
from bridge.delta.state_choice import state_of
from bridge.delta.table import Table
from bridge.delta.table_checks import refuse_schema_mismatch
from bridge.errors import TableError
from bridge.kafka import admin, topic_creation
from bridge.kafka.topic_creation import partition_counts
from bridge.log_layout import commit_file, log_folder
from bridge.pipelines.changes import row_gate
from bridge.pipelines.runtime.preflight import publish_warnings, published_table
from bridge.pipelines.runtime.retention_warnings import log_retention_warning
from bridge.publish_progress import PublishProgress
from bridge.schema import PhysicalColumn, RowField, RowType
from bridge.small_files import SmallFiles


class PartitionCount:
    """The last known numbers of partitions, in the state of the pipeline; only warnings depend on them."""

    def __init__(self, spark: SparkSession, definition: Definition) -> None:
        self._state = state_of(spark, definition)
        self._known = _parsed(self._state.read(PARTITION_COUNTS))

    def warnings(self, topic: Topic) -> list[str]:
        """Warn of each topic whose keys may have moved since the last call, by this run or an earlier one; records
        without a key have no warnings. Raises KafkaError."""
        if topic.key is None:
            return []
        now = partition_counts(topic)
        changed = {name: self._known[name] for name in now if self._known.get(name, now[name]) != now[name]}
        if {**self._known, **now} != self._known:
            self._known = {**self._known, **now}
            self._state.write(PARTITION_COUNTS, json.dumps(self._known))
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


def with_added_columns(
    definition: Definition, topic: Topic, table: Table, present: T.StructType
) -> tuple[Topic, Table]:
    """Adapt `topic` and `table`, which are as the DDL declares them, to a table of schema `present`.

    Columns that the DDL lacks are left out; under `publish.added-columns: carry` they are the last ones of the value
    document, in the table's order. Raises TableError when a column of the DDL is missing or has another type, naming
    it, and for an added column of a type that Flink does not have.
    """
    refuse_schema_mismatch(table.target, present, table.fields, "unused")
    if not definition.publish.carry:
        return topic, table
    known = {*topic.schema.names, *(f.name for f in table.read_fields)}
    added = [f for f in present.fields if f.name not in known]
    if not added:
        return topic, table
    fields = [_field(table, f) for f in added]
    row = RowType((*topic.value.row.fields, *fields))
    value = replace(topic.value, row=row, columns=(*topic.value.columns, *(f.name for f in fields)))
    columns = (*topic.schema.columns, *(PhysicalColumn(f.name, f.type) for f in fields))
    topic = replace(topic, value=value, schema=replace(topic.schema, columns=columns))
    return topic, replace(table, fields=(*table.fields, *added))


def _field(table: Table, field: T.StructField) -> RowField:
    type = data_type(field.dataType)
    if type is None:
        raise TableError(
            f"table {table}: column {field.name!r} was added with type {field.dataType.simpleString()}, which Flink's "
            "formats cannot write; drop it, or set publish.added-columns: ignore"
        )
    return RowField(field.name, type)


_LAG_CHECK_SECONDS = 60.0


class ConsumerRegistration:
    """The registration by one run. Where it cannot be written, the run continues and warns once of what that means."""

    def __init__(self, definition: Definition, table: Table) -> None:
        self._definition, self._table = definition, table
        self._consumers = FeedConsumers(table, definition.run.state)
        self._failed = False
        self._lag_checked_at = float("-inf")

    def update(self, progress: PublishProgress) -> str | None:
        """Register what the publish still needs: every version after `progress.version`, and the files of a snapshot
        while it is sent. Return a warning at the first failure, else None.

        The registration is never ahead of the recorded progress.
        """
        if self._failed:
            return None
        open_range = progress.open
        version = open_range.last if open_range is not None and open_range.snapshot else progress.version
        try:
            run = self._definition.run
            self._consumers.register(self._definition.name, version, str(run.state or run.checkpoint))
        except Exception as failed:
            self._failed = True
            reasons = ", ".join(sorted(error_names(failed))) or type(failed).__name__
            return (
                f"{self._consumers.place} cannot be written ({reasons}), so `bridge maintain` does not know of this "
                "publish, and VACUUM may delete files it still needs. Let this login write there, or keep "
                "delta.deletedFileRetentionDuration longer than this publish may ever be behind"
            )
        return None

    def lag_warning(self, progress: PublishProgress) -> str | None:
        """Once a minute, warn when the age of the next version to publish nears delta.logRetentionDuration."""
        if time.monotonic() - self._lag_checked_at < _LAG_CHECK_SECONDS:
            return None
        self._lag_checked_at = time.monotonic()
        log = log_folder(self._consumers.table_folder)
        try:
            # Delta cleans its log by this time; DESCRIBE HISTORY would need a Spark job.
            written = SmallFiles(self._table.spark, log).modified_ms(commit_file(progress.version + 1))
        except Exception:  # a store that cannot be read by path: no warning
            return None
        if written is None:
            return None
        name = f"publish {self._definition.name!r}"
        return log_retention_warning(self._table, name, time.time_ns() / 1e9 - written / 1000)
