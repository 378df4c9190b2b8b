"""A publish makes itself known at its table, and keeps an eye on how long the table's log still holds what it needs."""

from __future__ import annotations

import time

from bridge import storage
from bridge.definition import Definition
from bridge.delta.delta_errors import error_names
from bridge.delta.feed_consumers import FeedConsumers
from bridge.delta.log_layout import commit_file, log_folder
from bridge.delta.table import Table
from bridge.pipelines.runtime.retention_warnings import log_retention_warning
from bridge.publish_progress import PublishProgress

__all__ = ["ConsumerRegistration"]

_EVERY_SECONDS = 60.0


class ConsumerRegistration:
    """The notice of one run. Where it cannot be written the run goes on, and says once what that means."""

    def __init__(self, definition: Definition, table: Table) -> None:
        self._definition, self._table = definition, table
        self._consumers = FeedConsumers(table)
        self._refused = False
        self._last_look = float("-inf")

    def update(self, state: PublishProgress) -> str | None:
        """Write down what is still needed: everything after `state.version`, and while a snapshot is sent its rows.

        The notice is behind the progress or level with it, never ahead. At the first refusal a warning, else None.
        """
        if self._refused:
            return None
        snapshot = state.open is not None and state.open.snapshot
        version = state.open.last if state.open is not None and snapshot else state.version
        try:
            self._consumers.register(self._definition.name, version, self._definition.run.checkpoint)
        except Exception as failed:
            self._refused = True
            reasons = ", ".join(sorted(error_names(failed))) or type(failed).__name__
            return (
                f"{self._consumers.folder} cannot be written ({reasons}), so `bridge maintain` does not know of this "
                "publish, and VACUUM may delete files it still needs. Let this login write there, or keep "
                "delta.deletedFileRetentionDuration longer than this publish may ever be behind"
            )
        return None

    def lag_warning(self, state: PublishProgress) -> str | None:
        """Once a minute: a warning when the age of the next version to publish nears delta.logRetentionDuration."""
        if time.monotonic() - self._last_look < _EVERY_SECONDS:
            return None
        self._last_look = time.monotonic()
        log = log_folder(self._consumers.table_folder)
        try:
            # The time by which Delta cleans its log; DESCRIBE HISTORY would cost a job.
            written = storage.modified_ms(self._table.spark, f"{log}/{commit_file(state.version + 1)}")
        except Exception:  # a store that is not to be read by path: no news
            return None
        if written is None:
            return None
        name = f"publish {self._definition.name!r}"
        return log_retention_warning(self._table, name, time.time_ns() / 1e9 - written / 1000)
