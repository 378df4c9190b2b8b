"""Writes what a check leaves, its report or a first suite, on the driver's disk or on an object store."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.backend import ENGINE_ERRORS, backend_of
from bridge.config.paths import is_uri
from bridge.delta.delta_errors import error_names
from bridge.errors import BridgeError
from bridge.quality.report import write
from bridge.small_files import TextFile

__all__ = ["write_file", "write_report_file"]


def write_report_file(spark: SparkSession, text: str, place: str) -> None:
    """Write the report to a path of the driver's disk or to a URI. As `write_file`."""
    write_file(spark, text, place, "the quality report")


def write_file(spark: SparkSession, text: str, place: str, what: str) -> None:
    """Write a file to a path of the driver's disk or to a URI, by Hadoop's client.

    A reader sees the old file or the complete new one (in HDFS perhaps a part of it). Raises BridgeError, which calls
    the file `what`, when it cannot be written; it has the classes of the store's exceptions, not their texts.
    """
    if not is_uri(place):
        write(text, place, what)
        return
    try:
        local = backend_of(spark).files.local_path(place)
        if local is None:
            TextFile(spark, place).write(text)
    except ENGINE_ERRORS as failed:
        names = ", ".join(sorted(error_names(failed)))
        raise BridgeError(f"{place}: {what} cannot be written: {names}") from failed
    if local is not None:
        write(text, local, what)
