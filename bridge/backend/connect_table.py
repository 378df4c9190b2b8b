"""What `delta.tables.DeltaTable` does, by Spark's own API: a Connect server needs no plug-in of Delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.backend.error_causes import causes
from bridge.schema import quote

_COUNTS = {
    "num_affected_rows": ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    "num_inserted_rows": ("numTargetRowsInserted",),
    "num_updated_rows": ("numTargetRowsUpdated",),
    "num_deleted_rows": ("numTargetRowsDeleted",),
}
"""What a MERGE returns, by the metrics that its commit has."""
_LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"
_NEWEST = 20


class ConnectTable:
    """A Delta table by its name or path. Each read sees the newest version."""

    def __init__(self, spark: Any, name: str | None, path: str | None, tells_version: bool = True) -> None:
        """`tells_version`: a setting of the session names the version that it has committed last."""
        self.spark, self._name, self._path = spark, name, path
        self.tells_version = tells_version
        self._sql = name or f"delta.{quote(str(path))}"
        spark.sql(f"DESCRIBE DETAIL {self._sql}").schema  # noqa: B018 (raises where there is none)

    @staticmethod
    def is_table(spark: Any, path: str) -> bool:
        try:
            found = spark.sql(f"DESCRIBE DETAIL delta.{quote(path)}").select("format").collect()
        except PySparkException as error:
            if {"DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "PATH_NOT_FOUND"} & {
                text.partition("]")[0].lstrip("[") for _, text in causes(error)
            }:
                return False
            raise
        return [row[0] for row in found] == ["delta"]

    def toDF(self) -> DataFrame:
        reader = self.spark.read.format("delta")
        return reader.table(self._name) if self._name else reader.load(self._path)  # type: ignore[no-any-return]

    def history(self, limit: int | None = None) -> DataFrame:
        newest = "" if limit is None else f" LIMIT {limit}"
        return self.spark.sql(f"DESCRIBE HISTORY {self._sql}{newest}")  # type: ignore[no-any-return]

    def detail(self) -> DataFrame:
        return self.spark.sql(f"DESCRIBE DETAIL {self._sql}")  # type: ignore[no-any-return]

    def alias(self, name: str) -> _Aliased:
        return _Aliased(self, name)

    def delete(self, condition: Column) -> None:
        self._of_no_source().whenNotMatchedBySource(condition).delete().merge()

    def update(self, condition: Column, values: Mapping[str, Column]) -> None:
        self._of_no_source().whenNotMatchedBySource(condition).update(dict(values)).merge()

    def _of_no_source(self) -> Any:
        return _Merge(self.alias("t"), self.spark.range(0), F.lit(False)).writer


class _Aliased:
    def __init__(self, table: ConnectTable, name: str) -> None:
        self.table, self.name = table, name

    def merge(self, source: DataFrame, condition: str | Column) -> _Merge:
        return _Merge(self, source, F.expr(condition) if isinstance(condition, str) else condition)


class _Merge:
    """`delta.tables.DeltaMergeBuilder`. The alias of the target is a temporary view of the session."""

    def __init__(self, target: _Aliased, source: DataFrame, condition: Column) -> None:
        self._table = target.table
        self._table.toDF().createOrReplaceTempView(target.name)
        self.writer: Any = source.mergeInto(target.name, condition)

    def whenMatchedDelete(self, condition: Column | None = None) -> _Merge:
        self.writer = self.writer.whenMatched(condition).delete()
        return self

    def whenMatchedUpdate(
        self, condition: Column | None = None, set: Mapping[str, Any] | None = None
    ) -> _Merge:
        self.writer = self.writer.whenMatched(condition).update(_columns(set))
        return self

    def whenNotMatchedInsert(
        self, condition: Column | None = None, values: Mapping[str, Any] | None = None
    ) -> _Merge:
        self.writer = self.writer.whenNotMatched(condition).insert(_columns(values))
        return self

    def whenNotMatchedBySourceDelete(self, condition: Column | None = None) -> _Merge:
        self.writer = self.writer.whenNotMatchedBySource(condition).delete()
        return self

    def execute(self) -> DataFrame:
        """Merge; a row of counts, or none where Delta skipped the MERGE because it knows the batch number.

        Where the session does not tell its version, MERGEs that others commit meanwhile are counted, too."""
        spark = self._table.spark
        if self._table.tells_version:
            spark.conf.unset(_LAST_VERSION)
            self.writer.merge()
            version = spark.conf.get(_LAST_VERSION, None)
            counts = [] if version is None else [self._counts(F.col("version") == int(version))]
        else:
            before = self._table.history(1).collect()[0]["version"]
            self.writer.merge()
            counts = [self._counts((F.col("version") > before) & (F.col("operation") == "MERGE"))]
        columns = ", ".join(f"{name} bigint" for name in _COUNTS)
        return spark.createDataFrame(counts, columns)  # type: ignore[no-any-return]

    def _counts(self, condition: Column) -> tuple[int, ...]:
        for limit in (_NEWEST, None) if self._table.tells_version else (_NEWEST,):
            commits = self._table.history(limit).where(condition).select("operationMetrics").collect()
            if commits:
                of_all = [
                    [sum(int(row[0].get(m, 0)) for m in of) for of in _COUNTS.values()] for row in commits
                ]
                return tuple(map(sum, zip(*of_all, strict=True)))
        return (0,) * len(_COUNTS)


def _columns(values: Mapping[str, Any] | None) -> dict[str, Column]:
    return {name: F.expr(v) if isinstance(v, str) else v for name, v in (values or {}).items()}
