"""The Delta tables that a script reads: the states of its topics, and Delta tables as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.columns import KIND, col, retracts
from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.appended_files import appended_rows, rows_at
from bridge.delta.delta_errors import feed_errors
from bridge.delta.file_removal import removed_before
from bridge.delta.ingest_progress import read_progress
from bridge.delta.table import Table, described, exists, open_table
from bridge.errors import GapError, TableError
from bridge.offsets import Offsets, TopicPartition
from bridge.pipelines.runtime.preflight import (
    ingest_table,
    refuse_part_of_history,
    refuse_unseen_deletions,
    table_fields,
)
from bridge.pipelines.scripts.state import ScriptState
from bridge.rows import RowKind
from bridge.sql import InsertPlan
from bridge.sql.plan import EventTime
from bridge.sql.positions import POSITION_COLUMNS
from bridge.ways import NotThisWay

DELTA_PARTITION: TopicPartition = ("", 0)
"""The partition of all rows of a Delta table."""


@dataclass(frozen=True)
class SourceRange:
    """The versions of one source between two refreshes of a result: `first` to `last`, both inclusive.

    `first` is above `last` where nothing was committed.
    """

    table: Table
    first: int
    last: int
    appends: bool
    """True if only ingests add rows, and never update or delete them."""

    @property
    def has_commits(self) -> bool:
        return self.first <= self.last

    @property
    def is_part(self) -> bool:
        """Whether there are commits, and others before them, so that the change feed is needed."""
        return self.has_commits and self.first > 0

    def rows(self, spark: SparkSession) -> DataFrame:
        """All rows of the last version, in session `spark`; Delta leaves out files by the statistics of a filter."""
        return self._rows_at(self.last, spark)

    def whole_rows(self, spark: SparkSession) -> DataFrame:
        """The same for a query that reads all files. Wrap actions in `feed_errors`."""
        with suppress(NotThisWay):
            return rows_at(self.table.on(spark), self.last)
        return self.rows(spark)

    def rows_before(self, spark: SparkSession) -> DataFrame:
        """All rows of the version before the range, none if it begins with the table. Wrap actions in `feed_errors`."""
        if self.first == 0:
            return self.whole_rows(spark).limit(0)
        with suppress(NotThisWay):
            return rows_at(self.table.on(spark), self.first - 1)
        return self._rows_at(self.first - 1, spark)

    def _rows_at(self, version: int, spark: SparkSession) -> DataFrame:
        rows = self.table.on(spark).read({"versionAsOf": str(version)})
        return rows.select(*map(col, self.table.columns))

    def changes(self, spark: SparkSession) -> DataFrame:
        """The changes of the range with `__kind`, updates with both rows; see `change_feed.changes`.

        Raises GapError if the change feed no longer has these versions.
        """
        table = self.table.on(spark)
        change_feed.check_feed(table, self.first, self.last, table.id)
        return change_feed.changes(table, self.first, self.last)

    def _whole(self, spark: SparkSession) -> DataFrame:
        """All rows of a range that begins with the table, none of one without commits."""
        return self.whole_rows(spark) if self.has_commits else self.whole_rows(spark).limit(0)

    def _appended(self, spark: SparkSession) -> DataFrame:
        """The changed rows of a part. Raises NotThisWay unless all of them were added and their files are known."""
        return appended_rows(self.table.on(spark), self.first, self.last)

    def changed_rows(self, spark: SparkSession) -> DataFrame:
        """The rows that the range added, updated (as they are now) or deleted; all rows if it begins with the table."""
        return self._rows_of(spark, col(KIND) != F.lit(RowKind.UPDATE_BEFORE.value))

    def new_rows(self, spark: SparkSession) -> DataFrame:
        """The rows that the range added or updated, as they are now; all rows if it begins with the table."""
        return self._rows_of(spark, ~retracts())

    def _rows_of(self, spark: SparkSession, taken: Column) -> DataFrame:
        """The rows of the changes that are `taken`; all rows if the range begins with the table."""
        if not self.is_part:
            return self._whole(spark)
        with suppress(NotThisWay):
            return self._appended(spark)
        return self.changes(spark).where(taken).select(*map(col, self.table.columns))

    def newest_times(self, spark: SparkSession, column: str) -> DataFrame:
        """The newest time of a column among the rows that the range added or updated: `topic`, `partition` (a Delta
        table has one) and `newest`, in epoch milliseconds, null where all times are. For ranges with commits."""
        names = [c.name for c in POSITION_COLUMNS[:2]]
        by = [
            col(n) if n in self.table.columns else F.lit(v)
            for n, v in zip(names, DELTA_PARTITION, strict=True)
        ]
        newest = F.max(F.floor(F.unix_micros(col(column).cast("timestamp")) / F.lit(1000)))
        groups = (c.alias(n) for c, n in zip(by, ("topic", "partition"), strict=True))
        return self.new_rows(spark).groupBy(*groups).agg(newest.alias("newest"))

    def added_rows(self, spark: SparkSession) -> DataFrame:
        """The rows that the range added, all of them if it begins with the table. Raises TableError if it updated or
        deleted rows: a user's table may do so, a state does it when it is restored."""
        if not self.is_part:
            return self._whole(spark)
        with suppress(NotThisWay):
            return self._appended(spark)
        changes = self.changes(spark)
        with feed_errors(self.table, self.first, self.last):
            other = changes.where(col(KIND) != F.lit(RowKind.INSERT.value)).head()
        if other is not None:
            raise TableError(
                f"table {self.table}: rows were updated or deleted in versions {self.first} to {self.last}, but "
                + (
                    "records of a topic without a key are only added to it, so a writer other than this script did it, "
                    "such as RESTORE; nothing was written. Run the script with --rebuild, which computes the result "
                    "again and sends what differs"
                    if self.appends
                    else "a table without a PRIMARY KEY is read as append-only; declare its key in CREATE TABLE"
                )
            )
        return changes.select(*map(col, self.table.columns))


@dataclass(frozen=True)
class SourceTables:
    """The sources of one INSERT at one version each, which are the versions of one refresh."""

    tables: Mapping[str, Table]
    versions: Mapping[str, int]
    appends: Mapping[str, bool]
    partitions: Mapping[str, tuple[TopicPartition, ...]]
    """Those of a source's topics; a Delta table has DELTA_PARTITION."""
    ended: frozenset[str] = frozenset()
    """The sources that were read to their bound, so that no row of them will come in this run."""

    def complete_after_ms(self, time: EventTime) -> int | None:
        """The time after which windows of a source that end have all of their rows; None if all have, as no row was
        removed."""
        before = removed_before(self.tables[time.source])
        return None if before is None else before + time.longest_ms - 1

    @property
    def offsets(self) -> Offsets:
        """The progress of a result that has all rows of these versions: the next version of each source."""
        return Offsets({(name, 0): version + 1 for name, version in self.versions.items()})

    @property
    def ids(self) -> dict[str, str]:
        """Delta's id of each source: a table that was replaced has another one."""
        return {name: table.id for name, table in self.tables.items()}

    def ranges(self, since: Offsets) -> dict[str, SourceRange]:
        """The range of each source since the progress of a result."""
        return {
            name: SourceRange(table, since.get(name, 0) or 0, self.versions[name], self.appends[name])
            for name, table in self.tables.items()
        }

    @property
    def are_complete(self) -> bool:
        """Whether no source has lost rows of closed windows."""
        return all(removed_before(table) is None for table in self.tables.values())

    def check_complete(self, result: object) -> None:
        """Raise TableError if a source has lost rows, for an INSERT that is not computed by windows."""
        for name, table in self.tables.items():
            if removed_before(table) is not None:
                raise TableError(
                    f"table {result}: rows of closed windows were removed from the state of `{name}` "
                    "(SET 'bridge.state.closed-windows' = 'remove'), and this INSERT needs them. Give the script "
                    "another name (SET 'pipeline.name' = ...), and it reads the topic anew"
                )

    def check_same(self, ids: Mapping[str, str], result: object) -> None:
        """Raise GapError if a source is another table than that from which the result was computed."""
        for name, table in self.tables.items():
            if ids.get(name) != table.id:
                raise GapError(
                    f"table {result}: it was computed from another table than `{name}` is now ({table}): the "
                    "source was replaced. Run the script with --rebuild, which computes the result again and sends "
                    "what differs"
                )


def with_kept_positions(spark: SparkSession, state: ScriptState) -> ScriptState:
    """The same script, whose states keep the positions of records where they do so now, and where they are new and rows
    that fail are named by them. A state that was made without them stays as it is."""
    wanted = {
        name for plan in state.script.inserts for failing in plan.failing for name in failing.positioned
    }
    keeping = set()
    for source in state.script.sources:
        table = state.tables[source.name]
        target = state.source_target(table)
        if table.topic is not None and (
            POSITION_COLUMNS[0].name in described(spark, target).schema.names
            if exists(spark, target)
            else source.name in wanted
        ):
            keeping.add(source.name)
    return replace(state, keeping=frozenset(keeping))


def open_sources(
    spark: SparkSession,
    state: ScriptState,
    plan: InsertPlan,
    opened: dict[str, tuple[Table, int]] | None = None,
    ended: Collection[str] = (),
) -> SourceTables:
    """Open the sources of an INSERT at their newest versions. The state of a topic is created if it is absent.

    `opened` are states of topics with their versions that are opened already; those of this call are added to it.
    INSERTs of one round share it, since no INSERT writes a state. `ended` are tables of the script that were read to
    their bound.

    Raises TableError for a Delta table that is absent, has other columns, or has no change feed, and for one that keeps
    deleted rows by a column that the script does not read.
    """
    tables, versions, appends, partitions = {}, {}, {}, {}
    for source in plan.sources:
        declared = state.tables[source.name]
        definition = state.ingest(declared)
        if opened is not None and source.name in opened:
            table, version = opened[source.name]
        elif definition is not None:
            table = ingest_table(spark, definition)
            version = change_feed.latest_version(table)
            if opened is not None:
                opened[source.name] = table, version
        else:
            fields = table_fields(spark, declared.ddl.schema)
            table = open_table(spark, state.source_target(declared), fields, extra_columns="unused")
            refuse_part_of_history(table, declared.ddl.schema.primary_key)
            refuse_unseen_deletions(table, "Name {0!r} in its DDL, and read it with WHERE {0} IS NULL")
            version = change_feed.latest_version(table)
        tables[source.name], versions[source.name] = table, version
        appends[source.name] = declared.topic is not None and declared.topic.appends
        partitions[source.name] = _partitions(table, definition)
    return SourceTables(tables, versions, appends, partitions, frozenset(ended) & tables.keys())


def _partitions(table: Table, definition: Definition | None) -> tuple[TopicPartition, ...]:
    if definition is None:
        return (DELTA_PARTITION,)
    found = read_progress(table, definition.name)
    return tuple((topic, number) for topic, number, _ in found[0].offsets) if found else ()
