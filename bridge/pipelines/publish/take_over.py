"""Which progress holds when an exactly-once publish takes over: Kafka's, or the publish log's."""

from __future__ import annotations

from dataclasses import replace

from bridge.delta.publish_log import PublishLog
from bridge.errors import REPUBLISH, GapError
from bridge.publish_progress import PublishProgress


def last_readable_progress(log: PublishLog) -> PublishProgress | None:
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
