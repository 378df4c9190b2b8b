"""What a publish sends at a time: versions and snapshots cut into stretches, by what the table's log says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pyspark.sql import DataFrame

from bridge.definition import Definition
from bridge.delta import feed
from bridge.delta.commits import Commits, commits
from bridge.delta.data_files import data_files, digest
from bridge.delta.table import Table
from bridge.partitioners import TASK_FREE
from bridge.pipelines import by_file
from bridge.published import Stretch

__all__ = ["Stretches"]


class Stretches:
    """The stretches of one run; `slots` tells how many slots so many rows go out in, 0 without transactions. In
    `file_tasks` tasks at a time a slot may be a data file instead (0: it may not)."""

    def __init__(
        self, definition: Definition, table: Table, slots: Callable[[int], int], file_tasks: int = 0
    ) -> None:
        self._definition, self._table, self._slots = definition, table, slots
        self._file_tasks = file_tasks
        self._told: Commits | None = None

    def snapshot(self, version: int) -> Stretch:
        """All rows of one version, in chunks of `publish.snapshot-chunk-rows`."""
        rows = feed.row_count(self._table, version)
        chunks = max(1, -(-rows // self._definition.publish.snapshot_chunk_rows))
        stretch = Stretch(version, version, snapshot=True, chunks=chunks, slots=self._slots(rows // chunks))
        return self._by_file(stretch, rows // chunks, lambda: feed.snapshot(self._table, version))

    def changes(self, first: int, last: int) -> list[Stretch]:
        """One for all versions, both inclusive. In transactions, a version that changes primary keys is a stretch of
        its own with a single slot: the old key's tombstone and the new key's record belong into one transaction. Not
        so where the slot decides the partition: there a key would leave its own. A version that goes out file by file
        is one, too."""
        if not self._slots(0):
            return [Stretch(first, last)]
        found: list[Stretch] = []
        for version in self._moves(first, last):
            found += self._cut(first, version - 1)
            found.append(Stretch(version, version, slots=1))
            first = version + 1
        return [*found, *self._cut(first, last)]

    def by_others(self, stretch: Stretch) -> list[int]:
        """Its versions that were not written by an ingest (see Commits)."""
        return self._commits(stretch.first, stretch.last).by_others(stretch.first, stretch.last)

    def _cut(self, first: int, last: int) -> Iterator[Stretch]:
        """Versions first..last, none where there is none between them."""
        for version in range(first, last + 1):
            alone = self._version(version)
            if alone.files:
                if first < version:
                    yield self._stretch(first, version - 1)
                yield alone
                first = version + 1
        if first <= last:
            yield self._stretch(first, last)

    def _stretch(self, first: int, last: int) -> Stretch:
        return Stretch(first, last, slots=self._slots(self._commits(first, last).changed(first, last)))

    def _version(self, version: int) -> Stretch:
        stretch = self._stretch(version, version)
        # Of others' versions what is sent depends on all rows of a key: these are brought together anyway.
        if self._definition.publish.net_changes or self.by_others(stretch):
            return stretch
        rows = self._commits(version, version).changed(version, version)
        return self._by_file(stretch, rows, lambda: feed.changes(self._table, version, version))

    def _by_file(self, stretch: Stretch, rows: int, frame: Callable[[], DataFrame]) -> Stretch:
        if not self._file_tasks or rows < by_file.LARGE:
            return stretch
        files = data_files(frame())
        if not by_file.pays([file.bytes for file in files], rows, self._file_tasks):
            return stretch
        return replace(stretch, slots=len(files), files=digest(files))

    def _moves(self, first: int, last: int) -> list[int]:
        key, told = self._definition.primary_key, self._commits(first, last)
        several = self._slots(told.changed(first, last)) > 1
        if not (several and key and self._definition.topic.sink.partitioner in TASK_FREE):
            return []
        return feed.key_moves(self._table, told.by_others(first, last, ("MERGE", "UPDATE")), key)

    def _commits(self, first: int, last: int) -> Commits:
        """What the log says of these versions; it is read once for all stretches of them."""
        told = self._told
        if told is None or not told.first <= first <= last <= told.last:
            self._told = told = commits(self._table, first, last)
        return told
