"""The interface of where runs keep their state: leases, publish logs, registrations, counts of partitions.

`FileState` keeps it in small files of a folder, `TableState` in rows of a Delta table (ADR 084). A name is a path, such
as `ingest.lease.json` or `publish/00000000000000000007.json`: the file, and what a row is called.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Medium(Enum):
    """What a read or a write costs."""

    DISK = "a local disk"
    STORE = "an object store: a request"
    TABLE = "a Delta table: a job of Spark, and for a write a commit"


class StateStore(Protocol):
    """Texts by their names. Any thread may use it.

    A write is whole or not there; in HDFS a reader of `write` may see a part of it. Methods raise the storage's own
    errors, BridgeError where these would say too little.
    """

    key: str
    """The option that names the place, for messages: `run.checkpoint`, `run.state`."""
    medium: Medium

    def place(self, name: str) -> str:
        """Where a text is, as messages name it."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names of the texts in a folder, sorted, without the folder; [] where there is none."""
        ...

    def read(self, name: str) -> str | None:
        """The text; None where there is none."""
        ...

    def write(self, name: str, text: str) -> None:
        """Set a text, whether there is one or not. Of two writers at the same time the text of one stays."""
        ...

    def put_if_absent(self, name: str, text: str) -> bool:
        """Set a text that is not there, and return True; else change nothing. Of several writers one gets True."""
        ...

    def swap(self, name: str, before: str | None, after: str, *, attempt: int = 0) -> bool:
        """Set a text if it is `before`, and return True; else change nothing. Of several writers that replace the same
        text one gets True.

        A writer that died in the middle may keep all others out. Who knows that `attempt` writers did so passes their
        number."""
        ...

    def delete(self, *names: str) -> None:
        """Delete texts, those of them that are there."""
        ...
