"""Small text files on local disk, object stores or DBFS, through Hadoop's FileSystem."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bridge.bridge_folders import OWNER_FILE, is_owner_file, scratch_name
from bridge.lake.local_store import make_folder

__all__ = [
    "TextFile",
    "create_owned_folder",
    "delete_file",
    "delete_folder",
    "delete_folder_without_owner",
    "delete_owned_folder",
    "is_local",
    "list_names",
    "local_path",
    "make_local_folder",
    "modified_ms",
    "qualified",
    "read_text",
]


class TextFile:
    """One small file that is read and written often; its file system is resolved once.

    Any thread may use it. Raises the file system's own errors, which on a local disk are OSErrors; BridgeError for a
    folder that `make_folder` cannot make.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._system, self._where = _open(spark, path)
        qualified = self._system.makeQualified(self._where)
        self.local = _is_local(self._system)
        """Whether it is on a local disk, where reads and writes are cheap."""
        self._path = Path(qualified.toUri().getPath())
        self.name = str(self._path) if self.local else str(qualified)

    def read(self) -> str | None:
        """Return the content; None for a missing file."""
        try:
            if self.local:
                return self._path.read_text(encoding="utf-8")
            return _text(self._spark, self._system, self._where)
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Replace the content. Atomic on a local disk and in object stores; in HDFS a reader may see a part of it."""
        if self.local:
            self._replace(text)
            return
        stream = self._system.create(self._where, True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()

    def _replace(self, text: str) -> None:
        make_folder(self._path.parent)
        scratch = self._path.with_name(scratch_name(self._path.name))
        try:
            scratch.write_text(text, encoding="utf-8")
            os.replace(scratch, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)
            raise


def make_local_folder(spark: SparkSession, path: str | None) -> None:
    """Do as `make_folder` for a path that Spark was given, if it is one of a local disk."""
    place = None if path is None else local_path(spark, path)
    if place is not None:
        make_folder(place[1])


def _open(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm = spark._jvm
    assert jvm is not None
    where = jvm.org.apache.hadoop.fs.Path(path)
    return where.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), where


def _is_local(system: Any) -> bool:
    return str(system.getUri().getScheme()) == "file"


def is_local(spark: SparkSession, path: str) -> bool:
    """Return whether `path` is on a local disk."""
    return _is_local(_open(spark, path)[0])


def local_path(spark: SparkSession, path: str) -> tuple[str, Path] | None:
    """Return `path` as Spark qualifies it and as Python opens it; None where it is not on a local disk."""
    system, where = _open(spark, path)
    if not _is_local(system):
        return None
    qualified = system.makeQualified(where)
    return str(qualified), Path(qualified.toUri().getPath())


def qualified(spark: SparkSession, path: str) -> str:
    """Return `path` as Spark qualifies it: with its file system, and from the root."""
    system, where = _open(spark, path)
    return str(system.makeQualified(where))


def read_text(spark: SparkSession, path: str) -> str:
    """Return the content of a file as UTF-8 text. Raises FileNotFoundError."""
    return _text(spark, *_open(spark, path))


def _text(spark: SparkSession, system: Any, where: Any) -> str:
    if not system.exists(where):
        raise FileNotFoundError(str(where))
    stream = system.open(where)
    try:
        jvm = spark._jvm
        assert jvm is not None
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def modified_ms(spark: SparkSession, path: str) -> int | None:
    """Return when the file was written, in epoch milliseconds; None for a missing file."""
    system, where = _open(spark, path)
    return int(system.getFileStatus(where).getModificationTime()) if system.exists(where) else None


def list_names(spark: SparkSession, folder: str) -> list[str]:
    """Return the names in `folder`, sorted; [] for a missing folder."""
    system, where = _open(spark, folder)
    if not system.exists(where):
        return []
    return sorted(str(entry.getPath().getName()) for entry in system.listStatus(where))


def delete_file(spark: SparkSession, path: str) -> None:
    """Delete a file, if it exists. Raises the file system's error for a folder that is not empty."""
    system, where = _open(spark, path)
    system.delete(where, False)


def delete_folder(spark: SparkSession, folder: str) -> None:
    """Delete a folder with everything in it, if it exists: one that the caller knows to be its own."""
    system, where = _open(spark, folder)
    system.delete(where, True)


def create_owned_folder(spark: SparkSession, folder: str, pipeline: str) -> None:
    """Create `folder`, which only `delete_owned_folder` of the same pipeline removes.

    Raises FileExistsError for a folder that has files."""
    if list_names(spark, folder):
        raise FileExistsError(f"{folder} holds files, so it cannot become a working folder of {pipeline!r}")
    TextFile(spark, f"{folder}/{OWNER_FILE}").write(json.dumps({"pipeline": pipeline}))


def delete_owned_folder(spark: SparkSession, folder: str, pipeline: str) -> bool:
    """Delete a folder that `create_owned_folder` made for `pipeline`, with everything in it.

    Any other folder is left alone, and the result is False."""
    if _owner(spark, folder) != pipeline:
        return False
    system, where = _open(spark, folder)
    for name in list_names(spark, folder):
        if name != OWNER_FILE:  # deleted last, so that an interrupted deletion can be repeated
            system.delete(_open(spark, f"{folder}/{name}")[1], True)
    system.delete(where, True)
    return True


def delete_folder_without_owner(spark: SparkSession, folder: str) -> bool:
    """Delete a folder that a process left when it died before it had written the owner, or after it had deleted it.

    That is one which is empty, or has nothing but an owner's file that is not complete. Any other folder, and a file,
    is left alone, and the result is False."""
    system, where = _open(spark, folder)
    if not system.exists(where) or not system.getFileStatus(where).isDirectory():
        return False
    names = list_names(spark, folder)
    if _owner(spark, folder) is not None or not all(map(is_owner_file, names)):
        return False
    for name in names:
        delete_file(spark, f"{folder}/{name}")
    return bool(system.delete(where, False))


def _owner(spark: SparkSession, folder: str) -> str | None:
    system, where = _open(spark, folder)
    if not system.exists(where) or not system.getFileStatus(where).isDirectory():
        return None
    text = TextFile(spark, f"{folder}/{OWNER_FILE}").read()
    try:
        owner = json.loads(text or "")
    except ValueError:
        return None
    name = owner.get("pipeline") if isinstance(owner, dict) else None
    return name if isinstance(name, str) else None
