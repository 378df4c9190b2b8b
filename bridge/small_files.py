"""Small texts that the bridge keeps: leases, progress, registrations of consumers, suites and reports.

They go by the store of the tables (`storage.store_at`), where each is one request, and through Hadoop's FileSystem
where that store does not reach them.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from pyspark.sql import SparkSession

from bridge.bridge_folders import scratch_name
from bridge.errors import BridgeError
from bridge.lake.local_store import LocalStore
from bridge.storage import list_names, open_path, qualified, store_at, text_of, write_text
from bridge.ways import NotThisWay

_Done = TypeVar("_Done")

_CONDITIONAL = "fs.option.create.conditional.overwrite"
_WRITER = "bridge-writer"
_ATTEMPTS = 5


class _Files(Protocol):
    """What stores and `_HadoopFiles` have in common; see `lake.store.Store`."""

    def read(self, path: str) -> bytes: ...

    def modified(self, path: str) -> float | None: ...

    def names(self, folder: str) -> list[str]: ...

    def replace(self, path: str, data: bytes) -> None: ...

    def put_if_absent(self, path: str, data: bytes) -> bool: ...

    def delete(self, path: str) -> None: ...


class SmallFiles:
    """The small files of a folder; its store is found once. Any thread may use it.

    Raises the store's own errors, which on a local disk are OSErrors; BridgeError for a folder that cannot be made.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark, self._folder = spark, folder
        self.location = qualified(spark, folder)
        """The folder as Spark names it."""
        try:
            self._files: _Files = store_at(spark, self.location)
        except NotThisWay:
            self._files = _HadoopFiles(spark, folder)

    @property
    def local(self) -> bool:
        """Whether they are on a local disk, where reads and writes are cheap."""
        return isinstance(self._files, LocalStore)

    def path_of(self, name: str) -> str:
        """The path of a file, as messages name it."""
        folder = self._files.folder if isinstance(self._files, LocalStore) else self.location
        return os.path.join(folder, name)

    def read(self, name: str) -> str:
        """Return the content of a file. Raises FileNotFoundError; ValueError for bytes that are not UTF-8."""
        return self._do(lambda files: files.read(name)).decode()

    def modified_ms(self, name: str) -> int | None:
        """Return when a file was written, in epoch milliseconds; None for a missing file."""
        found = self._do(lambda files: files.modified(name))
        return None if found is None else int(found * 1000)

    def names(self) -> list[str]:
        """Return the names of the files, sorted; [] for a missing folder."""
        return self._do(lambda files: files.names(""))

    def replace(self, name: str, text: str) -> None:
        """Replace the content. Atomic on a local disk and in object stores; in HDFS a reader may see a part of it."""
        self._do(lambda files: files.replace(name, text.encode()))

    def put_if_absent(self, name: str, text: str) -> bool:
        """Create a file with all of `text`; return False, and change nothing, when it exists already.

        Of several writers one wins: by a hard link on a local disk; by a conditional request (`If-None-Match: *`) in an
        object store; by a rename in storage whose rename is atomic (HDFS, DBFS). Raises BridgeError on `s3a://` where
        neither client makes conditional requests, and where the store does not say whether it was written.
        """
        return self._do(lambda files: files.put_if_absent(name, text.encode()))

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        self._do(lambda files: files.delete(name))

    def _do(self, work: Callable[[_Files], _Done]) -> _Done:
        try:
            return work(self._files)
        except NotThisWay:
            # Credentials that Hadoop finds and the store's client does not.
            self._files = _HadoopFiles(self._spark, self._folder)
            return work(self._files)


class TextFile:
    """One small file that is read and written often. See `SmallFiles`."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        folder, _, self._name = path.rpartition("/")
        self._files = SmallFiles(spark, folder or ".")
        self.local, self.name = self._files.local, self._files.path_of(self._name)

    def read(self) -> str | None:
        """Return the content; None for a missing file."""
        try:
            return self._files.read(self._name)
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """See `SmallFiles.replace`."""
        self._files.replace(self._name, text)


class _HadoopFiles:
    """By Hadoop's FileSystem, through the JVM."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark, self._folder = spark, folder

    def read(self, path: str) -> bytes:
        return text_of(self._spark, *self._open(path)).encode()

    def modified(self, path: str) -> float | None:
        system, where = self._open(path)
        return system.getFileStatus(where).getModificationTime() / 1000 if system.exists(where) else None

    def names(self, folder: str) -> list[str]:
        return list_names(self._spark, f"{self._folder}/{folder}")

    def replace(self, path: str, data: bytes) -> None:
        write_text(*self._open(path), data.decode())

    def put_if_absent(self, path: str, data: bytes) -> bool:
        system, where = self._open(path)
        if system.hasPathCapability(where, _CONDITIONAL):
            return _put_if_absent(system, where, data)
        if system.getUri().getScheme() == "s3a":
            jvm: Any = self._spark._jvm
            version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
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
        return open_path(self._spark, f"{self._folder}/{path}")

    def _rename(self, system: Any, final: Any, data: bytes) -> bool:
        jvm: Any = self._spark._jvm
        gateway = self._spark.sparkContext._gateway
        assert gateway is not None
        hadoop, conf = jvm.org.apache.hadoop.fs, self._spark._jsparkSession.sessionState().newHadoopConf()
        scratch = hadoop.Path(final.getParent(), scratch_name(final.getName()))
        no_overwrite = gateway.new_array(hadoop.Options.Rename, 1)
        no_overwrite[0] = hadoop.Options.Rename.NONE
        try:
            write_text(system, scratch, data.decode())
            hadoop.FileContext.getFileContext(system.getUri(), conf).rename(scratch, final, no_overwrite)
        except Exception as error:
            if "FileAlreadyExistsException" in _java_names(error):
                return False
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
