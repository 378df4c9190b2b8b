"""Delta's own snapshot of the newest version, for what its Python API does not tell."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from bridge.backend import HandleOfTable


def newest_snapshot(spark: SparkSession, table: HandleOfTable) -> Any:
    """Return the JVM's Snapshot. It is no public API: call it within `spark_versions.or_public`."""
    jvm: Any = spark._jvm
    none = jvm.scala.Option.empty()
    return table._jdt.deltaLog().update(False, none, none)
