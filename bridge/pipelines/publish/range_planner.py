"""What a publish sends at a time: versions and snapshots cut into ranges, by what the table's log says of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace

from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.commit_history import CommitHistory, commit_history
from bridge.delta.data_files import data_files, digest
from bridge.delta.direct_changes import can_send_directly
from bridge.delta.table import Table
from bridge.partitioners import TASK_FREE
from bridge.pipelines.publish import file_shards
from bridge.publish_progress import PublishRange

__all__ = ["RangePlanner"]


_PLAN_AHEAD_VERSIONS = 8
"""So many large versions are looked at before the first of them is sent."""


class RangePlanner:
    """The ranges of one run; `shards` tells how many shards so many rows go out in, 0 without transactions. In
    `file_tasks` tasks at a time a shard may be a data file instead (0: it may not)."""

    def __init__(
        self, definition: Definition, table: Table, shards: Callable[[int], int], file_tasks: int = 0
    ) -> None:
        self._definition, self._table, self._shards_for = definition, table, shards
        self._file_tasks = file_tasks
        self._history: CommitHistory | None = None
        self._directly_sendable: dict[int, bool] = {}
        """Versions of others that were looked at."""
        self._operations_to_regroup: set[str] = set()
        """Operations that have made versions which were not plain: they will make more."""

    def snapshot(self, version: int) -> PublishRange:
        """All rows of one version, in chunks of `publish.snapshot-chunk-rows`."""
        rows = change_feed.row_count(self._table, version)
        chunks = max(1, -(-rows // self._definition.publish.snapshot_chunk_rows))
        publish_range = PublishRange(
            version, version, snapshot=True, chunks=chunks, shards=self._shards_for(rows // chunks)
        )
        return self._by_file(publish_range, rows // chunks)

    def changes(self, first: int, last: int) -> Iterator[PublishRange]:
        """One for all versions, both inclusive. In transactions, a version that changes primary keys is a range of
        its own with a single shard: the old key's tombstone and the new key's record belong into one transaction. Not
        so where the shard decides the partition: there a key would leave its own. A version that goes out file by file
        is one, too. Of many large versions the first few are looked at before their ranges come, then the next."""
        if not self._shards_for(0):
            yield PublishRange(first, last)
            return
        for begin, end in self._windows(first, last):
            alone = {publish_range.first: publish_range for publish_range in self._files(begin, end)}
            alone |= {v: PublishRange(v, v, shards=1) for v in self._moves(begin, end, known=alone)}
            yield from self._cut(begin, end, alone)

    def _windows(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Versions first..last in parts, each with few enough that may go out by file: planning to read one takes a
        second, and a publish that is far behind should not plan all before it sends the first."""
        if self._seeks_files:
            told, large = self._commits(first, last), 0
            for version in range(first, last):
                large += told.changed(version, version) >= file_shards.LARGE
                if large == _PLAN_AHEAD_VERSIONS:
                    yield first, version
                    first, large = version + 1, 0
        yield first, last

    @property
    def _seeks_files(self) -> bool:
        return self._file_tasks > 0 and not self._definition.publish.net_changes

    def sends_directly(self, publish_range: PublishRange) -> bool:
        """Whether its rows without -U are what is to be sent, for a topic of upserts: its versions are of an ingest by
        the same PRIMARY KEY (see Commits), or it is a large version that was looked at. It was, where it goes out by
        file."""
        if publish_range.files:
            return True
        others = self.versions_of_other_writers(publish_range)
        return not others or (
            publish_range.first == publish_range.last and self._is_directly_sendable(*others)
        )

    def versions_of_other_writers(self, publish_range: PublishRange) -> list[int]:
        """Its versions that were not written by an ingest with the same PRIMARY KEY (see Commits)."""
        return self._commits(publish_range.first, publish_range.last).versions_of_other_writers(
            publish_range.first, publish_range.last
        )

    def _cut(self, first: int, last: int, alone: Mapping[int, PublishRange]) -> Iterator[PublishRange]:
        """Versions first..last, with ranges of one version among them."""
        for version in sorted(alone):
            if first < version:
                yield self._range(first, version - 1)
            yield alone[version]
            first = version + 1
        if first <= last:
            yield self._range(first, last)

    def _range(self, first: int, last: int) -> PublishRange:
        return PublishRange(
            first, last, shards=self._shards_for(self._commits(first, last).changed(first, last))
        )

    def _files(self, first: int, last: int) -> Iterator[PublishRange]:
        """The versions that go out file by file."""
        if not self._seeks_files:
            return
        for version in range(first, last + 1):
            alone = PublishRange(version, version)
            found = self._by_file(alone, self._commits(first, last).changed(version, version))
            # Whether it is plain is asked last: that reads the version.
            if found.files and self.sends_directly(alone):
                yield found

    def _is_directly_sendable(self, version: int) -> bool:
        told = self._commits(version, version)
        operation = told.others[version]
        if version not in self._directly_sendable:
            if operation in self._operations_to_regroup or told.changed(version, version) < file_shards.LARGE:
                return False
            self._directly_sendable = {
                version: can_send_directly(self._table, version, self._definition.primary_key)
            }
            if not self._directly_sendable[version]:
                self._operations_to_regroup.add(operation)
        return self._directly_sendable[version]

    def _by_file(self, publish_range: PublishRange, rows: int) -> PublishRange:
        """A range of one version, with a shard for each of its files where that pays."""
        if not self._file_tasks or rows < file_shards.LARGE:
            return publish_range
        version = publish_range.last
        read = (
            change_feed.snapshot(self._table, version)
            if publish_range.snapshot
            else change_feed.changes(self._table, version, version)
        )
        files = data_files(read)
        if not file_shards.file_shards_pay_off([file.bytes for file in files], rows, self._file_tasks):
            return publish_range
        return replace(publish_range, shards=len(files), files=digest(files))

    def _moves(self, first: int, last: int, known: Container[int]) -> list[int]:
        """The versions that change primary keys; those that are `known` do not."""
        key, told = self._definition.primary_key, self._commits(first, last)
        several = self._shards_for(told.changed(first, last)) > 1
        if not (several and key and self._definition.topic.sink.partitioner in TASK_FREE):
            return []
        asked = [
            v for v in told.versions_of_other_writers(first, last, ("MERGE", "UPDATE")) if v not in known
        ]
        return change_feed.key_moves(self._table, asked, key)

    def _commits(self, first: int, last: int) -> CommitHistory:
        """What the log says of these versions; it is read once for all ranges of them."""
        told = self._history
        if told is None or not told.first <= first <= last <= told.last:
            self._history = told = commit_history(self._table, first, last, self._definition.primary_key)
        return told
