"""The files of a table in an object store, by the library obstore."""

from __future__ import annotations

import io
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, cast

from bridge.lake.store import Head, Ranges, Source, UnknownOutcome
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore.store import ObjectStore as Client


_TRIES = 5
_WRITER = "bridgewriter"
"""Of metadata; Azure takes no other signs in its name."""
_CLIENTS = 64
_WHOLE = 1 << 20
"""A smaller file is brought at once; of a larger one the end, where Parquet keeps what is where."""
_TAIL = 1 << 16
KEPT_BYTES = 256 << 20


@dataclass(frozen=True)
class RemoteStore:
    """A folder of S3, Azure or Google Cloud Storage. Raises NotThisWay where the store does not answer, or
    where it answers otherwise than it must, as Spark may reach it another way."""

    location: str
    """See `Store`."""
    options: Mapping[str, str] = field(repr=False, hash=False)
    """Of the library object_store, as delta-rs takes them; they hold secrets."""
    keeps: bool = field(default=True, compare=False)
    """Whether what is read and written is kept (see `_Kept`). A task does not read again what it has written."""

    def __reduce__(self) -> tuple[type[RemoteStore], tuple[str, Mapping[str, str], bool]]:
        return RemoteStore, (self.location, self.options, False)

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

        prefix = f"{folder}/" if folder else ""
        with self._answers(folder):
            listed = obstore.list(self._client, prefix, offset=f"{prefix}{after}" if after else None)
            paths = [entry["path"] for batch in listed for entry in batch]
        names = (path.removeprefix(prefix) for path in paths)
        return sorted(name for name in names if "/" not in name)

    def create(self, path: str, data: bytes | pa.Buffer) -> None:
        """See `Store`."""
        self._put(path, data)
        content = memoryview(data).cast("B")
        begin = 0 if content.nbytes <= _WHOLE else content.nbytes - _TAIL
        kept.keep(self, path, [(begin, bytes(content[begin:]))])

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `Store`. The file carries a mark of its writer, who finds it where the answer was lost. Raises
        UnknownOutcome, too, where the store then does not answer."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError

        writer = uuid.uuid4().hex
        for attempt in range(1, _TRIES + 1):
            try:
                obstore.put(self._client, path, data, mode="create", attributes={_WRITER: writer})
                return True
            except (AlreadyExistsError, PreconditionError, GenericError):
                with suppress(FileNotFoundError, NotThisWay):
                    return self._writer_of(path) == writer
                # 409: another request for the object was under way, and did not succeed.
                time.sleep(0.1 * attempt)
            except Exception as failed:
                raise _silent(self, path, failed) from failed
        raise UnknownOutcome(
            f"{self.location} does not say whether {path} was written; start the run again: it continues from the table"
        )

    def _writer_of(self, path: str) -> str | None:
        """The mark of a file; None for one of another program."""
        import obstore

        with self._answers(path):
            return obstore.get(self._client, path).attributes.get(_WRITER)

    def replace(self, path: str, data: bytes) -> None:
        """See `Store`."""
        kept.forget(self, path)
        self._put(path, data)

    def _put(self, path: str, data: bytes | pa.Buffer) -> None:
        import obstore

        try:
            with self._answers(path):
                obstore.put(self._client, path, memoryview(data).cast("B"))
        except FileNotFoundError as failed:  # the bucket
            raise _silent(self, path, failed) from failed

    def modified(self, path: str) -> float | None:
        """See `Store`."""
        found = self.head(path)
        return None if found is None else found.modified

    def delete(self, path: str) -> None:
        """See `Store`."""
        import obstore

        kept.forget(self, path)
        with suppress(FileNotFoundError), self._answers(path):
            obstore.delete(self._client, path)

    def range(self, path: str, begin: int, end: int) -> bytes:
        """See `Store`."""
        known = _within(kept.of(self, path), begin, end)
        if known is not None:
            return bytes(known)
        found = self.ranges(path, [(begin, end)])[0]
        kept.keep(self, path, [(begin, found)])
        return found

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
    return NotThisWay(
        f"{store.location} does not give {path!r} to the driver or takes it from it ({type(failed).__name__})"
    )


class _RemoteSource:
    """The ranges of a file that were brought. Files share it."""

    def __init__(self, store: RemoteStore, path: str, size: int) -> None:
        self._store, self._path, self._size = store, path, size
        self._known: tuple[_Range, ...] = kept.of(store, path)

    @property
    def is_remote(self) -> bool:
        return True

    def file(self) -> IO[bytes]:
        return cast("IO[bytes]", _RemoteFile(self))

    def fetch(self, ranges: Ranges) -> None:
        wanted = joined(each for each in ranges if self.known(*each) is None)
        if wanted and self._size <= _WHOLE:
            wanted = [(0, self._size)]
        if wanted:
            found = self._store.ranges(self._path, wanted)
            brought = [(begin, data) for (begin, _), data in zip(wanted, found, strict=True)]
            self._known = (*self._known, *brought)  # replaced, not changed: others may read it meanwhile
            kept.keep(self._store, self._path, brought)

    @property
    def size(self) -> int:
        return self._size

    def known(self, begin: int, end: int) -> memoryview | None:
        """The bytes from `begin` to `end`, if one range that was brought has them."""
        return _within(self._known, begin, end)


_Range = tuple[int, bytes]
"""Where the bytes begin in their file."""


def _within(ranges: Iterable[_Range], begin: int, end: int) -> memoryview | None:
    for at, data in ranges:
        if at <= begin and end <= at + len(data):
            return memoryview(data)[begin - at : end - at]
    return None


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in as few ranges as they have: columns of a row group stand one after the other."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if found and begin <= found[-1][1]:
            first, last = found.pop()
            found.append((first, max(last, end)))
        else:
            found.append((begin, end))
    return found


class _Kept:
    """What was written or read last of files, which do not change: columns, footers, vectors; no more than
    `KEPT_BYTES`. Batches look at the same files again and again, and without it would bring them each time."""

    def __init__(self) -> None:
        # Shared by threads: all of them read and write files of tables.
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[RemoteStore, str], tuple[_Range, ...]] = OrderedDict()
        self._bytes = 0

    def of(self, store: RemoteStore, path: str) -> tuple[_Range, ...]:
        """What is kept of a file."""
        with self._lock:
            if (store, path) not in self._files:
                return ()
            self._files.move_to_end((store, path))
            return self._files[store, path]

    def keep(self, store: RemoteStore, path: str, ranges: Sequence[_Range]) -> None:
        """Keep these ranges of a file, too; those of the files that nobody has asked for longest go."""
        if not store.keeps:
            return
        with self._lock:
            self._files[store, path] = (*self._files.pop((store, path), ()), *ranges)
            self._bytes += _bytes_of(ranges)
            while self._bytes > KEPT_BYTES:
                self._bytes -= _bytes_of(self._files.popitem(last=False)[1])

    def forget(self, store: RemoteStore, path: str) -> None:
        """Keep nothing of a file."""
        with self._lock:
            self._bytes -= _bytes_of(self._files.pop((store, path), ()))


def _bytes_of(ranges: Iterable[_Range]) -> int:
    return sum(len(data) for _, data in ranges)


kept = _Kept()


@lru_cache(_CLIENTS)
def _client(location: str, options: tuple[tuple[str, str], ...]) -> Client:
    from obstore.store import from_url

    scheme, _, rest = location.partition("://")
    url = f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"
    config = dict(options)
    in_clear = [config.pop(name, "") for name in ("aws_allow_http", "azure_allow_http", "google_allow_http")]
    client = {"allow_http": True} if "true" in in_clear else {}
    config.pop("aws_conditional_put", None)
    build: Any = from_url  # typed for each store by its own options
    found: Client = build(url, config=config, client_options=client, retry_config={"max_retries": 3})
    return found


class _RemoteFile(io.RawIOBase):
    """For one thread. Bytes that were not brought are brought when they are read."""

    def __init__(self, brought: _RemoteSource) -> None:
        self._brought, self._at = brought, 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The place of the next byte to read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; see `io.IOBase.seek`."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._brought.size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer at the end; all that are left for a negative size."""
        end = self._brought.size if size < 0 else min(self._at + size, self._brought.size)
        if end <= self._at:
            return b""
        found = self._brought.known(self._at, end)
        if found is None:
            self._brought.fetch([self._with_more(self._at, end)])
            found = self._brought.known(self._at, end)
            assert found is not None
        self._at = end
        return bytes(found)

    def _with_more(self, begin: int, end: int) -> tuple[int, int]:
        size = self._brought.size
        if size <= _WHOLE:
            return 0, size
        return (min(begin, max(0, size - _TAIL)), end) if end == size else (begin, end)
