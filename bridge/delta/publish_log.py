"""The publish log: the progress of a publish in small numbered files under the checkpoint, each written once.

It is the only progress of an at-least-once publish. An exactly-once publish has its progress in Kafka, and the log is a
copy for when Kafka has lost it (`offsets.retention.minutes`).
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.bridge_folders import publish_log_batch, publish_log_file, publish_log_folder
from bridge.errors import ConcurrentRunError
from bridge.publish_progress import PublishProgress, logged_progress, newest_progress
from bridge.small_files import SmallFiles

_MAX_FILES = 20


class PublishLog:
    """The files of one pipeline in `<checkpoint>/publish`; file N has the progress after batch N."""

    def __init__(self, spark: SparkSession, checkpoint: str, pipeline: str) -> None:
        self._pipeline, self._folder = pipeline, publish_log_folder(checkpoint)
        self._files = SmallFiles(spark, self._folder)
        self._batches: list[int] | None = None
        """Of the files that are there; not known before the first is written."""

    def last(self) -> PublishProgress | None:
        """Do as `newest_progress` does. The batch of a file that cannot be read is sent again."""
        return newest_progress(self._folder, self._files.names(), self._files.read, self._pipeline)

    def write(self, progress: PublishProgress) -> None:
        """Record progress as the file of its batch, atomically, and delete all but the last 20 files.

        Raises ConcurrentRunError when that batch is already recorded: another run is publishing.
        """
        name, text = publish_log_file(progress.batch), progress.to_json()
        if not self._files.put_if_absent(name, text):
            if logged_progress(self._folder, self._files.read(name)) is not None:
                raise ConcurrentRunError(
                    f"batch {progress.batch} of pipeline {self._pipeline!r} is recorded in {self._folder} by another "
                    "run; stop one of the two, then start again: it continues where the other ended"
                )
            self._files.delete(name)
            if not self._files.put_if_absent(name, text):
                raise ConcurrentRunError(f"another run writes to {self._folder}; stop one of the two")
        if self._batches is None:
            listed = map(publish_log_batch, self._files.names())
            self._batches = sorted(batch for batch in listed if batch is not None)
        elif progress.batch not in self._batches:
            self._batches.append(progress.batch)
        while len(self._batches) > _MAX_FILES:
            self._files.delete(publish_log_file(self._batches[0]))
            del self._batches[0]
