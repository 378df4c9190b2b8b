"""One form for all the ways to write the place of a file or folder, so that two can be compared."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["CanonicalPath", "canonical_path"]

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
"""Schemes that are other ways to the same store."""
_LOCAL = "file"
_VOLUMES = "Volumes"


@dataclass(frozen=True)
class CanonicalPath:
    """A place: its store, the host, bucket or container in there ("" where the default one is meant), and the way."""

    store: str
    host: str
    parts: tuple[str, ...]

    def contains(self, other: CanonicalPath) -> bool:
        """Whether `other` is this place, or lies in it. On this machine's disks a folder is known by its inode, too:
        behind mounts and on file systems to which `A` is `a`."""
        if self.store != other.store or (self.host and other.host and self.host != other.host):
            return False
        if other.parts[: len(self.parts)] == self.parts:
            return True
        if self.store != _LOCAL or (mine := _inode("/" + "/".join(self.parts))) is None:
            return False
        return any(_inode(folder) == mine for folder in other._ancestors())

    def _ancestors(self) -> Iterator[str]:
        for end in range(len(self.parts), 0, -1):
            yield "/" + "/".join(self.parts[:end])


def canonical_path(path: str) -> CanonicalPath:
    """The address of a path or URI. `..` is taken off as Hadoop does, by the text; links of local paths are followed,
    of those that are there. `s3`, `s3a` and `s3n` are one store, as are `abfss` and `wasbs`, `dbfs:/` and `/dbfs/`."""
    match = _URI.fullmatch(path)
    if match is None:
        return _local(path)
    scheme, host, way = match[1].lower(), (match[2] or "").lower(), match[3]
    if scheme == _LOCAL:
        return _local(way)
    store = _STORES.get(scheme, scheme)
    parts = _parts(posixpath.normpath("/" + way))
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
    plain = posixpath.normpath(os.path.abspath(path))
    parts = _parts(plain)
    if parts[:1] == ("dbfs",):
        return canonical_path("dbfs:/" + "/".join(parts[1:]))
    return CanonicalPath(_LOCAL, "", _parts(os.path.realpath(plain)))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None
