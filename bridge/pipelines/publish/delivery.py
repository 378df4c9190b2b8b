"""Sends publish ranges and records progress, at-least-once or exactly-once.

- `AtLeastOnce`: records progress in the publish log after the broker has acknowledged a range
- `ExactlyOnce`: records progress in Kafka, in transactions that fence older runs
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from bridge import failpoints
from bridge.backend import backend_of
from bridge.columns import POSITION
from bridge.definition import Definition
from bridge.delta.data_files import data_files, digest
from bridge.delta.publish_log import PublishLog
from bridge.errors import REPUBLISH, GapError
from bridge.kafka import admin_transactions, sink
from bridge.kafka.control import Control
from bridge.kafka.exactly_once import TransactionalSink, produce_files, produce_once
from bridge.kafka.records import SendCounts
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.range_records import DriverRecords, Records
from bridge.pipelines.publish.sharding import (
    Sharding,
    is_unique,
    is_unique_in_range,
    plan_fingerprint,
    sharding_for,
)
from bridge.publish_progress import PublishProgress, PublishRange


class AtLeastOnce:
    """A Delivery without transactions: after a crash between sending and recording, a range is sent again."""

    def __init__(self, destination: Destination, log: PublishLog) -> None:
        self._destination, self._topic, self._log = destination, destination.topic, log

    def take_over(self) -> PublishProgress | None:
        progress = self._log.last()
        self._destination.check(progress)
        if progress is None or progress.open is None or not progress.open.shards:
            return progress
        # The range was opened with transactions, before the guarantee was changed: it is sent again as a whole.
        open_range = replace(progress.open, shards=0, files="", cursors_recorded=False)
        return replace(progress, open=open_range if open_range.snapshot or open_range.resync else None)

    def take_over_for_resync(self) -> PublishProgress | None:
        progress = _last_readable_progress(self._log)
        self._destination.check_resync(progress)
        return progress

    def record(self, progress: PublishProgress) -> PublishProgress:
        open_range = progress.open
        if open_range is not None and not (open_range.snapshot or open_range.resync):
            return progress  # it would add nothing to `version`
        self._destination.check_unchanged()
        recorded = self._destination.with_destination(replace(progress, batch=progress.batch + 1, run=None))
        recorded = self._destination.with_ends(recorded)
        self._log.write(recorded)
        return recorded

    def send(self, records: Records, publish_range: PublishRange) -> SendCounts:
        unique = is_unique_in_range(self._topic, publish_range)
        return sink.produce(records, self._topic, order_by=[POSITION], unique_keys=unique)

    def send_in_driver(self, records: DriverRecords) -> SendCounts:
        return sink.produce_in_driver(records.rows, self._topic, records.encoder)


_RECENT_SECONDS = 20.0
"""An initial cursor older than this is written again with the next range: far less than Kafka's shortest retention of
offsets, a minute, and far more than a small batch takes."""


class ExactlyOnce:
    """A Delivery in transactions: Kafka holds the progress beside the records, and the publish log has a copy for when
    Kafka has lost it.

    A range is recorded in this order: log, control id, shards, control id, log. So the log never lacks a range of which
    a shard may have sent records.
    """

    def __init__(
        self,
        spark: SparkSession,
        definition: Definition,
        destination: Destination,
        log: PublishLog,
        control: Control,
        sharding: Sharding,
    ) -> None:
        topic = destination.topic
        self._spark, self._destination, self._topic = spark, destination, topic
        self._log, self._control, self._sharding = log, control, sharding
        self._prefix, self._max_rows = control.prefix, definition.publish.transaction_rows
        self._plan_fingerprint = plan_fingerprint(definition, topic)
        self._resync = ""
        self._open_range: PublishRange | None = None
        """The range that is open in Kafka: its shards may have sent records."""
        self._cursor_written_at: dict[int, float] = {}
        """When this run last wrote a shard's initial cursor, by time.monotonic."""

    def take_over(self) -> PublishProgress | None:
        in_kafka, logged = self._control.take_over(), self._log.last()
        if in_kafka is None:
            # Before `reconcile` calls it lost: Kafka's progress is deleted with the topic.
            self._destination.check(logged)
        progress = reconcile(in_kafka, logged, self._prefix)
        if progress is None:
            return None
        if in_kafka is not None:
            self._open_range = in_kafka.open
        if not progress.topics and logged is not None:
            progress = replace(progress, topics=logged.topics)
        self._destination.check(progress)
        if logged is not None and logged.version == progress.version:
            progress = replace(progress, ends=logged.ends)
        # Recorded in the log, too, where it ends an older run that still writes there instead of this one.
        return self.record(progress)

    def take_over_for_resync(self) -> PublishProgress | None:
        in_kafka, logged = self._control.take_over(), _last_readable_progress(self._log)
        admin_transactions.fence_shards(self._spark, self._topic)
        known = (progress for progress in (in_kafka, logged) if progress is not None)
        progress = max(known, key=lambda p: p.batch, default=None)
        self._destination.check_resync(progress)
        return progress

    def record(self, progress: PublishProgress) -> PublishProgress:
        named = self._destination.with_destination(progress)
        recorded = replace(named, batch=named.batch + 1, run=self._control.run)
        cursors: dict[str, str] = {}
        if recorded.open is not None and recorded.open != self._open_range:
            recorded, cursors = self._opening(recorded, recorded.open)
        else:
            self._destination.check_unchanged()
        if recorded.open is not None:
            self._log.write(recorded)
            failpoints.hit("publish.logged")
            self._control.record(recorded, cursors)
        else:
            self._control.record(recorded)
            recorded = self._destination.with_ends(recorded)
            self._log.write(recorded)
        self._resync, self._open_range = recorded.resync, recorded.open
        return recorded

    def send(self, records: Records, publish_range: PublishRange) -> SendCounts:
        sender = self._sender(publish_range, self._resync)
        if not publish_range.files:
            return produce_once(records, self._topic, publish_range, sender, unique=is_unique(self._topic))
        files = data_files(records if isinstance(records, DataFrame) else records.for_tasks()[0])
        if digest(files) != publish_range.files:
            raise GapError(
                f"version {publish_range.last} was being sent file by file, and Spark now plans other files for it (is "
                "this another release of Spark or Delta, or another plug-in?), so it is not known which of its rows "
                f"were sent. Finish it with the former release, or {REPUBLISH}"
            )
        uris = [file.uri for file in files]
        return produce_files(records, self._topic, publish_range, sender, uris)

    @property
    def send_in_driver(self) -> None:
        return None

    def _opening(
        self, progress: PublishProgress, publish_range: PublishRange
    ) -> tuple[PublishProgress, dict[str, str]]:
        """`progress` with a range of which no shard has sent a record, and by consumer group the initial cursors to
        commit with it. From then on a shard without a cursor means that Kafka has lost it."""
        if progress.resync != self._resync:
            self._cursor_written_at.clear()
        # A resync, and a range that at-least-once has opened, have no shards yet.
        shards = publish_range.shards or self._sharding.shards()
        publish_range = replace(publish_range, shards=shards, cursors_recorded=True)
        now = time.monotonic()
        outdated = [
            shard
            for shard in range(shards)
            if now - self._cursor_written_at.get(shard, -math.inf) > _RECENT_SECONDS
        ]
        self._cursor_written_at.update(dict.fromkeys(outdated, now))
        sender = self._sender(publish_range, progress.resync)
        cursors = sender.initial_offset_metadata(self._topic, publish_range, outdated)
        return replace(progress, open=publish_range), cursors

    def _sender(self, publish_range: PublishRange, resync: str) -> TransactionalSink:
        return TransactionalSink(
            prefix=self._prefix,
            run=self._control.run,
            max_rows=self._max_rows,
            plan_fingerprint=f"{self._plan_fingerprint}{publish_range.files}",
            resync=resync,
        )


class Delivery(Protocol):
    """Sends publish ranges and records progress.

    A run takes over once; then it records, sends and records again for each range:

        progress = delivery.take_over()
        progress = delivery.record(progress.opened(publish_range))
        result = delivery.send(records, progress.open)
        progress = delivery.record(progress.closed(lost=result.lost))
    """

    def take_over(self) -> PublishProgress | None:
        """Read the progress of earlier runs; None before the first. An open range must be sent again.

        Raises GapError when progress belongs to another topic or another key, or may be incomplete.
        """
        ...

    def take_over_for_resync(self) -> PublishProgress | None:
        """Read the progress of earlier runs for a resync, which does not need what is unreadable or lost and finishes
        no open range; end the transactions of earlier runs."""
        ...

    def record(self, progress: PublishProgress) -> PublishProgress:
        """Record progress with its key and topics, and return it as recorded; an open range without shards gets them.

        Raises ConcurrentRunError when another run has recorded, GapError when a topic was recreated since this run
        began to send to it.
        """
        ...

    def send(self, records: Records, publish_range: PublishRange) -> SendCounts:
        """Send the records of a range whose opening is recorded; return when the broker has acknowledged all of them.

        Raises ConcurrentRunError when another run took over, KafkaError.
        """
        ...

    @property
    def send_in_driver(self) -> Callable[[DriverRecords], SendCounts] | None:
        """What sends the records of a range from the driver, and raises as `send` does; None with transactions, whose
        shards are tasks."""
        ...


@contextmanager
def delivery_for(spark: SparkSession, definition: Definition, destination: Destination) -> Iterator[Delivery]:
    """The delivery that `sink.delivery-guarantee` names, inside the block."""
    topic = destination.topic
    log = PublishLog.of(spark, definition)
    sharding = sharding_for(topic, backend_of(spark).parallelism)
    if sharding is None:
        yield AtLeastOnce(destination, log)
        return
    prefix = topic.sink.transactional_id_prefix
    assert prefix is not None
    with Control(topic, prefix, definition.name) as control:
        yield ExactlyOnce(spark, definition, destination, log, control, sharding)


def _last_readable_progress(log: PublishLog) -> PublishProgress | None:
    """Read the newest progress of the log for a resync; None where no file of it can be read."""
    try:
        return log.last()
    except GapError:
        return None


def reconcile(
    in_kafka: PublishProgress | None, logged: PublishProgress | None, prefix: str
) -> PublishProgress | None:
    """Choose Kafka's progress, unless the log's is newer.

    The log's is newer when a run died between writing the log and Kafka (nothing of the range is sent), or when an
    at-least-once publish, whose progress names no run, continued in between. A range that is open in Kafka and that the
    log has not passed is finished first, as only its own shards know what they sent. Raises GapError when Kafka has
    lost the progress and the log has a range open, of which shards may have sent a part.
    """
    if in_kafka is None:
        if logged is not None and logged.open is not None and logged.open.shards:
            raise GapError(
                f"Kafka no longer holds the progress of 'sink.transactional-id-prefix' = '{prefix}' (groups forget "
                f"after offsets.retention.minutes), and versions {logged.open.first} to {logged.open.last} were under "
                f"way: what of them was sent is not known; {REPUBLISH}"
            )
        return logged
    if (
        logged is None
        or logged.batch < in_kafka.batch
        or (logged.batch == in_kafka.batch and logged.run is not None)
    ):
        return in_kafka
    open_range = in_kafka.open
    if open_range is None or not open_range.shards or logged.version >= open_range.last:
        return logged
    if open_range.snapshot and logged.open is not None and logged.open.chunk > open_range.chunk:
        return replace(logged, open=replace(logged.open, shards=open_range.shards, files=open_range.files))
    return replace(in_kafka, batch=logged.batch)
