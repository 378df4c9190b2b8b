"""The suite of a check: a file on the driver's disk, or one on an object store, which Hadoop's client reads."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from bridge.backend import ENGINE_ERRORS
from bridge.config.paths import is_uri
from bridge.delta.delta_errors import error_names
from bridge.errors import DefinitionError
from bridge.pipelines.quality.report_file import write_file
from bridge.quality import suite
from bridge.quality.suite import Suite
from bridge.small_files import TextFile

__all__ = ["load_suite", "refuse_existing", "write_suite_file"]


def load_suite(spark: SparkSession, file: str) -> Suite:
    """Load a suite from a path or a URI. Raises DefinitionError as `suite.load`; of a store's exceptions it has the
    classes, not the texts."""
    return suite.parse(_stored_text(spark, file), file) if is_uri(file) else suite.load(file)


def refuse_existing(spark: SparkSession, file: str, *, overwrite: bool) -> None:
    """Raise DefinitionError if the file exists and may not be overwritten."""
    if not overwrite and _exists(spark, file):
        raise DefinitionError(
            f"{file} exists and was not changed: replace it with `--overwrite`, or set quality.suite to another file"
        )


def write_suite_file(spark: SparkSession, text: str, file: str) -> None:
    """Write a suite; a reader sees the old one or the complete new one. Raises BridgeError as `write_file`."""
    write_file(spark, text, file, "the suite")


def _exists(spark: SparkSession, file: str) -> bool:
    if not is_uri(file):
        return Path(file).exists()
    try:
        return TextFile(spark, file).read() is not None
    except ENGINE_ERRORS as failed:
        raise _unreadable(file, failed) from failed


def _stored_text(spark: SparkSession, file: str) -> str:
    try:
        text = TextFile(spark, file).read()
    except ENGINE_ERRORS as failed:
        raise _unreadable(file, failed) from failed
    if text is None:
        raise DefinitionError(f"{file}: the quality suite cannot be read: there is no such file")
    return text


def _unreadable(file: str, failed: Exception) -> DefinitionError:
    names = ", ".join(sorted(error_names(failed)))
    return DefinitionError(f"{file}: the quality suite cannot be read: {names}; check the URI and the login")
