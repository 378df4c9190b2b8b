"""The publish log: the progress of a publish in small numbered files under the checkpoint, each written once.

It is the only progress of an at-least-once publish. An exactly-once publish has its progress in Kafka, and the log is a
copy for when Kafka has lost it (`offsets.retention.minutes`).
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge import storage
from bridge.bridge_folders import publish_log_batch, publish_log_file, publish_log_folder
from bridge.delta.write_once import write_once
from bridge.errors import ConcurrentRunError
from bridge.publish_progress import PublishProgress, logged_progress, newest_progress

__all__ = ["PublishLog"]

_MAX_FILES = 20


class PublishLog:
    """The files of one pipeline in `<checkpoint>/publish`; file N has the progress after batch N."""

    def __init__(self, spark: SparkSession, checkpoint: str, pipeline: str) -> None:
        self._spark, self._pipeline = spark, pipeline
        self._folder = publish_log_folder(checkpoint)

    def last(self) -> PublishProgress | None:
        """Do as `newest_progress` does. The batch of a file that cannot be read is sent again."""
        names = storage.list_names(self._spark, self._folder)
        return newest_progress(self._folder, names, self._text, self._pipeline)

    def write(self, progress: PublishProgress) -> None:
        """Record progress as the file of its batch, atomically, and delete all but the last 20 files.

        Raises ConcurrentRunError when that batch is already recorded: another run is publishing.
        """
        path = self._file(progress.batch)
        text = progress.to_json()
        if not write_once(self._spark, path, text):
            if logged_progress(self._folder, self._text(publish_log_file(progress.batch))) is not None:
                raise ConcurrentRunError(
                    f"batch {progress.batch} of pipeline {self._pipeline!r} is recorded in {self._folder} by another "
                    "run; stop one of the two, then start again: it continues where the other ended"
                )
            storage.delete_file(self._spark, path)
            if not write_once(self._spark, path, text):
                raise ConcurrentRunError(f"another run writes to {self._folder}; stop one of the two")
        for number in self._numbers()[:-_MAX_FILES]:
            storage.delete_file(self._spark, self._file(number))

    def _numbers(self) -> list[int]:
        batches = map(publish_log_batch, storage.list_names(self._spark, self._folder))
        return sorted(batch for batch in batches if batch is not None)

    def _text(self, name: str) -> str:
        return storage.read_text(self._spark, f"{self._folder}/{name}")

    def _file(self, number: int) -> str:
        return f"{self._folder}/{publish_log_file(number)}"
