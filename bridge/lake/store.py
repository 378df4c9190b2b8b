"""The files of a table where they are: on a local disk, or in an object store that the driver and the tasks reach.

`local_store` and `remote_store` alone know which. Paths are those of the table's log, decoded: relative to the table's
folder. What `create` and `put_if_absent` have written when they return survives a loss of power.

Sources: "Delta Transaction Log Protocol" (PROTOCOL.md), "Delta Log Entries" (of several writers of a version one wins);
S3's conditional writes (`If-None-Match: *`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from bridge.errors import BridgeError

if TYPE_CHECKING:
    import pyarrow as pa


_AT_ONCE = 32
_Given = TypeVar("_Given")
_Done = TypeVar("_Done")

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""The first byte of each, and the one after its last."""


@dataclass(frozen=True)
class Head:
    """What a store says of a file without its content."""

    size: int
    stamp: str
    """Another one for a file that was written anew under the same name."""
    modified: float
    """Epoch seconds."""


class UnknownOutcome(BridgeError):
    """Raised if a file may be written or not, so that nobody else may do its work: the next run finds out."""


class Source(Protocol):
    """A data file that several threads may read, each with a `file` of its own."""

    @property
    def is_remote(self) -> bool:
        """Whether what is read should be brought before."""
        ...

    def file(self) -> pa.NativeFile | IO[bytes]:
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
        """The bytes from `begin` to `end` of a file that never changes. Raises FileNotFoundError."""
        ...

    def open(self, path: str, size: int) -> Source:
        """A file of `size` bytes that never changes, to be read in parts. Raises FileNotFoundError here, or where it is
        read; none where the process still has those parts."""
        ...

    def head(self, path: str) -> Head | None:
        """What is known of a file; None for one that is missing."""
        ...

    def names(self, folder: str, *, after: str = "") -> list[str]:
        """The names of the files in a folder that come after the name `after`, in their order. Empty for a missing
        folder."""
        ...

    def create(self, path: str, data: bytes | pa.Buffer) -> None:
        """Write a file of a name that nobody else uses and that never changes, with the folders above it."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file that is not there; False, with nothing written, for one that is. Of several writers one wins."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Write a file, also over one that is there, whose readers see the former content or the new one. A loss of
        power may take it back."""
        ...

    def modified(self, path: str) -> float | None:
        """When a file was written, in epoch seconds; None for one that is missing."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file. Does nothing for one that is missing."""
        ...


def at_once(work: Callable[[_Given], _Done], given: Sequence[_Given]) -> list[_Done]:
    """Do this work for all of these, up to 32 at once, as each waits for a disk or a store; results in their order.
    Raises the first error."""
    if len(given) < 2:
        return [work(each) for each in given]
    # Shared by threads: stores (obstore's clients are `Send + Sync` in Rust), and what `work` takes.
    with ThreadPoolExecutor(min(_AT_ONCE, len(given))) as pool:
        return list(pool.map(work, given))
