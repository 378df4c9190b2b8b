"""Writes checkpoints of a table's log and deletes expired log files after commits of the bridge's own.

Spark does both as part of its own commits. delta-rs does the work here, when Spark would: its own hooks ignore
`delta.enableExpiredLogCleanup`, and know no feed consumers.

A checkpoint names the files that were removed in the last week, too, and to look for expired files takes a list of the
log. So both come more rarely as a table grows old: what they cost a batch does not grow (docs/adr/050).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from bridge.delta.feed_consumers import FeedConsumers
from bridge.delta.optimize_vacuum import LOG_RETENTION, interval_seconds
from bridge.delta.table import Table
from bridge.lake.snapshot import last_checkpoint
from bridge.lake.store import Store
from bridge.log_layout import LOG_FOLDER, checksum_version, commit_path, version_of
from bridge.storage import opened_store

if TYPE_CHECKING:
    from deltalake import DeltaTable


_log = logging.getLogger("bridge.delta")

_INTERVAL, _DEFAULT_INTERVAL = "delta.checkpointInterval", 10
_CLEANUP_ENABLED = "delta.enableExpiredLogCleanup"
_ACTIONS_A_COMMIT = 1_000
"""A commit is replayed in the time that it takes to read, and to write, so many actions of a checkpoint."""
_CLEANUPS = 100
"""In a retention: a log is longer than that by no more than a hundredth."""
_cleaned: dict[str, float] = {}
"""When this process has cleaned the log of a table last, by its address; as time.monotonic()."""


def published_versions(table: Table) -> list[int]:
    """The versions that the feed consumers of the table have reached."""
    return [consumer.version for consumer in FeedConsumers(table).all()]


def checkpoint_if_due(
    properties: Mapping[str, str | None],
    table: Table,
    version: int,
    store: Store,
    open_newest: Callable[[], DeltaTable],
    published: Callable[[Table], Iterable[int]] = published_versions,
) -> None:
    """Write a checkpoint and call `clean_log` after every `delta.checkpointInterval` versions. Where the table does not
    set it, that is 10 versions, or more after a checkpoint of more than 10,000 actions.

    Raises nothing, as the commit of `version` is done: a failure is logged as a warning of `bridge.delta`, and the next
    such version tries again."""
    try:
        if not _is_due(properties, version, store):
            return
        clean_log(open_newest(), lambda: published(table))
    except Exception as failed:  # of delta-rs, the storage, a feed consumer's file: the batch is committed
        _log.warning(
            "%s: writing a checkpoint of version %d, or deleting expired log files after it, failed: %s: %s. The next "
            "attempt follows in %s commits",
            table,
            version,
            type(failed).__name__,
            failed,
            properties.get(_INTERVAL) or _DEFAULT_INTERVAL,
        )


def clean_log(target: DeltaTable, published: Callable[[], Iterable[int]]) -> None:
    """Write a checkpoint of the newest version, then delete log files that are older than `delta.logRetentionDuration`
    and that no version since then needs, unless `delta.enableExpiredLogCleanup` is false.

    `published` returns the versions that feed consumers have reached. Nothing is deleted while a consumer still needs a
    log file that would be deleted. A consumer whose next version is already gone does not count. A process looks for
    files to delete a hundred times in a retention.
    """
    target.create_checkpoint()
    properties, now = target.metadata().configuration, time.monotonic()
    if str(properties.get(_CLEANUP_ENABLED, "true")).lower() != "true":
        return
    pause = interval_seconds(properties, LOG_RETENTION) / _CLEANUPS
    if now - _cleaned.get(target.table_uri, float("-inf")) < pause:
        return
    store = opened_store(target)
    expired = time.time() - interval_seconds(properties, LOG_RETENTION)
    newest = target.version()
    if any(_needs_expired(store, version, newest, expired) for version in published()):
        return
    target.cleanup_metadata()
    _delete_checksums(store)
    _cleaned[target.table_uri] = now


def _is_due(properties: Mapping[str, str | None], version: int, store: Store) -> bool:
    given = properties.get(_INTERVAL)
    if version <= 0 or version % int(given or _DEFAULT_INTERVAL):
        return False
    if given:
        return True
    last, actions = last_checkpoint(store)
    return not last <= version < last + actions // _ACTIONS_A_COMMIT


def _needs_expired(store: Store, version: int, newest: int, expired: float) -> bool:
    """Whether a consumer at `version` needs a commit older than `expired`: that of its version, for the rows of a
    snapshot, or the next one."""
    own, following = (store.head(commit_path(v)) for v in (max(version, 0), version + 1))
    return version < newest and following is not None and (own or following).modified <= expired


def _delete_checksums(store: Store) -> None:
    """Delete the checksums of versions before the oldest one in the log; delta-rs leaves Spark's checksums behind."""
    names = store.names(LOG_FOLDER)
    oldest = min((version for name in names if (version := version_of(name)) is not None), default=0)
    for name in names:
        version = checksum_version(name)
        if version is not None and version < oldest:
            store.delete(f"{LOG_FOLDER}/{name}")
