"""Collects the storage locations of a pipeline in a canonical form, and refuses locations that overlap.

Delta's VACUUM deletes unknown files in the folder of a table, and two writers to one folder mistake each other's files
for their own. Therefore no location of a pipeline may be equal to or inside another one.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from bridge.config.paths import resolved_path
from bridge.config.yaml_tree import Place
from bridge.definition import Definition, DeltaTarget
from bridge.errors import DefinitionError

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


class Kind(Enum):
    """What a storage location contains."""

    TABLE = "a Delta table"
    CHECKPOINT = "a checkpoint"
    WRITTEN = "a file that the bridge writes"
    READ = "a file that the bridge reads"

    @property
    def is_file(self) -> bool:
        return self in (Kind.WRITTEN, Kind.READ)


@dataclass(frozen=True)
class StorageLocation:
    """A storage location that the pipeline file names or that is derived from it."""

    key: Place
    """The key that sets it in the pipeline file."""
    kind: Kind
    path: str | None
    """None for a table whose name is known, but not its path."""
    table: str | None = None
    is_default: bool = False

    def __str__(self) -> str:
        name = ".".join(map(str, self.key)) or "the pipeline file"
        shown = self.table or self.path
        at = f" at {self.path}" if self.table and self.path else ""
        return f"{name}{' (by default)' if self.is_default else ''}, {shown}{at}"


def default_report(definition: Definition) -> str:
    """Returns the file to which `bridge check` writes its report if `quality.report` is not set."""
    return resolved_path(definition.base, f"reports/{definition.name}.html")


def default_suite(definition: Definition) -> str:
    """Returns the suite of a pipeline that names none: the one that `bridge check --init` proposes."""
    return resolved_path(definition.base, f"expectations/{definition.name}.json")


def storage_locations(
    definition: Definition, locations: Mapping[str, str] | None = None
) -> list[StorageLocation]:
    """Returns all storage locations of `definition`; `locations` maps names of tables to their folders."""

    def table(key: Place, target: DeltaTarget) -> StorageLocation:
        name = target.table
        path = target.path if name is None else (locations or {}).get(name)
        return StorageLocation(key, Kind.TABLE, path, name)

    found_locations = [table(("delta",), definition.delta)]
    run = definition.run
    if run.checkpoint:
        found_locations.append(StorageLocation(("run", "checkpoint"), Kind.CHECKPOINT, run.checkpoint))
    if run.state is not None:
        found_locations.append(table(("run", "state"), run.state))
    if definition.quarantine is not None:
        found_locations.append(table(("ingest", "quarantine"), definition.quarantine))
    quality = definition.quality
    if quality is not None:
        found_locations.append(table(("quality", "results"), quality.results))
        report, none = quality.report, quality.report is None
        path = default_report(definition) if report is None else report
        found_locations.append(StorageLocation(("quality", "report"), Kind.WRITTEN, path, is_default=none))
        found_locations.append(StorageLocation(("quality", "suite"), Kind.READ, quality.suite))
        if quality.gate is not None and quality.gate.is_dedicated:
            found_locations.append(StorageLocation(("quality", "gate-suite"), Kind.READ, quality.gate.suite))
    return found_locations


def refuse_overlaps(locations: Sequence[StorageLocation]) -> None:
    """Raises `Overlap` for the first two locations of which one is equal to or inside the other, if this can lose data.

    It cannot for two files that are only read, nor for a file that is only read inside the checkpoint."""
    paths = [None if location.path is None else canonical_path(location.path) for location in locations]
    located = list(zip(locations, paths, strict=True))
    for number, (location, path) in enumerate(located):
        for other, other_path in located[:number]:
            if Kind.READ in (location.kind, other.kind) and not _can_lose_data(
                location, path, other, other_path
            ):
                continue
            message = _overlap_message(location, path, other, other_path)
            if message is not None:
                raise Overlap(message, location.key)


class Overlap(DefinitionError):
    """Raised when two storage locations overlap; `key` sets one of the two."""

    def __init__(self, message: str, key: Place = ()) -> None:
        super().__init__(message)
        self.key = key


def _can_lose_data(
    location: StorageLocation,
    path: CanonicalPath | None,
    other: StorageLocation,
    other_path: CanonicalPath | None,
) -> bool:
    """Returns whether an overlap of a file that is only read with another location can lose data."""
    if location.kind is other.kind:
        return False
    if Kind.CHECKPOINT not in (location.kind, other.kind):
        return True
    if path is None or other_path is None:
        return False
    return path.contains(other_path) and other_path.contains(path)


def _overlap_message(
    location: StorageLocation,
    path: CanonicalPath | None,
    other: StorageLocation,
    other_path: CanonicalPath | None,
) -> str | None:
    """Returns the message for two locations that overlap; None if they do not."""
    way_out = "set them to separate folders"
    if (
        location.table is not None
        and other.table is not None
        and location.table.lower() == other.table.lower()
    ):
        return f"{location} is also {other}; {way_out}"
    if path is None or other_path is None:
        return None
    contains, is_inside = path.contains(other_path), other_path.contains(path)
    if contains and is_inside:
        return f"{location} is the same location as {other}; {way_out}"
    if not (contains or is_inside):
        return None
    inner, outer = (other, location) if contains else (location, other)
    return f"{inner} is inside {outer}, so its files could be deleted or mistaken for files of the latter; {way_out}"
