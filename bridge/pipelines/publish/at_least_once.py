"""At-least-once delivery: progress is recorded in the publish log after the broker has acknowledged a range."""

from __future__ import annotations

from dataclasses import replace

from bridge.columns import POSITION
from bridge.delta.publish_log import PublishLog
from bridge.kafka import sink
from bridge.kafka.sink import ProduceResult
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.plan_fingerprint import is_unique_in_range
from bridge.pipelines.publish.range_records import DriverRecords, Records
from bridge.pipelines.publish.take_over import last_readable_progress
from bridge.publish_progress import PublishProgress, PublishRange

__all__ = ["AtLeastOnce"]


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
        progress = last_readable_progress(self._log)
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

    def send(self, records: Records, publish_range: PublishRange) -> ProduceResult:
        unique = is_unique_in_range(self._topic, publish_range)
        return sink.produce(records, self._topic, order_by=[POSITION], unique_keys=unique)

    def send_in_driver(self, records: DriverRecords) -> ProduceResult:
        return sink.produce_in_driver(records.rows, self._topic, records.encoder)
