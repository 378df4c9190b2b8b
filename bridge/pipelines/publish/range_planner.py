"""What a publish sends at a time: versions and snapshots cut into stretches, by what the table's log says of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace

from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.commit_history import Commits, commits
from bridge.delta.data_files import data_files, digest
from bridge.delta.direct_changes import is_plain
from bridge.delta.table import Table
from bridge.partitioners import TASK_FREE
from bridge.pipelines.publish import file_shards
from bridge.publish_progress import Stretch

__all__ = ["Stretches"]


_AHEAD = 8
"""So many large versions are looked at before the first of them is sent."""


class Stretches:
    """The stretches of one run; `slots` tells how many slots so many rows go out in, 0 without transactions. In
    `file_tasks` tasks at a time a slot may be a data file instead (0: it may not)."""

    def __init__(
        self, definition: Definition, table: Table, slots: Callable[[int], int], file_tasks: int = 0
    ) -> None:
        self._definition, self._table, self._slots = definition, table, slots
        self._file_tasks = file_tasks
        self._told: Commits | None = None
        self._plain: dict[int, bool] = {}
        """Versions of others that were looked at."""
        self._odd: set[str] = set()
        """Operations that have made versions which were not plain: they will make more."""

    def snapshot(self, version: int) -> Stretch:
        """All rows of one version, in chunks of `publish.snapshot-chunk-rows`."""
        rows = change_feed.row_count(self._table, version)
        chunks = max(1, -(-rows // self._definition.publish.snapshot_chunk_rows))
        stretch = Stretch(version, version, snapshot=True, chunks=chunks, slots=self._slots(rows // chunks))
        return self._by_file(stretch, rows // chunks)

    def changes(self, first: int, last: int) -> Iterator[Stretch]:
        """One for all versions, both inclusive. In transactions, a version that changes primary keys is a stretch of
        its own with a single slot: the old key's tombstone and the new key's record belong into one transaction. Not
        so where the slot decides the partition: there a key would leave its own. A version that goes out file by file
        is one, too. Of many large versions the first few are looked at before their stretches come, then the next."""
        if not self._slots(0):
            yield Stretch(first, last)
            return
        for begin, end in self._windows(first, last):
            alone = {stretch.first: stretch for stretch in self._files(begin, end)}
            alone |= {v: Stretch(v, v, slots=1) for v in self._moves(begin, end, known=alone)}
            yield from self._cut(begin, end, alone)

    def _windows(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Versions first..last in parts, each with few enough that may go out by file: planning to read one takes a
        second, and a publish that is far behind should not plan all before it sends the first."""
        if self._seeks_files:
            told, large = self._commits(first, last), 0
            for version in range(first, last):
                large += told.changed(version, version) >= file_shards.LARGE
                if large == _AHEAD:
                    yield first, version
                    first, large = version + 1, 0
        yield first, last

    @property
    def _seeks_files(self) -> bool:
        return self._file_tasks > 0 and not self._definition.publish.net_changes

    def direct(self, stretch: Stretch) -> bool:
        """Whether its rows without -U are what is to be sent, for a topic of upserts: its versions are of an ingest by
        the same PRIMARY KEY (see Commits), or it is a large version that was looked at. It was, where it goes out by
        file."""
        if stretch.files:
            return True
        others = self.by_others(stretch)
        return not others or (stretch.first == stretch.last and self._is_plain(*others))

    def by_others(self, stretch: Stretch) -> list[int]:
        """Its versions that were not written by an ingest with the same PRIMARY KEY (see Commits)."""
        return self._commits(stretch.first, stretch.last).by_others(stretch.first, stretch.last)

    def _cut(self, first: int, last: int, alone: Mapping[int, Stretch]) -> Iterator[Stretch]:
        """Versions first..last, with stretches of one version among them."""
        for version in sorted(alone):
            if first < version:
                yield self._stretch(first, version - 1)
            yield alone[version]
            first = version + 1
        if first <= last:
            yield self._stretch(first, last)

    def _stretch(self, first: int, last: int) -> Stretch:
        return Stretch(first, last, slots=self._slots(self._commits(first, last).changed(first, last)))

    def _files(self, first: int, last: int) -> Iterator[Stretch]:
        """The versions that go out file by file."""
        if not self._seeks_files:
            return
        for version in range(first, last + 1):
            alone = Stretch(version, version)
            found = self._by_file(alone, self._commits(first, last).changed(version, version))
            # Whether it is plain is asked last: that reads the version.
            if found.files and self.direct(alone):
                yield found

    def _is_plain(self, version: int) -> bool:
        told = self._commits(version, version)
        operation = told.others[version]
        if version not in self._plain:
            if operation in self._odd or told.changed(version, version) < file_shards.LARGE:
                return False
            self._plain = {version: is_plain(self._table, version, self._definition.primary_key)}
            if not self._plain[version]:
                self._odd.add(operation)
        return self._plain[version]

    def _by_file(self, stretch: Stretch, rows: int) -> Stretch:
        """A stretch of one version, with a slot for each of its files where that pays."""
        if not self._file_tasks or rows < file_shards.LARGE:
            return stretch
        version = stretch.last
        read = (
            change_feed.snapshot(self._table, version)
            if stretch.snapshot
            else change_feed.changes(self._table, version, version)
        )
        files = data_files(read)
        if not file_shards.pays([file.bytes for file in files], rows, self._file_tasks):
            return stretch
        return replace(stretch, slots=len(files), files=digest(files))

    def _moves(self, first: int, last: int, known: Container[int]) -> list[int]:
        """The versions that change primary keys; those that are `known` do not."""
        key, told = self._definition.primary_key, self._commits(first, last)
        several = self._slots(told.changed(first, last)) > 1
        if not (several and key and self._definition.topic.sink.partitioner in TASK_FREE):
            return []
        asked = [v for v in told.by_others(first, last, ("MERGE", "UPDATE")) if v not in known]
        return change_feed.key_moves(self._table, asked, key)

    def _commits(self, first: int, last: int) -> Commits:
        """What the log says of these versions; it is read once for all stretches of them."""
        told = self._told
        if told is None or not told.first <= first <= last <= told.last:
            self._told = told = commits(self._table, first, last, self._definition.primary_key)
        return told
