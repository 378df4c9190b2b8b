"""Small texts that the bridge keeps: leases, progress, registrations of consumers, suites and reports.

They go by the store of the tables (`storage.store_at`), where each is one request, and through Hadoop's FileSystem
where that store does not reach them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol, TypeVar

from pyspark.sql import SparkSession

from bridge.backend import backend_of
from bridge.backend.hadoop import HadoopFiles, HadoopFolder
from bridge.errors import BridgeError
from bridge.lake.local_store import LocalStore
from bridge.storage import store_of
from bridge.ways import NotThisWay

_Done = TypeVar("_Done")


class _Files(Protocol):
    """What stores and `HadoopFolder` have in common; see `lake.store.Store`."""

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
        self._folder, self._reached = folder, backend_of(spark).files
        self.location = self._reached.qualified(folder)
        """The folder as Spark names it."""
        try:
            self._files: _Files = store_of(self.location, self._reached)
        except NotThisWay as reason:
            self._files = self._by_hadoop(reason)

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

    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files, or of those in a folder of this one, sorted; [] for a missing folder."""
        return self._do(lambda files: files.names(folder))

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
        except NotThisWay as reason:
            # Credentials that Hadoop finds and the store's client does not.
            self._files = self._by_hadoop(reason)
            return work(self._files)

    def _by_hadoop(self, reason: NotThisWay) -> _Files:
        if isinstance(self._reached, HadoopFiles):
            return HadoopFolder(self._reached, self._folder)
        raise BridgeError(
            f"{self._folder}: not reached, as {reason}; through Spark Connect the bridge opens its small files in its "
            "own process: name a folder of this machine, or one on s3a:// or abfss:// with the login in the environment"
        ) from reason


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
