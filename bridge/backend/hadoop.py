"""Files by Hadoop's FileSystem, through the JVM."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge.bridge_folders import SCRATCH_ATTEMPTS, scratch_name
from bridge.errors import BridgeError

_CONDITIONAL = "fs.option.create.conditional.overwrite"
_WRITER = "bridge-writer"
_ATTEMPTS = 5


class HadoopFiles:
    """See `contract.Files`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def jvm(self) -> Any:
        return self._spark._jvm

    def conf(self) -> Any:
        """Return Hadoop's Configuration with the settings of the session."""
        return self._spark._jsparkSession.sessionState().newHadoopConf()

    def new_array(self, of: Any, length: int) -> Any:
        """Return an array of the JVM."""
        gateway: Any = self._spark.sparkContext._gateway
        return gateway.new_array(of, length)

    def open(self, path: str) -> tuple[Any, Any]:
        """Return Hadoop's file system of a path, and the path for it."""
        where = self.jvm.org.apache.hadoop.fs.Path(path)
        return where.getFileSystem(self.conf()), where

    def qualified(self, path: str) -> str:
        system, where = self.open(path)
        return str(system.makeQualified(where))

    def local_path(self, path: str) -> Path | None:
        system, where = self.open(path)
        return Path(system.makeQualified(where).toUri().getPath()) if is_local(system) else None

    def settings(self) -> Callable[[str], str | None]:
        conf = self.conf()

        def get(name: str) -> str | None:
            found = conf.getPassword(name)
            return None if found is None else str(self.jvm.java.lang.String.valueOf(found))

        return get

    def names(self, folder: str) -> list[str]:
        system, where = self.open(folder)
        if not system.exists(where):
            return []
        return sorted(str(entry.getPath().getName()) for entry in system.listStatus(where))

    def text(self, system: Any, where: Any) -> str:
        """Return the content of a file as UTF-8 text. Raises FileNotFoundError."""
        if not system.exists(where):
            raise FileNotFoundError(str(where))
        stream = system.open(where)
        try:
            return str(self.jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()


def is_local(system: Any) -> bool:
    """Whether a file system of Hadoop is a local disk."""
    return str(system.getUri().getScheme()) == "file"


def write_text(system: Any, where: Any, text: str) -> None:
    """Replace the content of a file. Atomic in object stores; elsewhere a reader may see a part of it."""
    stream = system.create(where, True)
    try:
        stream.write(bytearray(text, "utf-8"))
    finally:
        stream.close()


class HadoopFolder:
    """The small files of a folder; see `lake.store.Store`, whose methods these are."""

    def __init__(self, files: HadoopFiles, folder: str) -> None:
        self._hadoop, self._folder = files, folder

    def read(self, path: str) -> bytes:
        return self._hadoop.text(*self._open(path)).encode()

    def modified(self, path: str) -> float | None:
        system, where = self._open(path)
        return system.getFileStatus(where).getModificationTime() / 1000 if system.exists(where) else None

    def names(self, folder: str) -> list[str]:
        return self._hadoop.names(f"{self._folder}/{folder}")

    def replace(self, path: str, data: bytes) -> None:
        write_text(*self._open(path), data.decode())

    def put_if_absent(self, path: str, data: bytes) -> bool:
        system, where = self._open(path)
        if system.hasPathCapability(where, _CONDITIONAL):
            return _put_if_absent(system, where, data)
        if system.getUri().getScheme() == "s3a":
            version = self._hadoop.jvm.org.apache.hadoop.util.VersionInfo.getVersion()
            raise BridgeError(
                f"{self._folder}/{path}: of two runs that start at once one must win, for which Hadoop {version} has "
                "no request on s3a:// (it needs 3.4.2 or newer, which Spark 4.1 has, and "
                "fs.s3a.create.conditional.enabled not switched off); put run.checkpoint into another store"
            )
        return self._rename(system, where, data)

    def delete(self, path: str) -> None:
        system, where = self._open(path)
        system.delete(where, False)

    def _open(self, path: str) -> tuple[Any, Any]:
        return self._hadoop.open(f"{self._folder}/{path}")

    def _rename(self, system: Any, final: Any, data: bytes, attempt: int = 1) -> bool:
        hadoop, conf = self._hadoop.jvm.org.apache.hadoop.fs, self._hadoop.conf()
        scratch = hadoop.Path(final.getParent(), scratch_name(final.getName()))
        no_overwrite = self._hadoop.new_array(hadoop.Options.Rename, 1)
        no_overwrite[0] = hadoop.Options.Rename.NONE
        try:
            write_text(system, scratch, data.decode())
            hadoop.FileContext.getFileContext(system.getUri(), conf).rename(scratch, final, no_overwrite)
        except Exception as error:
            names = _java_names(error)
            if "FileAlreadyExistsException" in names:
                return False
            if "FileNotFoundException" in names and attempt < SCRATCH_ATTEMPTS:
                # A run that begins has deleted it with those of killed runs.
                return not system.exists(final) and self._rename(system, final, data, attempt + 1)
            raise
        finally:
            system.delete(scratch, False)
        return True


def _put_if_absent(system: Any, final: Any, data: bytes) -> bool:
    # A response may get lost, and the client repeats the request by itself: then the object that is there is its own.
    writer = uuid.uuid4().hex
    for attempt in range(1, _ATTEMPTS + 1):
        builder = system.createFile(final)
        builder.recursive()
        builder.must(_CONDITIONAL, "true")
        builder.opt(f"fs.s3a.create.header.{_WRITER}", writer)
        stream = builder.build()
        try:
            stream.write(bytearray(data))
        except BaseException:
            stream.abort()
            raise
        try:
            stream.close()
        except Exception as error:
            there = _writer_of(system, final)
            if there is not None:
                return there == writer
            if "RemoteFileChangedException" in _java_names(
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
        if "FileNotFoundException" in _java_names(error):
            return None
        raise
    found = attributes.get(f"header.{_WRITER}")
    return bytes(found).decode() if found is not None else ""


def _java_names(error: BaseException) -> set[str]:
    """The simple class names of a Java exception and its causes; empty for another one."""
    names: set[str] = set()
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        names.add(java.getClass().getSimpleName())
        java = java.getCause()
    return names
