"""At-least-once delivery: progress is recorded in the publish log after the broker has acknowledged a range."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from bridge.arrow_formats.record_encoder import RecordEncoder
from bridge.columns import POSITION, members
from bridge.definition import Topic
from bridge.delta.publish_log import PublishLog
from bridge.kafka import sink
from bridge.kafka.sink import ProduceResult
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.plan_fingerprint import is_unique
from bridge.pipelines.publish.take_over import last_readable_progress
from bridge.publish_progress import PublishProgress, PublishRange

__all__ = ["AtLeastOnce", "is_unique_in_range"]


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

    def send(
        self,
        records: DataFrame | pa.Table,
        publish_range: PublishRange,
        encoder: RecordEncoder | None = None,
    ) -> ProduceResult:
        if isinstance(records, pa.Table):
            assert encoder is not None
            return sink.produce_in_driver(records, self._topic, encoder)
        # By the fields of the position: Spark's sort has no binary prefix to compare structs by.
        order = [f"{POSITION}.{part}" for part in members(records, POSITION)]
        unique = is_unique_in_range(self._topic, publish_range)
        return sink.produce(records, self._topic, order_by=order, unique_keys=unique, encoder=encoder)


def is_unique_in_range(topic: Topic, publish_range: PublishRange) -> bool:
    """Whether no key has two records in the range: a range of one version, to an upsert topic."""
    return is_unique(topic) and publish_range.first == publish_range.last
