"""A file of an object store as Python reads files, over ranges that were brought before."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Protocol, TypeAlias

__all__ = ["Brought", "Ranges", "RemoteFile"]

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""The first byte of each, and the one after its last."""

_WHOLE = 1 << 20
"""A smaller file is brought at once; of a larger one the end, where Parquet keeps what is where."""
_TAIL = 1 << 16


class Brought(Protocol):
    """What is known of a file, and how to bring more of it."""

    @property
    def size(self) -> int: ...

    def fetch(self, ranges: Ranges) -> None: ...

    def known(self, begin: int, end: int) -> memoryview | None: ...


class RemoteFile(io.RawIOBase):
    """For one thread. Bytes that were not brought are brought when they are read."""

    def __init__(self, brought: Brought) -> None:
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
