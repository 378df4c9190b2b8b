"""The two ways to publish: what is sent when, and what is written down before and after."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from bridge import failpoints
from bridge.columns import POSITION, members
from bridge.definition import Definition, DeliveryGuarantee, Topic
from bridge.delta.data_files import data_files, digest
from bridge.delta.publish_log import PublishLog
from bridge.errors import REPUBLISH, GapError
from bridge.kafka import admin, admin_transactions, sink
from bridge.kafka.control import Control
from bridge.kafka.exactly_once import TransactionalSink, produce_files, produce_once
from bridge.kafka.sink import ProduceResult
from bridge.partitioners import TASK_FREE
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.plan_fingerprint import is_unique, plan_fingerprint
from bridge.pipelines.publish.take_over import last_readable_progress, reconcile
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange

__all__ = ["AtLeastOnce", "Delivery", "ExactlyOnce", "delivery_for"]


_RECENT_SECONDS = 20.0
"""A note of a shard that is older is written again with the next range: far less than Kafka keeps one (at least a
minute), and far more than a small batch takes."""

_ROWS_PER_SHARD = 500_000
_MAX_SHARDS_PER_TASK = 8
"""A task that sorts more than so many rows is slower for each of them: its memory is soon full. More shards than that
for each task that Spark runs at a time are not worth their transactional ids."""


class Delivery(Protocol):
    """A context manager that sends ranges and remembers them."""

    def shards(self, rows: int) -> int:
        """What a new range of about so many rows is cut into; 0 without transactions."""
        ...

    @property
    def file_tasks(self) -> int:
        """How many tasks send at a time where a new range may have a data file for a shard; 0 where it may not."""
        ...

    @property
    def destination(self) -> Destination:
        """The topics as they were when it was first asked for; see there."""
        ...

    def __enter__(self) -> Delivery: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def take_over(self) -> PublishProgress | None:
        """What the runs before have written down; None before the first. A range that is open is to be sent again.
        Raises GapError when it belongs to another topic, or to another key."""
        ...

    def take_over_for_resync(self) -> PublishProgress | None:
        """`take_over` for a resync: of what the runs before have written down no more is needed than can be read, and
        nothing that is open will be finished. Their transactions are ended."""
        ...

    def record(self, progress: PublishProgress) -> PublishProgress:
        """Write the progress down with its key and topics, and give it back as it is written. Raises
        ConcurrentRunError, GapError when something was sent and a topic is by now another one."""
        ...

    def send(self, records: DataFrame, publish_range: PublishRange) -> ProduceResult:
        """Send the records of a range whose opening is recorded; returns when the broker has all of them."""
        ...


def delivery_for(spark: SparkSession, definition: Definition, topic: Topic) -> Delivery:
    """The one that `sink.delivery-guarantee` asks for; `topic` is the definition's with its names looked up."""
    if topic.sink.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        return ExactlyOnce(spark, definition, topic)
    return AtLeastOnce(spark, definition, topic)


class AtLeastOnce:
    """Progress is written down after the broker has acknowledged: a crash in between sends a range again."""

    def __init__(self, spark: SparkSession, definition: Definition, topic: Topic) -> None:
        self._definition, self._topic = definition, topic
        self._log = PublishLog(spark, definition.run.checkpoint, definition.name)

    def shards(self, rows: int) -> int:
        return 0

    @property
    def file_tasks(self) -> int:
        return 0

    def __enter__(self) -> AtLeastOnce:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @cached_property
    def destination(self) -> Destination:
        return Destination(self._definition, self._topic)

    def take_over(self) -> PublishProgress | None:
        found = self._log.last()
        self.destination.check(found)
        if found is None or found.open is None or not found.open.shards:
            return found
        # The range was begun with transactions, before the guarantee was changed: it is sent again, whole.
        again = found.open.snapshot or found.open.resync
        return replace(
            found, open=replace(found.open, shards=0, files="", cursors_recorded=False) if again else None
        )

    def take_over_for_resync(self) -> PublishProgress | None:
        found = last_readable_progress(self._log)
        self.destination.check_resync(found)
        return found

    def record(self, progress: PublishProgress) -> PublishProgress:
        begun = progress.open
        if begun is not None and not (begun.snapshot or begun.resync):
            return progress  # it would tell nothing that `version` does not
        self.destination.check_unchanged()
        written = self.destination.with_destination(replace(progress, batch=progress.batch + 1, run=None))
        written = _with_ends(written, self._topic)
        self._log.write(written)
        return written

    def send(self, records: DataFrame, publish_range: PublishRange) -> ProduceResult:
        # Its parts, not itself: of a struct Spark's sort knows no first bytes to compare.
        order = [f"{POSITION}.{part}" for part in members(records, POSITION)]
        return sink.produce(
            records, self._topic, order_by=order, unique_keys=_once(self._topic, publish_range)
        )


class ExactlyOnce:
    """Progress is in Kafka, beside the records it speaks of; the log keeps a copy, for when Kafka forgets.

    The order is: log, control, shards, control, log. So the log never lacks a range that may have been begun.
    """

    def __init__(self, spark: SparkSession, definition: Definition, topic: Topic) -> None:
        sink_options = topic.sink
        assert sink_options.transactional_id_prefix is not None
        self._tasks = sink_options.parallelism or spark.sparkContext.defaultParallelism
        # Where the user has set their number, or a shard's own number decides the partition, it stays what it is.
        self._grows = sink_options.parallelism is None and sink_options.partitioner in TASK_FREE
        self._spark, self._definition, self._topic = spark, definition, topic
        self._prefix = sink_options.transactional_id_prefix
        self._resync = ""
        self._open_range: PublishRange | None = None
        """The range that Kafka has open: its shards may have sent of it."""
        self._cursor_written_at: dict[int, float] = {}
        """When this run wrote a shard's note last, by time.monotonic."""
        self._max_rows = definition.publish.transaction_rows
        self._plan_fingerprint = plan_fingerprint(definition, topic)
        self._log = PublishLog(spark, definition.run.checkpoint, definition.name)
        self._control = Control(topic, self._prefix, definition.name)
        self._stack = ExitStack()

    def shards(self, rows: int) -> int:
        wanted = -(-rows // (self._tasks * _ROWS_PER_SHARD)) if self._grows else 1
        return self._tasks * min(max(wanted, 1), _MAX_SHARDS_PER_TASK)

    @property
    def file_tasks(self) -> int:
        # Files have no order among them, so no key may be in two.
        return self._tasks if self._grows and is_unique(self._topic) else 0

    def __enter__(self) -> ExactlyOnce:
        self._stack.enter_context(self._control)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @cached_property
    def destination(self) -> Destination:
        return Destination(self._definition, self._topic)

    def take_over(self) -> PublishProgress | None:
        noted, logged = self._control.take_over(), self._log.last()
        if noted is None:
            # Before it is asked what Kafka has forgotten: with a topic its notes go, too.
            self.destination.check(logged)
        found = reconcile(noted, logged, self._prefix)
        if found is None:
            return None
        if noted is not None:
            self._open_range = noted.open
        if not found.topics and logged is not None:
            found = replace(found, topics=logged.topics)
        self.destination.check(found)
        if logged is not None and logged.version == found.version:
            found = replace(found, ends=logged.ends)
        if found.open is not None and not found.open.shards:
            found = replace(found, open=replace(found.open, shards=self.shards(0)))
        # In the log, too: what the run before us still writes there meets our entry, and ends it, not us.
        return self.record(found)

    def take_over_for_resync(self) -> PublishProgress | None:
        noted, logged = self._control.take_over(), last_readable_progress(self._log)
        admin_transactions.fence_shards(self._spark, self._topic)
        found = max((p for p in (noted, logged) if p is not None), key=lambda p: p.batch, default=None)
        self.destination.check_resync(found)
        return found

    def record(self, progress: PublishProgress) -> PublishProgress:
        bound = self.destination.with_destination(progress)
        written = replace(bound, batch=bound.batch + 1, run=self._control.run)
        notes: dict[str, str] = {}
        if written.open is not None and written.open != self._open_range:
            written, notes = self._opening(written, written.open)
        else:
            self.destination.check_unchanged()
        if written.open is not None:
            self._log.write(written)
            failpoints.hit("publish.logged")
            self._control.record(written, notes)
        else:
            self._control.record(written)
            written = _with_ends(written, self._topic)
            self._log.write(written)
        self._resync, self._open_range = written.resync, written.open
        return written

    def _opening(
        self, progress: PublishProgress, publish_range: PublishRange
    ) -> tuple[PublishProgress, dict[str, str]]:
        """`progress` with a range of which no shard has sent anything yet, and the notes that say so in Kafka once it
        is recorded with them: from then on a shard without a note has been forgotten."""
        if progress.resync != self._resync:
            self._cursor_written_at.clear()
        now = time.monotonic()
        old = [
            n
            for n in range(publish_range.shards)
            if now - self._cursor_written_at.get(n, -math.inf) > _RECENT_SECONDS
        ]
        self._cursor_written_at.update(dict.fromkeys(old, now))
        publish_range = replace(publish_range, cursors_recorded=True)
        sender = self._sender(publish_range, progress.resync)
        return replace(progress, open=publish_range), sender.initial_offset_metadata(
            self._topic, publish_range, old
        )

    def _sender(self, publish_range: PublishRange, resync: str) -> TransactionalSink:
        return TransactionalSink(
            prefix=self._prefix,
            run=self._control.run,
            max_rows=self._max_rows,
            plan_fingerprint=f"{self._plan_fingerprint}{publish_range.files}",
            resync=resync,
        )

    def send(self, records: DataFrame, publish_range: PublishRange) -> ProduceResult:
        sender = self._sender(publish_range, self._resync)
        if not publish_range.files:
            return produce_once(records, self._topic, publish_range, sender, unique=is_unique(self._topic))
        files = data_files(records)
        if digest(files) != publish_range.files:
            raise GapError(
                f"version {publish_range.last} was being sent file by file, and Spark now plans other files for it (is "
                "this another release of Spark or Delta, or another plug-in?), so it is not known which of its rows "
                f"were sent. Finish it with the former release, or {REPUBLISH}"
            )
        return produce_files(records, self._topic, publish_range, sender, [file.uri for file in files])


def _with_ends(progress: PublishProgress, topic: Topic) -> PublishProgress:
    """The topic's ends, for `verify`: asked for once all up to the version is sent, and kept while more is."""
    if progress.ends is not None or progress.version == NOTHING:
        return progress
    return replace(progress, ends=admin.log_end_offsets(topic))


def _once(topic: Topic, publish_range: PublishRange) -> bool:
    """Whether no key has two records in the range: an upsert topic's, of one version."""
    return is_unique(topic) and publish_range.first == publish_range.last
