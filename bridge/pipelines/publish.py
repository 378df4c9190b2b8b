"""Delta -feed-> changes -compact-> changes -encode-> records -produce-> topic

At-least-once: the records of a range of table versions are acknowledged by Kafka before the range is written
down as done, so a crash in between sends them again, in the same order per key.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from bridge.columns import POSITION
from bridge.compact import latest_per_version
from bridge.config import refuse_unpublishable
from bridge.definition import Definition
from bridge.delta import feed
from bridge.delta.failures import reading
from bridge.delta.publish_log import PublishLog, PublishProgress
from bridge.encode import encode
from bridge.kafka import admin, provision, sink
from bridge.metrics import BatchReport, Listener, Summary, ignore
from bridge.pipelines.preflight import published_table, refuse_retractions

__all__ = ["publish"]

_POLL_SECONDS = 0.1


def publish(
    spark: SparkSession,
    definition: Definition,
    *,
    listener: Listener = ignore,
    stop: threading.Event | None = None,
) -> Summary:
    """Send the table's changes to the topic (or topics) until there are no more (available-now) or `stop` is set.

    The first run begins where `publish.start` says; later runs go on where the last one ended. Every commit
    gives at most one record per key: its row, or a tombstone; a changed primary key gives a tombstone for the
    old key and a record for the new one. Records of a key keep the order of the table's versions. A table without a
    PRIMARY KEY gives one record per row added, and must not have updates and deletes.

    Raises KafkaError, TableError, GapError before anything is sent; ConcurrentRunError when another run of the
    pipeline wrote its progress in between.
    """
    return _Run(spark, definition, listener, stop or threading.Event()).run()


class _Run:
    def __init__(
        self, spark: SparkSession, definition: Definition, listener: Listener, stop: threading.Event
    ) -> None:
        self.spark, self.definition, self.listener, self.stop = spark, definition, listener, stop
        self.summary = Summary(definition.name, "publish")
        refuse_unpublishable(definition.topic)
        self.table = published_table(spark, definition)
        warnings = provision.prepare(admin.resolve(definition.topic))
        self.summary = replace(self.summary, warning="; ".join(warnings) or None)
        self.log = PublishLog(spark, definition.run.checkpoint, definition.name)
        self.done = self.log.last()
        if self.done is not None:
            feed.check_same(self.table, self.done.table_id)

    def run(self) -> Summary:
        started = time.monotonic()
        if self.done is None:
            self._begin()
        interval = self.definition.run.trigger_seconds
        while not self.stop.is_set():
            turn = time.monotonic()
            self._catch_up()
            if interval is None:
                break
            self.stop.wait(max(_POLL_SECONDS, interval - (time.monotonic() - turn)))
        return replace(self.summary, seconds=time.monotonic() - started)

    def _begin(self) -> None:
        """Take the start position; a snapshot sends every present row as +I."""
        start, latest = self.definition.publish.start, feed.latest_version(self.table)
        if start.mode == "snapshot":
            with reading(self.table, latest, latest):
                self._send(feed.snapshot(self.table, latest), latest)
        elif start.mode == "latest":
            self._record(latest)
        elif start.mode == "version":
            self._record(int(start.value or 0) - 1)
        else:
            self._record(feed.version_at(self.table, start.value or "") - 1)

    def _catch_up(self) -> None:
        done, latest = self._done(), feed.latest_version(self.table)
        if latest == done.version:
            return
        first = done.version + 1
        feed.check_feed(self.table, first, max(first, latest), done.table_id)
        with reading(self.table, first, latest):
            self._send(feed.changes(self.table, first, latest), latest)

    def _send(self, changes: DataFrame, version: int) -> None:
        started = time.monotonic()
        topic = self.definition.topic
        if topic.appends:
            refuse_retractions(changes, self.table)
        else:
            changes = latest_per_version(changes, self.definition.primary_key, across_versions=False)
        sent = sink.produce(encode(changes, topic), topic, order_by=[f"{POSITION}.version"])
        self._record(version)
        report = BatchReport(
            pipeline=self.definition.name,
            verb="publish",
            batch=self._done().batch,
            version=version,
            records_out=sent.records,
            tombstones=sent.tombstones,
            pending_records=feed.latest_version(self.table) - version,
            warning=None if self.summary.batches else self.summary.warning,
            seconds=time.monotonic() - started,
        )
        self.summary = self.summary.plus(report)
        self.listener(report)

    def _record(self, version: int) -> None:
        batch = 0 if self.done is None else self.done.batch + 1
        self.done = PublishProgress(self.definition.name, self.table.id, version, batch)
        self.log.write(self.done)

    def _done(self) -> PublishProgress:
        assert self.done is not None
        return self.done
