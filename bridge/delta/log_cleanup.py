"""Checkpoints of a table's log and its clean-up, between commits of delta-rs.

Spark does both as part of its own commits. delta-rs would make a checkpoint where Spark does not (after 100 commits,
not 10, where the table says nothing), clean without asking `delta.enableExpiredLogCleanup`, and knows no publish.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bridge.delta.feed_consumers import FeedConsumers
from bridge.delta.log_layout import checksum_version, commit_file, log_folder, version_of
from bridge.delta.optimize_vacuum import LOG_RETENTION, interval_seconds
from bridge.delta.table import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["NO_HOOKS", "after_commit", "clean_log"]

_log = logging.getLogger("bridge.delta")

NO_HOOKS = {"create_checkpoint": False, "cleanup_expired_logs": False}
"""What delta-rs is told of its own ways."""

_INTERVAL, _EVERY = "delta.checkpointInterval", 10
_CLEANS = "delta.enableExpiredLogCleanup"


def after_commit(target: DeltaTable, table: Table, version: int) -> None:
    """After the commit of `version`: every `delta.checkpointInterval` versions a checkpoint, and the log is cleaned
    as `tidy` says. It raises nothing: the commit stands. What failed is a warning of the logger `bridge.delta`
    and tried again at the next such version."""
    properties = target.metadata().configuration
    if not _is_due(properties, version):
        return
    try:
        target.update_incremental()
        clean_log(target, lambda: [c.version for c in FeedConsumers(table).all()])
    except Exception as failed:  # delta-rs, the store, a notice half written: none of it is about this batch
        _log.warning(
            "%s: the log got no checkpoint at version %d, or no clean-up after it: %s: %s. Tried again in %s commits",
            table,
            version,
            type(failed).__name__,
            failed,
            properties.get(_INTERVAL) or _EVERY,
        )


def clean_log(target: DeltaTable, published: Callable[[], Iterable[int]]) -> None:
    """Make a checkpoint of the newest version, then delete log files that are older than `delta.logRetentionDuration`
    and that no version since then needs, unless `delta.enableExpiredLogCleanup` is false.

    `published` gives the versions that the registered publishes have reached. Nothing is deleted as long as what one of
    them needs next would be among it. One whose next version has gone already holds nothing back.
    """
    target.create_checkpoint()
    properties = target.metadata().configuration
    if str(properties.get(_CLEANS, "true")).lower() != "true":
        return
    log = log_folder(unquote(urlsplit(target.table_uri).path))
    expired = time.time() - interval_seconds(properties, LOG_RETENTION)
    newest = target.version()
    if any(_waits(log, version, newest, expired) for version in published()):
        return
    target.cleanup_metadata()
    _drop_checksums(log)


def _is_due(properties: Mapping[str, str | None], version: int) -> bool:
    every = int(properties.get(_INTERVAL) or _EVERY)
    return version > 0 and version % every == 0


def _waits(log: str, version: int, newest: int, expired: float) -> bool:
    """Whether a publish at `version` needs a commit of before `expired`: its own, for the rows, and the next."""
    own, following = (_written(log, v) for v in (max(version, 0), version + 1))
    return version < newest and following is not None and (own or following) <= expired


def _written(log: str, version: int) -> float | None:
    """When; None for a commit that is not there."""
    try:
        return os.stat(os.path.join(log, commit_file(version))).st_mtime
    except FileNotFoundError:
        return None


def _drop_checksums(log: str) -> None:
    """Delete the checksums of versions before the oldest one in the log; delta-rs leaves Spark's checksums behind."""
    names = os.listdir(log)
    oldest = min((version for name in names if (version := version_of(name)) is not None), default=0)
    for name in names:
        version = checksum_version(name)
        if version is not None and version < oldest:
            os.unlink(os.path.join(log, name))
