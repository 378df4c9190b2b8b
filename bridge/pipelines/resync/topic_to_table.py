"""topic, whole -> fold -compare with the table-> what differs -merge-> Delta"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from bridge import failpoints
from bridge.columns import KIND, col, differs, retracts, same_key
from bridge.definition import Definition, Topic
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import IngestProgress, last_batch, read_progress
from bridge.delta.merge_spark import ANEW, merge_with_spark
from bridge.delta.table import Table
from bridge.errors import DefinitionError, GapError
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.kafka.offset_availability import check_offsets_available
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.pipelines.changes.batch_stats import BatchStats, collect_batch_stats
from bridge.pipelines.ingest.batch import quarantine_bad, refuse_bad, refuse_unexpected
from bridge.pipelines.resync.report import Resync, refuse_appends
from bridge.pipelines.runtime import lease
from bridge.pipelines.runtime.kafka_read_errors import explained_read_error
from bridge.pipelines.runtime.monitoring import Notices
from bridge.pipelines.runtime.preflight import ingest_table, open_whole_table
from bridge.rows import RowKind

__all__ = ["resync"]

_INSERTED, _UPDATED, _DELETED = "inserted", "updated", "deleted"
_WHAT, _SAID, _ROWS, _NUMBER = "__what", "__said", "__rows", "__number"


def resync(
    spark: SparkSession, definition: Definition, *, missing: str | None = None, dry_run: bool = False
) -> Resync:
    """Make the table equal to the topic, read from its beginning to the end it has now, in one commit that carries
    these offsets and the topic's id: an ordinary ingest goes on from there.

    Only what differs is written: rows are put in, changed, or deleted where the topic does not hold their key (its
    tombstone may be gone), and a key that stands more than once gets its one row. Bad records are treated as in an
    ingest. Before the commit nothing has happened, after it all has; run again, it finds what is left to do. What other
    writers change in the table while it runs may survive it. `dry_run` writes nothing at all.

    `missing` (delete, keep) says what becomes of rows that the topic lacks where records of it have expired, so that it
    cannot be told which of these were deleted; DefinitionError without it. Raises DefinitionError for a table without a
    PRIMARY KEY and for one that holds more than the topic told; BadRecordError, GapError when the topic changes
    meanwhile, ConcurrentRunError when an ingest commits meanwhile, TableError: nothing is written then.
    """
    refuse_appends(definition)
    _refuse_more_than_the_topic(definition)
    topic = admin.resolve(definition.topic)
    state = admin.describe(topic)
    keep = _keeps_missing(topic, state, missing)
    if dry_run:
        return _Run(definition, topic, state, open_whole_table(spark, definition), keep, None).run()
    with lease.acquire_lease(spark, definition, "ingest", verb="resync") as ours:
        return _Run(definition, topic, state, ingest_table(spark, definition), keep, ours).run()


def _refuse_more_than_the_topic(definition: Definition) -> None:
    mode = definition.topic.startup.mode
    if definition.base_is_existing or mode != "earliest-offset":
        why = "ingest.base is existing" if definition.base_is_existing else f"'scan.startup.mode' is '{mode}'"
        raise DefinitionError(
            f"{definition.name!r}: {why}, so the table holds more than its topic tells, and a resync would delete it. "
            "If the topic does tell all, leave the option out; else RESTORE the table to a version that is right: "
            "`bridge ingest` goes on from there"
        )


def _keeps_missing(topic: Topic, state: admin.TopicState, missing: str | None) -> bool:
    policies = {name: admin.topic_setting(topic, name, "cleanup.policy") for name in topic.names}
    expires = {name for name, policy in policies.items() if policy is None or "delete" in policy}
    begins = [
        f"{name}-{number} at {offset}"
        for name, number, offset in state.earliest
        if offset > 0 and name in expires
    ]
    if begins and missing is None:
        raise DefinitionError(
            f"the topic does not begin at offset 0 ({', '.join(begins[:5])}), and its cleanup.policy is not compact "
            "alone: of a row that it does not hold it cannot be told whether the row was deleted or its record has "
            "expired. Say --missing delete (the table gets what the topic has, nothing else) or --missing keep (such "
            "rows stay)"
        )
    return missing == "keep"


@dataclass(frozen=True)
class _Run:
    definition: Definition
    topic: Topic
    state: admin.TopicState
    table: Table
    keep: bool
    lease: lease.Lease | None
    """None for a dry run."""

    def run(self) -> Resync:
        definition, table, spark = self.definition, self.table, self.table.spark
        # Before the table is looked at: whoever commits after this makes our own commit fail.
        batch = last_batch(table, definition.name) + 1
        statistics = None if self.lease is None else repair_statistics(table)
        version = change_feed.latest_version(table)
        end = admin.end_offsets(self.topic, self.state)
        end = self.state.end if end is None else end.capped(self.state.end)
        progress = IngestProgress(
            definition.name, uuid.uuid4().hex[:12], batch, end, self.state.ids, resync=True
        )
        with ExitStack() as stack, feed_errors(table, version, version):
            held = changelog_decode.persist_within(stack)
            key = definition.primary_key
            rows = change_feed.snapshot(table, version).select(*(col(name) for name in table.columns))
            records = source.read(spark, self.topic, self.state.earliest, end)
            records = with_leader_epochs(records, self.topic, self.state.earliest, end)
            changes, found = self._read(records, rows, held)
            there = held(changelog_decode.fold(changes, definition).where(~retracts()))
            todo = held(_differences(there, rows, table, key, self.keep))
            counts = {row[0]: row[1] for row in todo.where(~col(ANEW)).groupBy(_WHAT).count().collect()}
            changed = {what: counts.get(what, 0) for what in (_INSERTED, _UPDATED, _DELETED)}
            same = there.count() - changed[_INSERTED] - changed[_UPDATED]
            left = rows.alias("t").join(there.alias("s"), same_key(key, "s", "t"), "left_anti")
            kept = left.count() if self.keep else 0
            notices = Notices()
            if self.lease is not None:
                judged = row_gate.judge(definition, there)
                told = refuse_unexpected(definition, judged, there)
                for warning in (self.lease.warning, statistics, *told):
                    notices.add(warning)
                quarantine_bad(definition, spark, records, changes, found, progress)
                self.lease.check()
                version = self._write(todo, sum(changed.values()), progress)
        return Resync(
            pipeline=definition.name,
            direction="ingest",
            dry_run=self.lease is None,
            version=version if self.lease is not None else None,
            topic_end=end.to_json(),
            unchanged=same,
            kept=kept,
            bad=found.bad + found.dropped + found.diverted,
            warning=notices.all(),
            **changed,
        )

    def _read(
        self, records: DataFrame, rows: DataFrame, held: changelog_decode.Persist
    ) -> tuple[DataFrame, BatchStats]:
        try:
            changes = changelog_decode.with_all_columns_known(
                changelog_decode.decode_completely(records, self.definition, held),
                self.definition,
                held,
                rows,
            )
            found = collect_batch_stats(self.definition, changes)
        except Exception as failure:
            start = IngestProgress(self.definition.name, "", -1, self.state.earliest, self.state.ids)
            doing = "reading the topic from its beginning"
            told = explained_read_error(self.table.spark, failure, self.definition, start, doing)
            raise told from told.__cause__
        refuse_bad(self.definition, found)
        return changes, found

    def _write(self, todo: DataFrame, rows: int, progress: IngestProgress) -> int:
        """The version that holds the result: a new one, unless there is nothing to say."""
        # A topic deleted meanwhile has told us nothing about the rows of the new one.
        check_offsets_available(progress.offsets, admin.describe(self.topic), progress.topic_ids)
        known = _known(self.table, progress.pipeline)
        if not rows and known and replace(known[0], run=progress.run, batch=progress.batch) == progress:
            return known[1]
        failpoints.hit("resync.before-commit")
        key = self.definition.primary_key
        merged = merge_with_spark(self.table, todo, key=key, progress=progress, persisted=True)
        failpoints.hit("resync.after-commit")
        return merged.version


def _known(table: Table, pipeline: str) -> tuple[IngestProgress, int] | None:
    try:
        return read_progress(table, pipeline)
    except GapError:
        return None


def _differences(
    there: DataFrame, rows: DataFrame, table: Table, key: Sequence[str], keep: bool
) -> DataFrame:
    """What makes `rows` equal to `there` (one row per key): changes with `__what` and ANEW.

    Of a key that stands more than once in `rows` all are taken away and one is added.
    """
    of_key = Window.partitionBy(*[col(name) for name in key])
    number = F.row_number().over(of_key.orderBy(F.lit(0)))
    found = rows.select("*", F.count(F.lit(1)).over(of_key).alias(_ROWS), number.alias(_NUMBER))
    one_each = found.where(col(_NUMBER) == 1).alias("t")
    said = there.select(*(col(name) for name in table.columns), F.lit(True).alias(_SAID)).alias("s")
    rest = [f for f in table.fields if f.name not in key]
    lacking = col(_SAID, "s").isNull()
    what = (
        F.when(lacking, _DELETED)
        .when(col(_ROWS, "t").isNull(), _INSERTED)
        .when((col(_ROWS, "t") > 1) | differs(rest, "s", "t"), _UPDATED)
    )

    def step(kind: RowKind, anew: bool = False) -> Column:
        return F.struct(F.lit(kind.value).alias(KIND), F.lit(anew).alias(ANEW))

    steps = (
        F.when(lacking, F.array(step(RowKind.DELETE)))
        .when(col(_ROWS, "t") > 1, F.array(step(RowKind.DELETE), step(RowKind.INSERT, anew=True)))
        .otherwise(F.array(step(RowKind.UPDATE_AFTER)))
    )
    row = [F.when(lacking, col(n, "t")).otherwise(col(n, "s")).alias(n) for n in table.columns]
    joined = said.join(one_each, same_key(key, "s", "t"), "full_outer")
    changes = joined.select(*row, what.alias(_WHAT), F.explode(steps).alias("__step"))
    changes = changes.where(col(_WHAT).isNotNull() & (F.lit(not keep) | (col(_WHAT) != _DELETED)))
    step_of = (col("__step").getField(name).alias(name) for name in (KIND, ANEW))
    return changes.select(*(col(name) for name in (*table.columns, _WHAT)), *step_of)
