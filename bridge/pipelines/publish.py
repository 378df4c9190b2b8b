"""Delta -feed-> changes -compact-> changes -encode-> records -produce-> topic

What goes out between two writings-down of progress is a stretch: the changes of some versions, or a chunk of a
snapshot. How it is sent, and what a crash in between means, is the outlet's business.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from bridge import failpoints
from bridge.compact import latest_per_version
from bridge.config import refuse_unpublishable
from bridge.definition import Definition
from bridge.delta import feed
from bridge.delta.failures import reading
from bridge.encode import encode
from bridge.kafka import admin, provision
from bridge.metrics import BatchReport, Listener, Summary, ignore
from bridge.pipelines.outlets import Outlet, outlet
from bridge.pipelines.preflight import published_table, refuse_retractions
from bridge.published import NOTHING, PublishProgress, Stretch

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

    The first run begins where `publish.start` says; later runs go on where the last one ended, in the middle of a
    snapshot, too. Every commit gives at most one record per key: its row, or a tombstone; a changed primary key gives
    a tombstone for the old key and a record for the new one. Records of a key keep the order of the table's
    versions. A table without a PRIMARY KEY gives one record per row added, and must not have updates and deletes.

    `sink.delivery-guarantee` at-least-once: after a crash the stretch that was under way is sent again, in the same
    order per key. exactly-once: readers of committed records see every record once; the records of one transaction
    together, and those of a version that changed primary keys in one transaction (as long as it is not larger than
    publish.transaction-rows).

    Raises KafkaError, TableError, GapError before anything is sent; ConcurrentRunError when another run of the
    pipeline took over or wrote its progress in between.
    """
    return _Run(spark, definition, listener, stop or threading.Event()).run()


class _Run:
    outlet: Outlet
    state: PublishProgress

    def __init__(
        self, spark: SparkSession, definition: Definition, listener: Listener, stop: threading.Event
    ) -> None:
        self.spark, self.definition, self.listener, self.stop = spark, definition, listener, stop
        self.summary = Summary(definition.name, "publish")
        refuse_unpublishable(definition.topic)
        self.topic = admin.resolve(definition.topic)
        self.table = published_table(spark, definition)
        warnings = provision.prepare(self.topic)
        self.summary = replace(self.summary, warning="; ".join(warnings) or None)

    def run(self) -> Summary:
        started = time.monotonic()
        interval = self.definition.run.trigger_seconds
        with outlet(self.spark, self.definition, self.topic) as self.outlet:
            self._begin()
            while not self.stop.is_set():
                turn = time.monotonic()
                self._finish_open()
                self._catch_up()
                if interval is None:
                    break
                self.stop.wait(max(_POLL_SECONDS, interval - (time.monotonic() - turn)))
        return replace(self.summary, seconds=time.monotonic() - started)

    def _begin(self) -> None:
        """Go on where the last run ended, or take the start position; a snapshot sends every present row as +I."""
        found = self.outlet.take_over()
        if found is not None:
            feed.check_same(self.table, found.table_id)
            self.state = found
            return
        start, latest = self.definition.publish.start, feed.latest_version(self.table)
        self.state = PublishProgress(self.definition.name, self.table.id, NOTHING, batch=-1)
        if start.mode == "snapshot":
            chunks = feed.chunks(self.table, latest, self.definition.publish.snapshot_chunk_rows)
            self._open(Stretch(latest, latest, snapshot=True, chunks=chunks, slots=self.outlet.slots))
            return
        if start.mode == "version":
            latest = int(start.value or 0) - 1
        elif start.mode == "timestamp":
            latest = feed.version_at(self.table, start.value or "") - 1
        self.state = self.outlet.record(replace(self.state, version=latest))

    def _catch_up(self) -> None:
        latest = feed.latest_version(self.table)
        if latest == self.state.version or self.stop.is_set():
            return
        first = self.state.version + 1
        feed.check_feed(self.table, first, max(first, latest), self.state.table_id)
        for stretch in self._stretches(first, latest):
            if not self.stop.is_set():
                self._open(stretch)
                self._finish_open()

    def _stretches(self, first: int, last: int) -> list[Stretch]:
        """One for all of them. In transactions, a version that changes primary keys is a stretch of its own with a
        single slot: the old key's tombstone and the new key's record belong into one transaction."""
        slots, key = self.outlet.slots, self.definition.primary_key
        moves = []
        if slots > 1 and key:
            moves = feed.key_moves(self.table, feed.updated_by_others(self.table, first, last), key)
        found = []
        for version in moves:
            if first < version:
                found.append(Stretch(first, version - 1, slots=slots))
            found.append(Stretch(version, version, slots=1))
            first = version + 1
        if first <= last:
            found.append(Stretch(first, last, slots=slots))
        return found

    def _open(self, stretch: Stretch) -> None:
        self.state = self.outlet.record(self.state.opened(stretch))
        failpoints.hit("publish.opened")

    def _finish_open(self) -> None:
        """Send the open stretch, and what it goes on with: the next chunks of a snapshot."""
        while self.state.open is not None and not self.stop.is_set():
            self._send(self.state.open)

    def _send(self, stretch: Stretch) -> None:
        started = time.monotonic()
        with reading(self.table, stretch.first, stretch.last):
            sent = self.outlet.send(encode(self._changes(stretch), self.topic), stretch)
        failpoints.hit("publish.sent")
        self.state = self.outlet.record(self.state.closed())
        report = BatchReport(
            pipeline=self.definition.name,
            verb="publish",
            batch=self.state.batch,
            version=stretch.last,
            records_out=sent.records,
            tombstones=sent.tombstones,
            pending_records=feed.latest_version(self.table) - stretch.last,
            warning=None if self.summary.batches else self.summary.warning,
            seconds=time.monotonic() - started,
        )
        self.summary = self.summary.plus(report)
        self.listener(report)

    def _changes(self, stretch: Stretch) -> DataFrame:
        key = self.definition.primary_key
        if stretch.snapshot:
            rows = feed.snapshot(self.table, stretch.last)
            return feed.chunk(self.table, rows, key, stretch.chunk, stretch.chunks)
        changes = feed.changes(self.table, stretch.first, stretch.last)
        if self.topic.appends:
            refuse_retractions(changes, self.table)
            return changes
        return latest_per_version(changes, key, across_versions=False)
