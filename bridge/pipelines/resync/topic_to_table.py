"""topic -decode, fold-> rows -compare with the table-> differences -merge-> Delta"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from bridge import failpoints
from bridge.backend import Feature, require
from bridge.columns import KIND, POSITION, col, differs, retracts, same_key
from bridge.definition import Definition, Topic
from bridge.delta import change_feed
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.delta_errors import feed_errors
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import last_batch, read_progress
from bridge.delta.merge_semantics import INSERT_ALWAYS, merge_own_columns, repair_by_key
from bridge.delta.merge_spark import SparkEngine
from bridge.delta.rows_taken_back import following
from bridge.delta.table import Table
from bridge.delta.table_checks import (
    MEMORY_PROPERTY,
    ONCE_PROPERTY,
    SEMANTICS_PROPERTY,
    property_of,
    semantics_property,
)
from bridge.delta.timeline import Timeline
from bridge.errors import DefinitionError, GapError, TableError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.kafka.offset_availability import check_offsets_available
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.pipelines.changes.bad_records import quarantine_bad_records, refuse_bad_records
from bridge.pipelines.changes.batch_stats import BatchStats, collect_batch_stats
from bridge.pipelines.changes.own_rows import own_rows
from bridge.pipelines.changes.truncates import Applied, settle
from bridge.pipelines.changes.unfit_rows import with_constraints
from bridge.pipelines.compare.verify import refuse_compacted
from bridge.pipelines.resync.report import Resync, refuse_appends
from bridge.pipelines.runtime.executors import check_executors
from bridge.pipelines.runtime.kafka_read_errors import explained_read_error
from bridge.pipelines.runtime.lease import Lease, acquire_lease
from bridge.pipelines.runtime.lineage import ingest_flow, tracked_command
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import (
    ingest_table,
    open_whole_table,
    record_running_resync,
    record_semantics,
    refuse_partitions,
)
from bridge.rows import RowKind

_INSERTED, _UPDATED, _DELETED = "inserted", "updated", "deleted"
_ACTION, _IN_TOPIC, _ROWS, _NUMBER = "__action", "__in_topic", "__rows", "__number"
_DELETED_AT = "__deleted_at"


def resync(
    spark: SparkSession, definition: Definition, *, missing: str | None = None, dry_run: bool = False
) -> Resync:
    """Make the table equal to the topic, from its beginning to its end now, in one commit.

    The commit carries these offsets and the topic's id: an ordinary ingest continues from there.

    Only differences are written: rows are inserted, updated, or deleted where the topic does not have their key (its
    tombstone may be gone), and a key with several rows gets one. Under `delta.soft-delete` a row that is to be deleted
    gets the time of its tombstone, or where that is gone the present time; one that is deleted already stays. In a
    table that several pipelines merge into, only the pipeline's own columns are repaired (`merge_own_columns`), and a
    key with several rows is a TableError. Changes are applied by the `change_semantics` of `definition`, also where the
    table has others until now. Bad records are treated as in an ingest. Before the commit nothing has changed, after it
    everything has; run again, it does what is left to do. Changes that other writers make to the table while it runs
    may survive it. `dry_run` writes nothing.

    `missing` (`delete` or `keep`) decides about rows that are not in the topic if records of it have expired: it is not
    known then which of these rows were deleted. DefinitionError without it.

    Raises DefinitionError for a table without a PRIMARY KEY and for one that contains rows from elsewhere,
    BadRecordError, QualityError under `gate: fail`, GapError when the topic changes meanwhile, ConcurrentRunError when
    an ingest commits meanwhile, TableError. Nothing is written then.
    """
    refuse_appends(definition)
    _refuse_rows_from_elsewhere(definition)
    check_executors(spark, definition, sends=False)
    topic = admin.resolve(definition.topic)
    refuse_compacted(definition, topic)
    state = admin.describe(topic)
    refuse_partitions(definition, state.end)
    for key in definition.delta.change_semantics.keys() & {
        "ignore-null-updates",
        "update-columns",
        "aggregate",
        "first-row",
    }:
        if any(offset for _, _, offset in state.earliest):
            raise GapError(
                f"{definition.name!r}: records of {topic.title} have expired, whose values rows keep "
                f"(`delta.{key}`): the topic alone does not determine the rows"
            )
    keep_missing = _keeps_missing(topic, state, missing)
    if dry_run:
        table = open_whole_table(spark, definition).unhidden()
        _refuse_rows_of_once(table)
        return _Run(with_constraints(definition, table), topic, state, table, keep_missing, None).run()
    require(spark, Feature.SETTINGS, "bridge resync of a table")
    with (
        acquire_lease(spark, definition, "ingest", verb="resync") as lease,
        tracked_command(spark, definition, "resync", ingest_flow),
    ):
        table = ingest_table(spark, definition, any_semantics=True)
        _refuse_rows_of_once(table)
        return _Run(with_constraints(definition, table), topic, state, table, keep_missing, lease).run()


def _refuse_rows_from_elsewhere(definition: Definition) -> None:
    mode = definition.topic.startup.mode
    if definition.base_is_existing or mode != "earliest-offset":
        why = "ingest.base is existing" if definition.base_is_existing else f"'scan.startup.mode' is '{mode}'"
        raise DefinitionError(
            f"{definition.name!r}: {why}, so the table contains rows that are not from its topic, and a resync would "
            "delete them. If all rows are from the topic, leave the option out; else RESTORE the table to a version "
            "that is right: `bridge ingest` continues from there"
        )


def _refuse_rows_of_once(table: Table) -> None:
    name = property_of(table.target, ONCE_PROPERTY)
    if places := json.loads(table.properties.get(name, "[]")):
        raise DefinitionError(
            f"table {table}: `bridge ingest --once` has added rows of {', '.join(places)}, and a resync would delete "
            "those that the topic does not have. RESTORE the table to a version that is right: `bridge ingest` "
            f"continues from there; if all rows are in the topic, too, UNSET the table property {name!r}"
        )


def _keeps_missing(topic: Topic, state: admin.TopicState, missing: str | None) -> bool:
    policies = {name: admin.topic_config(topic, name, "cleanup.policy") for name in topic.names}
    expires = {name for name, policy in policies.items() if policy is None or "delete" in policy}
    begins = [
        f"{name}-{number} at {offset}"
        for name, number, offset in state.earliest
        if offset > 0 and name in expires
    ]
    if begins and missing is None:
        raise DefinitionError(
            f"the topic does not begin at offset 0 ({', '.join(begins[:5])}), and its cleanup.policy is not only "
            "compact: of a row that is not in the topic it is not known whether it was deleted or its record has "
            "expired. Set --missing delete (the table gets the rows of the topic, no others) or --missing keep (these "
            "rows stay)"
        )
    return missing == "keep"


@dataclass(frozen=True)
class _Run:
    definition: Definition
    topic: Topic
    state: admin.TopicState
    table: Table
    keep_missing: bool
    lease: Lease | None
    """None for a dry run."""

    def run(self) -> Resync:
        definition, table, spark = self.definition, self.table, self.table.spark
        # Read before the table: if an ingest commits after this, the commit of this resync fails.
        batch = last_batch(table, definition.name) + 1
        statistics = None if self.lease is None else repair_statistics(table)
        version = change_feed.latest_version(table)
        end = admin.end_offsets(self.topic, self.state)
        end = self.state.end if end is None else end.capped(self.state.end)
        progress = IngestProgress(
            definition.name, uuid.uuid4().hex[:12], batch, end, self.state.ids, resync=True, after=version
        )
        with ExitStack() as stack, feed_errors(table, version, version):
            persist = changelog_decode.persist_within(stack)
            key = definition.row_key
            rows = change_feed.snapshot(table, version).select(*(col(name) for name in table.columns))
            if definition.delta.merge_columns:
                _refuse_duplicate_keys(rows, table, key)
                rows = own_rows(rows, definition)
            records = source.read(spark, self.topic, self.state.earliest, end)
            records = with_leader_epochs(records, self.topic, self.state.earliest, end)
            changes, stats, truncate = self._read(records, rows, persist)
            # A truncate of the topic deletes rows of records that have expired, too.
            floor = None if truncate is None else truncate.floor
            keep_missing = self.keep_missing and (truncate is None or floor is not None)
            folded = changelog_decode.fold(changes, definition)
            expired = any(offset for _, _, offset in self.state.earliest)
            if keep_missing and expired and definition.delta.sequence_by and definition.delta.history is None:
                folded = persist(_without_older(folded, rows, definition))
            deleted = None
            if definition.delta.history is None:
                in_topic = topic_rows = persist(own_rows(folded.where(~retracts()), definition))
                deleted = folded.where(retracts()).select(
                    *map(col, key), col(POSITION).getField("timestamp").alias(_DELETED_AT)
                )
                if floor is not None:
                    taken = rows.where(~F.coalesce(floor.is_below(), F.lit(False))).select(*map(col, key))
                    deleted = deleted.unionByName(
                        taken.withColumn(_DELETED_AT, F.current_timestamp())
                    ).distinct()
            else:  # rows that are kept end where the first one of the topic begins
                known = rows if keep_missing else rows.limit(0)
                topic_rows = persist(Timeline.of(table, folded, definition.primary_key, known).rows())
                start = col(definition.delta.sequence_by[0])
                in_topic = folded.where(~retracts()).withColumn(key[-1], start)
            found = _differences(topic_rows, rows, table, key, deleted, keep_others=keep_missing)
            differences = persist(found)
            counts = {
                row[0]: row[1]
                for row in differences.where(~col(INSERT_ALWAYS)).groupBy(_ACTION).count().collect()
            }
            changed = {what: counts.get(what, 0) for what in (_INSERTED, _UPDATED, _DELETED)}
            same = topic_rows.count() - changed[_INSERTED] - changed[_UPDATED]
            missing_in_topic = (
                own_rows(rows, definition)
                .alias("t")
                .join(in_topic.alias("s"), same_key(key, "s", "t"), "left_anti")
            )
            kept = missing_in_topic.count() - changed[_DELETED] if keep_missing else 0
            notices = Notices()
            if self.lease is not None:
                gate_values = row_gate.aggregate(definition, topic_rows)
                _, gate_warnings = row_gate.enforce_before_write(definition, topic_rows, gate_values)
                notices.add(self.lease.warning, statistics, *gate_warnings)
                quarantine_bad_records(definition, spark, records, changes, stats, progress)
                self.lease.check()
                memory = progress.run if definition.delta.sequence_by and self._begins_anew else None
                if definition.delta.sequence_by:
                    began = {} if memory is None else {property_of(table.target, MEMORY_PROPERTY): memory}
                    remembering = replace(table, properties={**table.properties, **began})
                    deletions = DeleteMemory.open(remembering, definition.primary_key)
                    deletions.remember(folded)
                    if floor is not None:
                        deletions.remember_truncate(floor)
                version = self._write(differences, sum(changed.values()), progress)
                record_semantics(table, memory)
        return Resync(
            pipeline=definition.name,
            direction="ingest",
            dry_run=self.lease is None,
            version=version if self.lease is not None else None,
            topic_end=end.to_json(),
            unchanged=same,
            kept=kept,
            bad=stats.bad + stats.dropped + stats.diverted,
            warning=notices.all(),
            **changed,
        )

    @cached_property
    def _begins_anew(self) -> bool:
        """Whether deletions that are remembered are of another order, or of another topic of the same name."""
        target, found = self.table.target, self.table.properties
        if found.get(property_of(target, SEMANTICS_PROPERTY)) != semantics_property(target):
            return True
        if not self.definition.delta.sequence_by:
            return False
        last = _last_progress(self.table, self.definition.name)
        before = last[0].topic_ids if last else {}
        return any(before.get(name, id) != id for name, id in self.state.ids.items())

    def _read(
        self, records: DataFrame, rows: DataFrame, persist: changelog_decode.Persist
    ) -> tuple[DataFrame, BatchStats, Applied | None]:
        """The decoded changes, their counts, and the truncate of the topic that is applied."""
        try:
            changes = changelog_decode.decode_with_fallback(records, self.definition, persist)
            changes, truncate = settle(changes, self.definition)
            of_topic_alone = bool(self.definition.kept_columns or truncate)
            known = None if of_topic_alone else own_rows(rows, self.definition)
            changes = changelog_decode.resolve_unavailable(changes, self.definition, persist, known)
            changes = changelog_decode.without_halves(changes, self.definition)
            stats = collect_batch_stats(self.definition, changes)
        except Exception as failure:
            start = IngestProgress(self.definition.name, "", -1, self.state.earliest, self.state.ids)
            doing = "reading the topic from its beginning"
            explained = explained_read_error(self.table.spark, failure, self.definition, start, doing)
            raise explained from explained.__cause__
        refuse_bad_records(self.definition, stats)
        return changes, stats, truncate

    def _write(self, differences: DataFrame, rows: int, progress: IngestProgress) -> int:
        """Write the differences; returns the version that equals the topic: a new one, unless nothing has changed."""
        # If the topic was recreated meanwhile, the rows that were read are not those of the new one.
        check_offsets_available(progress.offsets, admin.describe(self.topic), progress.topic_ids)
        last, key = _last_progress(self.table, progress.pipeline), self.definition.row_key
        has_key = last is not None and last[0].key in (None, key)
        if (
            not rows
            and has_key
            and last
            and replace(last[0], run=progress.run, batch=progress.batch) == progress
        ):
            following(self.table, progress)
            return last[1]
        failpoints.hit("resync.before-commit")
        if self._begins_anew:
            # If this run ends between its two commits, neither the old order nor the old memory may go on.
            record_running_resync(self.table)
        semantics = merge_own_columns if self.definition.delta.merge_columns else repair_by_key
        merged = SparkEngine().merge(self.table, differences, key=key, progress=progress, semantics=semantics)
        failpoints.hit("resync.after-commit")
        return merged.version


def _without_older(changes: DataFrame, rows: DataFrame, definition: Definition) -> DataFrame:
    """Leave out changes that are older by `delta.sequence-by` than the row of their key, whose record has expired."""
    sequence = definition.delta.sequence_by
    change, row = (F.struct(*(col(name, alias) for name in sequence)) for alias in ("c", "t"))
    is_older = same_key(definition.primary_key, "c", "t") & (change < row)
    return changes.alias("c").join(rows.alias("t"), is_older, "left_anti")


def _refuse_duplicate_keys(rows: DataFrame, table: Table, key: Sequence[str]) -> None:
    duplicates = rows.groupBy(*(col(name) for name in key)).count().where("count > 1").count()
    if duplicates:
        raise TableError(
            f"table {table}: {duplicates} keys have more than one row, and it is not known which of them has the right "
            "values of the other pipelines' columns. Delete the surplus rows, then run again"
        )


def _last_progress(table: Table, pipeline: str) -> tuple[IngestProgress, int] | None:
    try:
        return read_progress(table, pipeline)
    except GapError:
        return None


def _differences(
    topic_rows: DataFrame,
    table_rows: DataFrame,
    table: Table,
    key: Sequence[str],
    deleted: DataFrame | None,
    *,
    keep_others: bool,
) -> DataFrame:
    """Return the changes, with `__action` and INSERT_ALWAYS, that make `table_rows` equal to `topic_rows`.

    `topic_rows` has one row per key. For a key with several rows in the table, all of them are deleted and one is
    inserted. `deleted` are the keys that the topic deletes, with the time; with `keep_others` no other rows are
    deleted. Without `deleted` all rows are deleted that `topic_rows` has not. If the table has the column of
    `delta.soft-delete`, rows are marked instead, but for surplus ones.
    """
    of_key = Window.partitionBy(*[col(name) for name in key])
    mark = table.target.soft_delete
    mark = mark if mark in table.columns else None
    number = F.row_number().over(of_key.orderBy(F.lit(0) if mark is None else col(mark).asc_nulls_first()))
    numbered = table_rows.select("*", F.count(F.lit(1)).over(of_key).alias(_ROWS), number.alias(_NUMBER))
    one_each = numbered.where(col(_NUMBER) == 1).alias("t")
    if mark is not None:
        topic_rows = topic_rows.withColumn(mark, F.lit(None).cast("timestamp"))
    in_topic = topic_rows.select(*(col(name) for name in table.columns), F.lit(True).alias(_IN_TOPIC)).alias(
        "s"
    )
    rest = [f for f in table.fields if f.name not in key]
    not_in_topic = col(_IN_TOPIC, "s").isNull()
    action = (
        F.when(not_in_topic, _DELETED)
        .when(col(_ROWS, "t").isNull(), _INSERTED)
        .when((col(_ROWS, "t") > 1) | differs(rest, "s", "t"), _UPDATED)
    )

    def step(kind: RowKind, anew: bool = False) -> Column:
        return F.struct(F.lit(kind.value).alias(KIND), F.lit(anew).alias(INSERT_ALWAYS))

    steps = (
        F.when(not_in_topic & F.lit(mark is None), F.array(step(RowKind.DELETE)))
        .when(col(_ROWS, "t") > 1, F.array(step(RowKind.DELETE), step(RowKind.INSERT, anew=True)))
        .otherwise(F.array(step(RowKind.UPDATE_AFTER)))
    )
    row = [F.when(not_in_topic, col(n, "t")).otherwise(col(n, "s")).alias(n) for n in table.columns]
    joined = in_topic.join(one_each, same_key(key, "s", "t"), "full_outer")
    if mark is not None:
        joined = joined.where(~not_in_topic | col(mark, "t").isNull())
    changes = joined.select(*row, action.alias(_ACTION), F.explode(steps).alias("__step"))
    changes = changes.where(col(_ACTION).isNotNull())
    if deleted is not None and (mark is not None or keep_others):
        gone = changes.where(col(_ACTION) == _DELETED).alias("c")
        how = "inner" if keep_others else "left"
        known = gone.join(deleted.alias("d"), same_key(key, "c", "d"), how)
        time = F.coalesce(col(_DELETED_AT, "d"), F.current_timestamp())
        row = [(time if n == mark else col(n, "c")).alias(n) for n in changes.columns]
        changes = changes.where(col(_ACTION) != _DELETED).unionByName(known.select(*row))
    step_of = (col("__step").getField(name).alias(name) for name in (KIND, INSERT_ALWAYS))
    return changes.select(*(col(name) for name in (*table.columns, _ACTION)), *step_of)
