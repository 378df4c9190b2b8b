"""The files of a table on a local disk."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.bridge_folders import SCRATCH_ATTEMPTS, scratch_name
from bridge.errors import BridgeError
from bridge.lake.store import Head, Ranges, Source

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class LocalStore:
    """A folder of a local disk. Raises the disk's own errors."""

    folder: str

    @property
    def location(self) -> str:
        """See `Store`."""
        return f"file:{self.folder}"

    def read(self, path: str) -> bytes:
        """See `Store`."""
        return self._at(path).read_bytes()

    def read_with_stamp(self, path: str) -> tuple[bytes, str]:
        """See `Store`."""
        with self._at(path).open("rb") as file:
            return file.read(), _stamp(os.fstat(file.fileno()))

    def range(self, path: str, begin: int, end: int) -> bytes:
        """See `Store`."""
        with self._at(path).open("rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def open(self, path: str, size: int) -> Source:
        """See `Store`. The file is mapped into memory."""
        return _MappedFile(str(self._at(path)))

    def head(self, path: str) -> Head | None:
        """See `Store`."""
        try:
            found = os.stat(self._at(path))
        except FileNotFoundError:
            return None
        return Head(found.st_size, _stamp(found), found.st_mtime)

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """See `Store`."""
        try:
            return sorted(name for name in os.listdir(self._at(folder)) if name > after)
        except FileNotFoundError:
            return []

    def create(self, path: str, data: bytes | pa.Buffer) -> None:
        """See `Store`."""
        final = self._at(path)
        self._make(final.parent)
        _write(final, data)
        sync(final.parent)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `Store`. A hard link, as a rename would replace a file."""
        final = self._at(path)
        for attempt in range(1, SCRATCH_ATTEMPTS + 1):
            self._make(final.parent)
            scratch = final.with_name(scratch_name(final.name))
            try:
                _write(scratch, data)
                os.link(scratch, final)
            except FileExistsError:
                return False
            except FileNotFoundError:
                # A run that begins has deleted the scratch file with those of killed runs.
                if final.exists():
                    return False
                if attempt == SCRATCH_ATTEMPTS:
                    raise
                continue
            finally:
                scratch.unlink(missing_ok=True)
            break
        sync(final.parent)
        return True

    def delete(self, path: str) -> None:
        """See `Store`."""
        self._at(path).unlink(missing_ok=True)

    def replace(self, path: str, data: bytes) -> None:
        """See `Store`."""
        final = self._at(path)
        make_folder(final.parent)
        scratch = final.with_name(scratch_name(final.name))
        try:
            scratch.write_bytes(data)
            os.replace(scratch, final)
        except BaseException:
            with suppress(OSError):
                scratch.unlink(missing_ok=True)
            raise

    def modified(self, path: str) -> float | None:
        """See `Store`."""
        found = self.head(path)
        return None if found is None else found.modified

    def _at(self, path: str) -> Path:
        return Path(self.folder, path)

    @staticmethod
    def _make(folder: Path) -> None:
        """Raises BridgeError for a folder that cannot be made or written."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        make_folder(folder)
        for each in missing:
            sync(each.parent)


def _stamp(found: os.stat_result) -> str:
    return f"{found.st_ino}-{found.st_mtime_ns}"


def _write(path: Path, data: bytes | pa.Buffer) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class _MappedFile:
    path: str
    is_remote = False

    def file(self) -> pa.NativeFile:
        import pyarrow as pa

        return pa.memory_map(self.path)

    def fetch(self, ranges: Ranges) -> None:
        """Does nothing: a disk is near."""


def make_folder(folder: Path) -> None:
    """Make a folder of a local disk, with those above it, if it is not there.

    Raises BridgeError, which names it and the way out, where it cannot be made or no file can be made in it; OSError
    for a full disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    except OSError as failed:
        if failed.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        at = next((f for f in (folder, *folder.parents) if os.path.exists(f)), folder)
        what = f"{at}: {failed.strerror}" if os.path.isdir(at) else f"{at} is a file"
        raise BridgeError(
            f"{folder}: this folder cannot be made or written ({what}). Move the file away, or let the user of the "
            "bridge write there, or name another path in the pipeline file"
        ) from failed


def sync(path: Path) -> None:
    """Put a file that was closed, or the names in a folder, on the disk, if its file system has a call for that."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as failed:
        if failed.errno not in (errno.EINVAL, errno.ENOTSUP):  # folders of FUSE
            raise
    finally:
        os.close(opened)
