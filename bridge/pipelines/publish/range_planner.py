"""Cuts the versions of a table into publish ranges, by the operations and row counts in its log."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.commit_history import CommitHistory, can_send_directly, commit_history
from bridge.delta.data_files import data_files, digest
from bridge.delta.table import Table
from bridge.options import FORMATS
from bridge.partitioners import TASK_FREE
from bridge.pipelines.publish.sharding import FileShardLimits, Sharding
from bridge.pipelines.runtime.spark_errors import explain_errors
from bridge.publish_progress import PublishRange


class RangePlanner:
    """Plans the ranges of one run. A plan is made once, when the range is cut or taken over, and carried from there."""

    def __init__(
        self,
        definition: Definition,
        table: Table,
        sharding: Sharding | None,
        file_limits: FileShardLimits,
    ) -> None:
        """`sharding` is None without transactions."""
        self._definition, self._table, self._sharding = definition, table, sharding
        self._file_limits = file_limits
        self._file_tasks = sharding.file_tasks if sharding is not None else 0
        self._history: CommitHistory | None = None
        self._operations_to_compact: set[str] = set()
        """Operations of other writers of which a version could not be sent directly: no other version of theirs is
        read to find out."""

    def snapshot(self, version: int) -> PlannedRange:
        """Plan all rows of one version, in chunks of `publish.snapshot-chunk-rows`. Raises GapError."""
        rows = change_feed.row_count(self._table, version)
        chunks = max(1, -(-rows // self._definition.publish.snapshot_chunk_rows))
        rows_per_chunk = rows // chunks
        publish_range = PublishRange(
            version, version, snapshot=True, chunks=chunks, shards=self._shards(rows_per_chunk)
        )
        return self.plan(self._sharded_by_file(publish_range, rows_per_chunk))

    def changes(self, first: int, last: int) -> Iterator[PlannedRange]:
        """Plan the changes of versions first..last, both inclusive.

        Without transactions they are one range. With them, a version that changes primary keys is a range of its own
        with one shard, so that the old key's tombstone and the new key's record are in one transaction; not so where
        the shard decides the partition, as the keys would leave theirs. A version that is sharded by file is a range
        of its own, too. Raises GapError when versions are gone, TableError.
        """
        if self._sharding is None:
            yield self.plan(PublishRange(first, last))
            return
        for begin, end in self._windows(first, last):
            single = {publish_range.first: publish_range for publish_range in self._file_ranges(begin, end)}
            single |= {v: PublishRange(v, v, shards=1) for v in self._key_moves(begin, end, known=single)}
            for publish_range in self._cut(begin, end, single):
                yield self.plan(publish_range)

    def plan(self, publish_range: PublishRange) -> PlannedRange:
        """Decide how the rows of a range are made; for a range that is taken over from an earlier run, too.

        May read one large version of another writer, in one Spark job. Raises GapError when its files are gone.
        """
        return PlannedRange(publish_range, self._compaction(publish_range))

    def _compaction(self, publish_range: PublishRange) -> Compaction:
        topic = self._definition.topic
        insert_only = FORMATS[topic.value.name].insert_only
        if publish_range.snapshot:
            return Compaction.NONE if insert_only else Compaction.EACH
        if topic.appends:
            return Compaction.INSERTS_ONLY if insert_only else Compaction.EACH
        if self._definition.publish.net_changes:
            return Compaction.NET_OF_RANGE
        if insert_only and self._can_send_directly(publish_range):
            return Compaction.WITHOUT_BEFORE_IMAGES
        return Compaction.NET_OF_VERSION

    def _can_send_directly(self, publish_range: PublishRange) -> bool:
        """Whether the changes without -U are the net changes of each version: all versions are batches of an ingest by
        the same PRIMARY KEY (see CommitHistory), or there is one large version that was read. A version that is sharded
        by file was read before. Never where the table hides rows: an update that hides one is a deletion."""
        if self._table.hides_by:
            return False
        if publish_range.files:
            return True
        first, last = publish_range.first, publish_range.last
        others = self._commits(first, last).versions_of_other_writers(first, last)
        return not others or (first == last and self._is_read_as_direct(*others))

    def _is_read_as_direct(self, version: int) -> bool:
        commits = self._commits(version, version)
        operation = commits.others[version]
        if operation in self._operations_to_compact or not self._is_large(commits.changed(version, version)):
            return False
        with explain_errors(self._table.spark, self._definition, f"reading version {version} to plan it"):
            direct = can_send_directly(self._table, version, self._definition.primary_key)
        if not direct:
            self._operations_to_compact.add(operation)
        return direct

    def _windows(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Versions first..last in parts that end with a large version each: planning to read one takes up to a second,
        and a publish that is far behind should send the first before it plans the next."""
        if self._seeks_files:
            commits = self._commits(first, last)
            for version in range(first, last):
                if self._is_large(commits.changed(version, version)):
                    yield first, version
                    first = version + 1
        yield first, last

    def _cut(self, first: int, last: int, single: Mapping[int, PublishRange]) -> Iterator[PublishRange]:
        """Ranges for versions first..last, with the ranges of `single` versions among them."""
        for version in sorted(single):
            if first < version:
                yield self._range(first, version - 1)
            yield single[version]
            first = version + 1
        if first <= last:
            yield self._range(first, last)

    def _range(self, first: int, last: int) -> PublishRange:
        rows = self._commits(first, last).changed(first, last)
        return PublishRange(first, last, shards=self._shards(rows))

    def _file_ranges(self, first: int, last: int) -> Iterator[PublishRange]:
        """Ranges of the versions among first..last that are sharded by file."""
        if not self._seeks_files:
            return
        for version in range(first, last + 1):
            rows = self._commits(first, last).changed(version, version)
            publish_range = self._sharded_by_file(PublishRange(version, version), rows)
            # The cheaper question first: the second one may read the version.
            if publish_range.files and self._can_send_directly(PublishRange(version, version)):
                yield publish_range

    def _sharded_by_file(self, publish_range: PublishRange, rows: int) -> PublishRange:
        """A range of one version, with a shard for each of its files where that pays off."""
        if not self._file_tasks or not self._is_large(rows) or self._table.hides_by:
            return publish_range
        version = publish_range.last
        frame = (
            change_feed.snapshot(self._table, version, by_delta=True)
            if publish_range.snapshot
            else change_feed.changes(self._table, version, version, by_delta=True)
        )
        files = data_files(frame)
        if not self._file_limits.pay_off([file.bytes for file in files], rows, self._file_tasks):
            return publish_range
        return replace(publish_range, shards=len(files), files=digest(files))

    def _key_moves(self, first: int, last: int, known: Container[int]) -> list[int]:
        """The versions among first..last that change primary keys; those that are `known` do not."""
        key, commits = self._definition.primary_key, self._commits(first, last)
        several = self._shards(commits.changed(first, last)) > 1
        if not (several and key and self._definition.topic.sink.partitioner in TASK_FREE):
            return []
        candidates = commits.versions_of_other_writers(first, last, ("MERGE", "UPDATE"))
        return change_feed.key_moves(self._table, [v for v in candidates if v not in known], key)

    @property
    def _seeks_files(self) -> bool:
        return self._file_tasks > 0 and not self._definition.publish.net_changes

    def _is_large(self, rows: int) -> bool:
        return rows >= self._file_limits.min_rows

    def _shards(self, rows: int) -> int:
        return 0 if self._sharding is None else self._sharding.shards(rows)

    def _commits(self, first: int, last: int) -> CommitHistory:
        """The commits of these versions; the log is read once for all ranges among them."""
        history = self._history
        if history is None or not history.first <= first <= last <= history.last:
            key = self._definition.primary_key
            self._history = history = commit_history(self._table, first, last, key)
        return history


class Compaction(Enum):
    """How the rows of a range become the changes that are encoded."""

    NONE = "none"
    """The rows of a snapshot are sent as they are read."""
    INSERTS_ONLY = "inserts only"
    """Rows without a PRIMARY KEY in an insert-only format: sent as they are read; updates and deletes are refused."""
    EACH = "each"
    """Every change is sent with its row before or after; see compact.each."""
    WITHOUT_BEFORE_IMAGES = "without before images"
    """+I, +U and -D are sent as they are read, -U are left out: each key has one change in each version."""
    NET_OF_VERSION = "net of version"
    """The net change of each key in each version; see compact.net."""
    NET_OF_RANGE = "net of range"
    """The net change of each key over all versions of the range (`publish.net-changes`)."""


@dataclass(frozen=True)
class PlannedRange:
    """What a publish sends next, in memory only; `recorded` is the part of it that progress records."""

    recorded: PublishRange
    compaction: Compaction

    def continued(self, open_range: PublishRange | None) -> PlannedRange | None:
        """The same plan for `open_range` of the progress: the range itself, once opened, or the next chunk of its
        snapshot. None when no range is open."""
        return None if open_range is None else replace(self, recorded=open_range)
