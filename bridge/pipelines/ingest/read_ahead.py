"""Reads the next batch while the present one is merged."""

from __future__ import annotations

import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from bridge.offsets import Offsets

__all__ = ["BatchReader", "ReadAhead"]

_Batch = TypeVar("_Batch")
_Batch_co = TypeVar("_Batch_co", covariant=True)


class BatchReader(Protocol[_Batch_co]):
    """Reads batches of a topic by jobs whose tasks are consumers. See `ConsumerReader`, which promises the same."""

    def read(self, start: Offsets, end: Offsets, *, job_group: str | None = None) -> _Batch_co:
        """Return the batch of the records from `start` to `end`. Raises NotThisWay where only Spark's path reads them
        exactly."""
        ...

    def cancel(self, job_group: str) -> None:
        """End the job of a `read` in another thread, which then raises Spark's error. Does nothing without one."""
        ...


class ReadAhead(Generic[_Batch]):
    """A reader that can be told which batch comes next; a context manager.

    Batches are read once each and returned in the order in which they are asked for. What reading one ahead raises,
    `read` raises when it asks for it. At the end of the block nothing is being read any more.
    """

    def __init__(self, reader: BatchReader[_Batch]) -> None:
        self._reader = reader
        # Shared by threads, as this one reads while another one commits: what the reader has, which is the SparkContext
        # (py4j opens a connection for each thread), values that do not change, the client of the schema registry (see
        # `RegistryClient`), and of a table without a key `FileAppends`, which has a lock. A batch is handed over whole,
        # and its Arrow tables are immutable. Engines, and the DeltaTables and files that they open, are the other
        # thread's alone.
        self._pool = ThreadPoolExecutor(1, "read-ahead")
        self._group = f"read-ahead {uuid.uuid4().hex}"
        self._ahead: tuple[Offsets, Offsets] | None = None
        self._future: Future[_Batch] = Future()

    def end_after(self, start: Offsets) -> Offsets | None:
        """Where the batch ends that begins at `start` and is being read ahead; None if there is none."""
        return self._ahead[1] if self._ahead is not None and self._ahead[0] == start else None

    def read(self, start: Offsets, end: Offsets) -> _Batch:
        """Do as `BatchReader.read`; takes what was read ahead, if it is this batch."""
        if self._ahead == (start, end):
            self._ahead = None
            return self._future.result()
        self.discard()
        return self._reader.read(start, end)

    def read_ahead(self, start: Offsets, end: Offsets) -> None:
        """Begin to read the batch from `start` to `end`, which is to be asked for next. Does nothing if it is empty."""
        if not start.reaches(end):
            self._ahead = start, end
            self._future = self._pool.submit(self._reader.read, start, end, job_group=self._group)

    def discard(self) -> None:
        """Forget what was read ahead, and wait until nothing is being read."""
        if self._ahead is not None:
            self._ahead = None
            if not self._future.cancel():
                self._reader.cancel(self._group)
                self._future.exception()

    def __enter__(self) -> ReadAhead[_Batch]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()
        self._pool.shutdown()
