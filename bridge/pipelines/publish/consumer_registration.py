"""Registers a publish as a feed consumer of its table, and warns when the table's log may soon lack what it needs."""

from __future__ import annotations

import time

from bridge.definition import Definition
from bridge.delta.delta_errors import error_names
from bridge.delta.feed_consumers import FeedConsumers
from bridge.delta.table import Table
from bridge.log_layout import commit_file, log_folder
from bridge.pipelines.runtime.retention_warnings import log_retention_warning
from bridge.publish_progress import PublishProgress
from bridge.small_files import SmallFiles

_LAG_CHECK_SECONDS = 60.0


class ConsumerRegistration:
    """The registration by one run. Where it cannot be written, the run continues and warns once of what that means."""

    def __init__(self, definition: Definition, table: Table) -> None:
        self._definition, self._table = definition, table
        self._consumers = FeedConsumers(table)
        self._failed = False
        self._lag_checked_at = float("-inf")

    def update(self, progress: PublishProgress) -> str | None:
        """Register what the publish still needs: every version after `progress.version`, and the files of a snapshot
        while it is sent. Return a warning at the first failure, else None.

        The registration is never ahead of the recorded progress.
        """
        if self._failed:
            return None
        open_range = progress.open
        version = open_range.last if open_range is not None and open_range.snapshot else progress.version
        try:
            self._consumers.register(self._definition.name, version, self._definition.run.checkpoint)
        except Exception as failed:
            self._failed = True
            reasons = ", ".join(sorted(error_names(failed))) or type(failed).__name__
            return (
                f"{self._consumers.folder} cannot be written ({reasons}), so `bridge maintain` does not know of this "
                "publish, and VACUUM may delete files it still needs. Let this login write there, or keep "
                "delta.deletedFileRetentionDuration longer than this publish may ever be behind"
            )
        return None

    def lag_warning(self, progress: PublishProgress) -> str | None:
        """Once a minute, warn when the age of the next version to publish nears delta.logRetentionDuration."""
        if time.monotonic() - self._lag_checked_at < _LAG_CHECK_SECONDS:
            return None
        self._lag_checked_at = time.monotonic()
        log = log_folder(self._consumers.table_folder)
        try:
            # Delta cleans its log by this time; DESCRIBE HISTORY would need a Spark job.
            written = SmallFiles(self._table.spark, log).modified_ms(commit_file(progress.version + 1))
        except Exception:  # a store that cannot be read by path: no warning
            return None
        if written is None:
            return None
        name = f"publish {self._definition.name!r}"
        return log_retention_warning(self._table, name, time.time_ns() / 1e9 - written / 1000)
