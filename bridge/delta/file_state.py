"""State in small files of a folder: `run.checkpoint`, the folder of a script's state, a folder beside a table."""

from __future__ import annotations

import hashlib
from contextlib import suppress

from pyspark.sql import SparkSession

from bridge.bridge_folders import claim_file
from bridge.delta.state_store import Medium
from bridge.small_files import SmallFiles


class FileState:
    """See `state_store.StateStore`. `key` is the option that names the folder."""

    def __init__(self, spark: SparkSession, folder: str, key: str = "run.checkpoint") -> None:
        self.key, self._files = key, SmallFiles(spark, folder.rstrip("/"))
        self.medium = Medium.DISK if self._files.local else Medium.STORE

    def place(self, name: str) -> str:
        return self._files.path_of(name)

    def names(self, folder: str) -> list[str]:
        return self._files.names(folder)

    def read(self, name: str) -> str | None:
        try:
            return self._files.read(name)
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        self._files.replace(name, text)

    def put_if_absent(self, name: str, text: str) -> bool:
        return self._files.put_if_absent(name, text)

    def swap(self, name: str, before: str | None, after: str, *, attempt: int = 0) -> bool:
        """A claim file named after `before` is created first: only one writer can create it."""
        digest = hashlib.sha256((before or "").encode()).hexdigest()[:16]
        if not self._files.put_if_absent(claim_file(name, digest, attempt), after):
            return False
        # A slow writer may create the same claim again after another one has written the text and deleted its claim.
        is_unchanged = self._read_or_empty(name) == before
        if is_unchanged:
            self._files.replace(name, after)
        for number in range(attempt + 1):
            with suppress(Exception):
                self._files.delete(claim_file(name, digest, number))
        return is_unchanged

    def delete(self, *names: str) -> None:
        for name in names:
            self._files.delete(name)

    def _read_or_empty(self, name: str) -> str | None:
        """A file that cannot be read counts as empty, as for who watches it; writing it raises the error."""
        try:
            return self.read(name)
        except Exception:
            return ""
