"""The publish log: the progress of a publish in numbered texts of its state, each written once.

It is the only progress of an at-least-once publish. An exactly-once publish has its progress in Kafka, and the log is a
copy for when Kafka has lost it (`offsets.retention.minutes`).
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.bridge_folders import PUBLISH_LOG, is_scratch, publish_log_batch, publish_log_file
from bridge.definition import Definition
from bridge.delta.state_choice import state_of
from bridge.delta.state_store import Medium, StateStore
from bridge.errors import ConcurrentRunError
from bridge.publish_progress import PublishProgress, logged_progress, newest_progress

KEPT = 20
MORE_IN_A_TABLE = 50
"""Kept beside those, as a deletion there is a commit."""


class PublishLog:
    """The log of one pipeline in `<state>/publish`; text N has the progress after batch N."""

    def __init__(self, state: StateStore, pipeline: str) -> None:
        self._pipeline, self._state, self._place = pipeline, state, state.place(PUBLISH_LOG)
        self._most = KEPT + (MORE_IN_A_TABLE if state.medium is Medium.TABLE else 0)
        self._batches: list[int] | None = None
        """Of the texts that are there; not known before the first is written."""

    @classmethod
    def of(cls, spark: SparkSession, definition: Definition) -> PublishLog:
        """The log of a pipeline, where its definition says that its state is."""
        return cls(state_of(spark, definition), definition.name)

    def last(self) -> PublishProgress | None:
        """Do as `newest_progress` does. The batch of a text that cannot be read is sent again."""
        names = self._state.names(PUBLISH_LOG)
        return newest_progress(self._place, names, lambda name: self._read(name) or "", self._pipeline)

    def write(self, progress: PublishProgress) -> None:
        """Record progress as the text of its batch, atomically, and delete all but the last 20; in a table, all but the
        last 20 to 70.

        Raises ConcurrentRunError when that batch is already recorded: another run is publishing.
        """
        name, text = self._name(progress.batch), progress.to_json()
        if not self._state.put_if_absent(name, text):
            if logged_progress(self._place, self._state.read(name) or "") is not None:
                raise ConcurrentRunError(
                    f"batch {progress.batch} of pipeline {self._pipeline!r} is recorded in {self._place} by another "
                    "run; stop one of the two, then start again: it continues where the other ended"
                )
            self._state.delete(name)
            if not self._state.put_if_absent(name, text):
                raise ConcurrentRunError(f"another run writes to {self._place}; stop one of the two")
        if self._batches is None:
            names = self._state.names(PUBLISH_LOG)
            self._batches = sorted(batch for batch in map(publish_log_batch, names) if batch is not None)
            # Of runs that were killed while they wrote: this one is the only one that may write now.
            self._state.delete(*(f"{PUBLISH_LOG}/{name}" for name in names if is_scratch(name)))
        elif progress.batch not in self._batches:
            self._batches.append(progress.batch)
        if len(self._batches) > self._most:
            self._state.delete(*map(self._name, self._batches[:-KEPT]))
            del self._batches[:-KEPT]

    def _read(self, name: str) -> str | None:
        return self._state.read(f"{PUBLISH_LOG}/{name}")

    @staticmethod
    def _name(batch: int) -> str:
        return f"{PUBLISH_LOG}/{publish_log_file(batch)}"
