"""Creates a small text file atomically, unless it exists: of several writers one wins."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge.bridge_folders import scratch_name
from bridge.delta.delta_errors import error_names
from bridge.errors import BridgeError
from bridge.lake.local_store import LocalStore

__all__ = ["write_once"]

_CONDITIONAL = "fs.option.create.conditional.overwrite"
_WRITER = "bridge-writer"
_ATTEMPTS = 5


def write_once(spark: SparkSession, path: str, text: str) -> bool:
    """Create the file `path` with all of `text`; return False, and change nothing, when it exists already.

    Atomic on a local disk by a hard link; on S3 by a conditional request (`If-None-Match: *`); in storage whose rename
    is atomic (HDFS, ABFS, GCS, DBFS) by a rename. Raises BridgeError on `s3a://` where Hadoop's client makes no
    conditional requests.
    """
    jvm: Any = spark._jvm
    final = jvm.org.apache.hadoop.fs.Path(path)
    system = final.getFileSystem(_hadoop_conf(spark))
    scheme = system.getUri().getScheme()
    if scheme == "file":
        place = Path(system.makeQualified(final).toUri().getPath())
        return LocalStore(str(place.parent)).put_if_absent(place.name, text.encode())
    if system.hasPathCapability(final, _CONDITIONAL):
        return _put_if_absent(system, final, text)
    if scheme == "s3a":
        version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        raise BridgeError(
            f"{path}: of two runs that start at once one must win, for which Hadoop {version} has no request on s3a:// "
            "(it needs 3.4.2 or newer, which Spark 4.1 has, and fs.s3a.create.conditional.enabled not switched off); "
            "put run.checkpoint into another store"
        )
    return _rename(spark, path, text)


def _put_if_absent(system: Any, final: Any, text: str) -> bool:
    # A response may get lost, and the client repeats the request by itself: then the object that is there is its own.
    writer = uuid.uuid4().hex
    for attempt in range(1, _ATTEMPTS + 1):
        builder = system.createFile(final)
        builder.recursive()
        builder.must(_CONDITIONAL, "true")
        builder.opt(f"fs.s3a.create.header.{_WRITER}", writer)
        stream = builder.build()
        try:
            stream.write(bytearray(text, "utf-8"))
        except BaseException:
            stream.abort()
            raise
        try:
            stream.close()
        except Exception as error:
            there = _writer_of(system, final)
            if there is not None:
                return there == writer
            if "RemoteFileChangedException" in error_names(
                error
            ):  # 412: another one's, which is deleted by now
                return False
            # 409: another request for the object was under way, and did not succeed.
            if "Status Code: 409" not in str(error) or attempt == _ATTEMPTS:
                raise
            time.sleep(0.1 * attempt)
        else:
            return True
    raise AssertionError("the last attempt returns or raises")


def _writer_of(system: Any, final: Any) -> str | None:
    """Who wrote the object; empty for another program, None where there is no object."""
    try:
        attributes = system.getXAttrs(final)
    except Exception as error:
        if "FileNotFoundException" in error_names(error):
            return None
        raise
    found = attributes.get(f"header.{_WRITER}")
    return bytes(found).decode() if found is not None else ""


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
