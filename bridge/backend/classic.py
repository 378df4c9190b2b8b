"""A session beside Spark's JVM: one that the bridge starts, spark-submit's, or Databricks' dedicated compute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import DataFrame, SparkSession

from bridge.backend.contract import Feature, HandleOfTable
from bridge.backend.hadoop import HadoopFiles
from bridge.backend.java_names import remember_lookups
from bridge.spark_versions import spark_needed

if TYPE_CHECKING:
    import pyarrow as pa

_Part = TypeVar("_Part")
_Found = TypeVar("_Found")


class ClassicBackend:
    """See `contract.Backend`."""

    def __init__(self, spark: SparkSession) -> None:
        remember_lookups(spark)
        self._spark, self._context = spark, spark.sparkContext
        self.files = HadoopFiles(spark)

    def can(self, feature: Feature) -> str | None:
        return None

    @property
    def parallelism(self) -> int:
        return max(1, self._context.defaultParallelism)

    @property
    def application(self) -> str:
        return str(self._context.applicationId)

    @property
    def master(self) -> str:
        return str(self._context.master)

    def setting(self, name: str) -> str | None:
        return self._spark.conf.get(name, None)

    def batches(self, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        yield from frame.toArrow().to_batches()

    def child(self) -> SparkSession:
        return self._spark.newSession()

    def run_tasks(
        self,
        task: Callable[[Iterable[_Part]], Iterable[_Found]],
        parts: Sequence[_Part],
        *,
        tag: str | None = None,
    ) -> list[_Found]:
        if tag is not None:
            self._context.setJobGroup(tag, tag, interruptOnCancel=True)
        # Of Spark SQL the planning alone would take longer than the tasks of a small batch.
        return self._context.parallelize(parts, len(parts)).mapPartitions(task).collect()

    def cancel(self, tag: str | None = None) -> None:
        if tag is None:
            self._context.cancelAllJobs()
        else:
            self._context.cancelJobGroup(tag)

    def has_ended(self) -> bool:
        try:
            self._context.defaultParallelism  # noqa: B018 (Spark raises for a context that was stopped)
        except Exception:
            return True
        return False

    def table(self, name: str | None, path: str | None) -> HandleOfTable:
        with spark_needed():
            from delta.tables import DeltaTable

        if name:
            return DeltaTable.forName(self._spark, name)
        return DeltaTable.forPath(self._spark, str(path))

    def is_table(self, path: str) -> bool:
        with spark_needed():
            from delta.tables import DeltaTable

        return bool(DeltaTable.isDeltaTable(self._spark, path))
