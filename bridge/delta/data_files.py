"""Which data files a frame is read from, before it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

__all__ = ["DataFile", "data_files", "digest"]

_DELTA = "org.apache.spark.sql.delta."
_MOST = 10_000
"""Each file is asked for its name and its size. Of more than these nobody wants to know every single one."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table, or of its change data feed."""

    uri: str
    """What Spark's input_file_name() says of its rows."""
    bytes: int

    @property
    def name(self) -> str:
        """The file's, without folders: that of a table which was moved is the same."""
        return self.uri.rpartition("/")[2]


def data_files(frame: DataFrame) -> tuple[DataFile, ...]:
    """All files that `frame` reads, ordered by their names. Versions of Delta are immutable and so are their files, so
    a frame of given versions has the same ones whenever it is asked. Reads no data.

    None at all where that cannot be told, for what is asked here is not public (Databricks, another Spark); and where
    the frame reads anything but files of Delta tables, a file twice, or two of the same name.
    """
    try:
        found = sorted(_found(frame), key=lambda file: file.name)
    except (Py4JError, PySparkException, LookupError, TypeError):
        return ()
    return tuple(found) if len({file.name for file in found}) == len(found) else ()


def digest(files: Sequence[DataFile]) -> str:
    """Sixteen hexadecimal digits that stand for the names of `files` in this order."""
    return hashlib.sha256("\n".join(file.name for file in files).encode()).hexdigest()[:16]


def _found(frame: DataFrame) -> Iterator[DataFile]:
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    for leaf in _each(leaves):
        kind = leaf.getClass().getSimpleName()
        if kind == "LogicalRDD" and not leaf.rdd().getNumPartitions():
            continue  # what Delta begins the union of a feed's parts with
        if kind != "LogicalRelation":
            raise LookupError(kind)
        location = leaf.relation().location()
        if not location.getClass().getName().startswith(_DELTA):
            raise LookupError(location.getClass().getName())
        nothing = _nothing(frame.sparkSession)
        for folder in _each(location.listFiles(nothing, nothing)):
            for file in _each(folder.files()):
                yield DataFile(file.getPath().toUri().toString(), int(file.getLen()))


def _each(sequence: Any) -> Iterator[Any]:
    if sequence.size() > _MOST:
        raise LookupError(f"{sequence.size()} files")
    rest = sequence.iterator()
    while rest.hasNext():
        yield rest.next()


def _nothing(spark: SparkSession) -> Any:
    """Scala's empty list."""
    jvm: Any = spark._jvm
    return getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
