"""Converts paths and URIs to a canonical form, so that storage locations can be compared."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["CanonicalPath", "canonical_path", "file_id"]

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(.*)", re.DOTALL)
_STORES = {
    "s3a": "s3",
    "s3n": "s3",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "gcs": "gs",
    "webhdfs": "hdfs",
    "swebhdfs": "hdfs",
}
"""Alternative URI schemes of a store."""
_LOCAL = "file"
_VOLUMES = "Volumes"


def file_id(path: str) -> tuple[int, int] | None:
    """Returns the device and inode of a local file or folder; None if it does not exist or has none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None


@dataclass(frozen=True)
class CanonicalPath:
    """A storage location: its store, the host, bucket or container ("" for the default), and the parts of the path."""

    store: str
    host: str
    parts: tuple[str, ...]

    def contains(
        self, other: CanonicalPath, *, inode: Callable[[str], tuple[int, int] | None] = file_id
    ) -> bool:
        """Returns whether `other` is this location or is inside it. Local folders are also compared by inode, which
        covers mounts and case-insensitive file systems."""
        if self.store != other.store or (self.host and other.host and self.host != other.host):
            return False
        if other.parts[: len(self.parts)] == self.parts:
            return True
        if self.store != _LOCAL or (own_inode := inode("/" + "/".join(self.parts))) is None:
            return False
        return any(inode(folder) == own_inode for folder in other._ancestors())

    def _ancestors(self) -> Iterator[str]:
        for end in range(len(self.parts), 0, -1):
            yield "/" + "/".join(self.parts[:end])


def canonical_path(path: str) -> CanonicalPath:
    """Returns the canonical form of a path or URI. `..` is removed from the text, as in Hadoop; symbolic links of local
    paths that exist are resolved. `s3`, `s3a` and `s3n` are one store, as are `abfss` and `wasbs`, `dbfs:/` and
    `/dbfs/`."""
    match = _URI.fullmatch(path)
    if match is None:
        return _local(path)
    scheme, host, path_in_store = match[1].lower(), (match[2] or "").lower(), match[3]
    if scheme == _LOCAL:
        return _local(path_in_store)
    store = _STORES.get(scheme, scheme)
    parts = _parts(posixpath.normpath("/" + path_in_store))
    if store == "dbfs" and parts[:1] == (_VOLUMES,):
        return _local("/" + "/".join(parts))
    if store == "abfs":
        host = host.split(".")[0]  # container@account, whatever the endpoint
    elif store == "hdfs":
        host = host.partition(":")[0]
    else:
        host = host.rpartition("@")[2]
    return CanonicalPath(store, host, parts)


def _local(path: str) -> CanonicalPath:
    normalized = posixpath.normpath(os.path.abspath(path))
    parts = _parts(normalized)
    if parts[:1] == ("dbfs",):
        return canonical_path("dbfs:/" + "/".join(parts[1:]))
    return CanonicalPath(_LOCAL, "", _parts(os.path.realpath(normalized)))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)
