"""Whose word holds when a publish takes over: Kafka's, or the log's."""

from __future__ import annotations

from dataclasses import replace

from bridge.delta.publish_log import PublishLog
from bridge.errors import REPUBLISH, GapError
from bridge.publish_progress import PublishProgress

__all__ = ["last_readable_progress", "reconcile"]


def last_readable_progress(log: PublishLog) -> PublishProgress | None:
    """The newest progress; None where none of it can be read, which a resync does without."""
    try:
        return log.last()
    except GapError:
        return None


def reconcile(
    noted: PublishProgress | None, logged: PublishProgress | None, prefix: str
) -> PublishProgress | None:
    """What holds: Kafka's own word, unless the log is further.

    The log is further when a run died after its first word (the range has not begun), or when at-least-once, which
    signs with no run, went on in between. A range that Kafka has open and the log has not passed is finished first,
    as only its own shards know what is sent. Raises GapError when Kafka has forgotten, and the log shows a range that
    may be half sent.
    """
    if noted is None:
        if logged is not None and logged.open is not None and logged.open.shards:
            raise GapError(
                f"Kafka no longer holds the progress of 'sink.transactional-id-prefix' = '{prefix}' (groups forget "
                f"after offsets.retention.minutes), and versions {logged.open.first} to {logged.open.last} were under "
                f"way: what of them was sent is not known; {REPUBLISH}"
            )
        return logged
    if (
        logged is None
        or logged.batch < noted.batch
        or (logged.batch == noted.batch and logged.run is not None)
    ):
        return noted
    begun = noted.open
    if begun is None or not begun.shards or logged.version >= begun.last:
        return logged
    if begun.snapshot and logged.open is not None and logged.open.chunk > begun.chunk:
        return replace(logged, open=replace(logged.open, shards=begun.shards, files=begun.files))
    return replace(noted, batch=logged.batch)
