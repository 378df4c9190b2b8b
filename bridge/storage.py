"""Small text files wherever Spark keeps data: local disk, object stores, DBFS, through Hadoop's FileSystem."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

__all__ = ["delete", "list_names", "read_text"]


def _open(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm = spark._jvm
    assert jvm is not None
    where = jvm.org.apache.hadoop.fs.Path(path)
    return where.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), where


def read_text(spark: SparkSession, path: str) -> str:
    """The whole file as UTF-8 text. Raises FileNotFoundError when it is not there."""
    system, where = _open(spark, path)
    if not system.exists(where):
        raise FileNotFoundError(path)
    stream = system.open(where)
    try:
        jvm = spark._jvm
        assert jvm is not None
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def list_names(spark: SparkSession, folder: str) -> list[str]:
    """The names in `folder`, sorted; none where there is no such folder."""
    system, where = _open(spark, folder)
    if not system.exists(where):
        return []
    return sorted(str(entry.getPath().getName()) for entry in system.listStatus(where))


def delete(spark: SparkSession, path: str) -> None:
    """Remove the file or the whole folder; nothing happens when it is not there."""
    system, where = _open(spark, path)
    system.delete(where, True)
