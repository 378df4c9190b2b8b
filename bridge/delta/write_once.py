"""Creates a small text file atomically, unless it exists: of several writers one wins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge.bridge_folders import scratch_name
from bridge.delta.delta_errors import error_names

__all__ = ["write_once"]


def write_once(spark: SparkSession, path: str, text: str) -> bool:
    """Create the file `path` with all of `text`; return False, and change nothing, when it exists already.

    Atomic on a local disk, and in storage whose rename is atomic (HDFS, ABFS, GCS, DBFS). S3 has no such rename: there
    two concurrent writers may both get True.
    """
    jvm: Any = spark._jvm
    final = jvm.org.apache.hadoop.fs.Path(path)
    system = final.getFileSystem(_hadoop_conf(spark))
    if system.getUri().getScheme() == "file":
        return _link(Path(system.makeQualified(final).toUri().getPath()), text)
    return _rename(spark, path, text)


def _link(final: Path, text: str) -> bool:
    # Hadoop's rename replaces an existing file on a local disk; a hard link never does.
    final.parent.mkdir(parents=True, exist_ok=True)
    scratch = final.with_name(scratch_name(final.name))
    try:
        with scratch.open("w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.link(scratch, final)
    except FileExistsError:
        return False
    finally:
        scratch.unlink(missing_ok=True)
    return True


def _rename(spark: SparkSession, path: str, text: str) -> bool:
    jvm: Any = spark._jvm
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    hadoop, conf = jvm.org.apache.hadoop.fs, _hadoop_conf(spark)
    final = hadoop.Path(path)
    scratch = hadoop.Path(final.getParent(), scratch_name(final.getName()))
    system = final.getFileSystem(conf)
    no_overwrite = gateway.new_array(hadoop.Options.Rename, 1)
    no_overwrite[0] = hadoop.Options.Rename.NONE
    try:
        stream = system.create(scratch, True)
        stream.write(bytearray(text, "utf-8"))
        stream.close()
        hadoop.FileContext.getFileContext(system.getUri(), conf).rename(scratch, final, no_overwrite)
    except Exception as error:
        if "FileAlreadyExistsException" in error_names(error):
            return False
        raise
    finally:
        system.delete(scratch, False)
    return True


def _hadoop_conf(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().newHadoopConf()
