"""The files of a table where they are: on a local disk, or in an object store that the driver and the tasks reach.

No other module knows which. Paths are those of the table's log, decoded: relative to the table's folder. What `create`
and `put_if_absent` have written when they return survives a loss of power.

Sources: "Delta Transaction Log Protocol" (PROTOCOL.md), "Delta Log Entries" (of several writers of a version one wins);
S3's conditional writes (`If-None-Match: *`).
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bridge.bridge_folders import scratch_name
from bridge.errors import BridgeError
from bridge.lake.remote_file import Ranges, RemoteFile
from bridge.lake.unsupported import UnsupportedByEngine

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore.store import ObjectStore as Client

__all__ = ["Head", "LocalStore", "RemoteStore", "Source", "Store", "at_once", "make_folder"]

_TRIES = 5
_CLIENTS = 64
_AT_ONCE = 32
_Given = TypeVar("_Given")
_Done = TypeVar("_Done")


@dataclass(frozen=True)
class Head:
    """What a store says of a file without its content."""

    size: int
    stamp: str
    """Another one for a file that was written anew under the same name."""
    modified: float
    """Epoch seconds."""


class Source(Protocol):
    """A data file that several threads may read, each with a `file` of its own."""

    @property
    def is_remote(self) -> bool:
        """Whether what is read should be brought before."""
        ...

    def file(self) -> pa.NativeFile | RemoteFile:
        """The file, opened once more."""
        ...

    def fetch(self, ranges: Ranges) -> None:
        """Bring these ranges in one request, or a few at once, before they are read. Any thread may call it."""
        ...


class Store(Protocol):
    """The files in a folder. Any thread may use it, and tasks may get it."""

    @property
    def location(self) -> str:
        """The folder as Spark names it."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a file. Raises FileNotFoundError."""
        ...

    def read_with_stamp(self, path: str) -> tuple[bytes, str]:
        """The content of a file, and the stamp that `head` gives for it. Raises FileNotFoundError."""
        ...

    def range(self, path: str, begin: int, end: int) -> bytes:
        """The bytes of a file from `begin` to `end`. Raises FileNotFoundError."""
        ...

    def open(self, path: str, size: int) -> Source:
        """A file of `size` bytes, to be read in parts. Raises FileNotFoundError here, or where it is read."""
        ...

    def head(self, path: str) -> Head | None:
        """What is known of a file; None for one that is missing."""
        ...

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """The names of the files in a folder that come after the name `after`, in their order. Empty for a missing
        folder."""
        ...

    def create(self, path: str, data: bytes | pa.Buffer) -> None:
        """Write a file of a name that nobody else uses, with the folders above it."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that is not there; False, with nothing written, for one that is. Of several writers one wins."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file. Does nothing for one that is missing."""
        ...


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
        self._make(final.parent)
        scratch = final.with_name(scratch_name(final.name))
        try:
            _write(scratch, data)
            os.link(scratch, final)
        except FileExistsError:
            return False
        finally:
            scratch.unlink(missing_ok=True)
        sync(final.parent)
        return True

    def delete(self, path: str) -> None:
        """See `Store`."""
        self._at(path).unlink(missing_ok=True)

    def flush(self, paths: Iterable[str]) -> None:
        """Put files that others have written, and their names in their folders, on the disk, each once."""
        files = [self._at(path) for path in paths]
        for each in dict.fromkeys((*files, *(file.parent for file in files), Path(self.folder))):
            if each.exists():
                sync(each)

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


@dataclass(frozen=True)
class RemoteStore:
    """A folder of S3, Azure or Google Cloud Storage. Raises UnsupportedByEngine where the store does not answer, or
    where it answers otherwise than it must, as Spark may reach it another way."""

    location: str
    """See `Store`."""
    options: Mapping[str, str] = field(repr=False, hash=False)
    """Of the library object_store, as delta-rs takes them; they hold secrets."""

    def read(self, path: str) -> bytes:
        """See `Store`."""
        return self.read_with_stamp(path)[0]

    def read_with_stamp(self, path: str) -> tuple[bytes, str]:
        """See `Store`."""
        import obstore

        with self._answers(path):
            found = obstore.get(self._client, path)
            return bytes(found.bytes()), str(found.meta["e_tag"])

    def open(self, path: str, size: int) -> Source:
        """See `Store`."""
        return _RemoteSource(self, path, size)

    def head(self, path: str) -> Head | None:
        """See `Store`."""
        import obstore

        try:
            with self._answers(path):
                found = obstore.head(self._client, path)
        except FileNotFoundError:
            return None
        return Head(found["size"], str(found["e_tag"]), found["last_modified"].timestamp())

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """See `Store`. One request for each thousand names."""
        import obstore

        prefix = f"{folder}/"
        with self._answers(folder):
            listed = obstore.list(self._client, prefix, offset=f"{prefix}{after}" if after else None)
            paths = [entry["path"] for batch in listed for entry in batch]
        names = (path.removeprefix(prefix) for path in paths)
        return sorted(name for name in names if "/" not in name)

    def create(self, path: str, data: bytes | pa.Buffer) -> None:
        """See `Store`."""
        import obstore

        with self._answers(path):
            obstore.put(self._client, path, memoryview(data).cast("B"))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `Store`. Two writers must not write the same bytes: who finds them takes them for its own, whose answer
        was lost."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

        for attempt in range(1, _TRIES + 1):
            try:
                obstore.put(self._client, path, data, mode="create")
                return True
            except (AlreadyExistsError, PreconditionError, GenericError):
                with suppress(FileNotFoundError):
                    return self.read(path) == data
                # 409: another request for the object was under way, and did not succeed.
                time.sleep(0.1 * attempt)
            except Exception as failed:
                raise _silent(self, path, failed) from failed
        raise UnsupportedByEngine(f"{self.location} takes no new file, nor says why")

    def delete(self, path: str) -> None:
        """See `Store`."""
        import obstore

        with suppress(FileNotFoundError), self._answers(path):
            obstore.delete(self._client, path)

    def range(self, path: str, begin: int, end: int) -> bytes:
        """See `Store`."""
        return self.ranges(path, [(begin, end)])[0]

    def ranges(self, path: str, ranges: Ranges) -> list[bytes]:
        """The bytes of each range, in one request, or a few at once. Raises FileNotFoundError."""
        import obstore

        with self._answers(path):
            found = obstore.get_ranges(
                self._client, path, starts=[begin for begin, _ in ranges], ends=[end for _, end in ranges]
            )
        return [bytes(each) for each in found]

    @property
    def _client(self) -> Client:
        return _client(self.location, tuple(sorted(self.options.items())))

    @contextmanager
    def _answers(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as failed:
            raise _silent(self, path, failed) from failed


def _silent(store: RemoteStore, path: str, failed: Exception) -> Exception:
    """The library's text is left out: it may have the address of a login's server, or a request with a token."""
    return UnsupportedByEngine(
        f"{store.location} does not give {path!r} to the driver or takes it from it ({type(failed).__name__})"
    )


class _RemoteSource:
    """The ranges of a file that were brought. Files share it."""

    def __init__(self, store: RemoteStore, path: str, size: int) -> None:
        self._store, self._path, self._size = store, path, size
        self._known: tuple[tuple[int, bytes], ...] = ()

    @property
    def is_remote(self) -> bool:
        return True

    def file(self) -> RemoteFile:
        return RemoteFile(self)

    def fetch(self, ranges: Ranges) -> None:
        wanted = [each for each in ranges if self.known(*each) is None]
        if wanted:
            found = self._store.ranges(self._path, wanted)
            brought = [(begin, data) for (begin, _), data in zip(wanted, found, strict=True)]
            self._known = (*self._known, *brought)  # replaced, not changed: others may read it meanwhile

    @property
    def size(self) -> int:
        return self._size

    def known(self, begin: int, end: int) -> memoryview | None:
        """The bytes from `begin` to `end`, if one range that was brought has them."""
        for at, data in self._known:
            if at <= begin and end <= at + len(data):
                return memoryview(data)[begin - at : end - at]
        return None


@lru_cache(_CLIENTS)
def _client(location: str, options: tuple[tuple[str, str], ...]) -> Client:
    from obstore.store import from_url

    scheme, _, rest = location.partition("://")
    url = f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"
    config = dict(options)
    client = {"allow_http": True} if config.pop("aws_allow_http", "") == "true" else {}
    config.pop("aws_conditional_put", None)
    build: Any = from_url  # typed for each store by its own options
    found: Client = build(url, config=config, client_options=client, retry_config={"max_retries": 3})
    return found


def at_once(work: Callable[[_Given], _Done], given: Sequence[_Given]) -> list[_Done]:
    """Do this work for all of these, up to 32 at once, as each waits for a disk or a store; results in their order.
    Raises the first error."""
    if len(given) < 2:
        return [work(each) for each in given]
    with ThreadPoolExecutor(min(_AT_ONCE, len(given))) as pool:
        return list(pool.map(work, given))


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
