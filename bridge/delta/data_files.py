"""Lists the data files that a frame reads, from its plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

_DELTA_PACKAGE = "org.apache.spark.sql.delta."
_MAX_FILES = 10_000
"""Each file costs calls to the JVM for its name and its size."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, or of its change data feed."""

    uri: str
    """As Spark's input_file_name() names it."""
    bytes: int

    @property
    def name(self) -> str:
        """The file's name without folders: it stays the same when the table is moved."""
        return self.uri.rpartition("/")[2]


def data_files(
    frame: DataFrame, *, delta_package: str = _DELTA_PACKAGE, max_files: int = _MAX_FILES
) -> tuple[DataFile, ...]:
    """List all files that `frame` reads, ordered by name, without reading data. A version of a Delta table is
    immutable, so a frame of given versions always has the same files.

    Empty where the files cannot be determined: Spark's plan is not a public API, and other releases and Databricks may
    have another one. Empty, too, where the frame reads anything but files of Delta tables (whose classes are in
    `delta_package`), more than `max_files` files, a file twice, or two files of the same name.
    """
    try:
        files = sorted(_planned_files(frame, delta_package, max_files), key=lambda file: file.name)
    except (Py4JError, PySparkException, LookupError, TypeError):
        return ()
    return tuple(files) if len({file.name for file in files}) == len(files) else ()


def digest(files: Sequence[DataFile]) -> str:
    """A digest of the names of `files` in this order, in sixteen hexadecimal digits."""
    return hashlib.sha256("\n".join(file.name for file in files).encode()).hexdigest()[:16]


def _planned_files(frame: DataFrame, delta_package: str, max_files: int) -> Iterator[DataFile]:
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    for leaf in _each(leaves, max_files):
        kind = leaf.getClass().getSimpleName()
        if kind == "LogicalRDD" and not leaf.rdd().getNumPartitions():
            continue  # the empty frame that Delta starts the union of a feed's parts with
        if kind != "LogicalRelation":
            raise LookupError(kind)
        location = leaf.relation().location()
        if not location.getClass().getName().startswith(delta_package):
            raise LookupError(location.getClass().getName())
        nil = _nil(frame.sparkSession)
        for folder in _each(location.listFiles(nil, nil), max_files):
            for file in _each(folder.files(), max_files):
                yield DataFile(file.getPath().toUri().toString(), int(file.getLen()))


def _each(sequence: Any, max_size: int) -> Iterator[Any]:
    """The elements of a Scala sequence. Raises LookupError when it is too long."""
    if sequence.size() > max_size:
        raise LookupError(f"{sequence.size()} elements")
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _nil(spark: SparkSession) -> Any:
    """Scala's empty list."""
    jvm: Any = spark._jvm
    return getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
