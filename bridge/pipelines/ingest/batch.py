"""One batch of records, applied: decode, judge, fold, write."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge import compact, failpoints
from bridge.columns import retracts
from bridge.definition import BadRecords, Definition
from bridge.delta.append import append_batch
from bridge.delta.engine_choice import Engines
from bridge.delta.ingest_progress import IngestProgress
from bridge.delta.merge_contract import MergeResult
from bridge.delta.quarantine import quarantine_records
from bridge.delta.table import Table
from bridge.errors import BadRecordError
from bridge.offsets import TopicPartition
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.pipelines.changes.batch_stats import BatchStats, RowCounter, collect_batch_stats

__all__ = ["AppliedBatch", "apply_batch", "quarantine_bad", "refuse_bad", "refuse_unexpected"]


@dataclass(frozen=True)
class AppliedBatch:
    """What became of a batch. `unchanged` changes found the table as they wanted it."""

    merged: MergeResult
    records: int
    bad: int
    unchanged: int
    two_partitions: int
    newest_event_ms: dict[TopicPartition, int]
    """The newest value of the watermark's column in each partition that had records; empty without a WATERMARK."""
    needed_full_decode: bool
    engine: str = ""
    """What merged it, and why that."""
    unexpected: int = 0
    """Rows that are not as the gate expects: put aside, or under `gate: warn` written all the same."""
    warnings: tuple[str, ...] = ()
    """What a user should know of them."""


def apply_batch(
    definition: Definition,
    table: Table,
    records: DataFrame,
    progress: IngestProgress,
    *,
    engines: Engines,
    fast: bool = True,
) -> AppliedBatch:
    """Write what `records` say into `table` as one commit that carries `progress`: the fold of them by MERGE where rows
    have a key, else every row by append.

    Under `bad-records: fail` a record that cannot be applied raises BadRecordError with nothing written (of an upsert
    topic only the last record of each key is decoded then); under `skip` and `quarantine` the last good one of a key
    counts, and `quarantine` keeps the bad ones, before the commit.
    `fast` first tries the short way to decode, which most topics never leave; `Applied.doubtful` says whether
    this one did. The frame's session carries the write.
    """
    with ExitStack() as stack:
        held = changelog_decode.persist_within(stack)
        counter = RowCounter()
        changes = held(changelog_decode.decode(counter.observe(records), definition, fast=fast))
        found = collect_batch_stats(definition, changes)
        doubtful = found.needs_full_decode > 0
        if doubtful:
            changes = held(changelog_decode.decode(records, definition))
            found = collect_batch_stats(definition, changes)
        if found.unavailable:
            changes = held(
                changelog_decode.fill_unavailable(
                    changes, table.on(records.sparkSession).delta().toDF(), definition
                )
            )
            found = collect_batch_stats(definition, changes)
        refuse_bad(definition, found)
        folded, keys, adds = changes, found.good, found.upserts
        two, judged = found.two_partitions, found.gate_counts
        if definition.topic.appends:
            folded, two = changelog_decode.fold(changes, definition), 0
        elif found.skipped or found.dropped or not changelog_decode.compacts_first(definition):
            folded = held(changelog_decode.fold(changes, definition))
            keys, adds, two, judged = _counted(folded, definition)
        notes = refuse_unexpected(definition, judged, folded)
        target = table.on(records.sparkSession)
        if quarantine_bad(definition, target.spark, records, changes, found, progress):
            failpoints.hit("ingest.put-aside")
        failpoints.hit("ingest.before-merge")
        if definition.topic.appends:
            merged, engine = append_batch(target, folded, rows=keys, progress=progress), ""
        else:
            told = engines.merge(target, folded, key=definition.primary_key, adds=adds, progress=progress)
            merged, engine = told.result, str(told)
        failpoints.hit("ingest.after-merge")
        return AppliedBatch(
            merged=merged,
            records=counter.value(),
            bad=found.bad + found.dropped,
            unchanged=keys - merged.inserted - merged.updated - merged.deleted,
            two_partitions=two,
            newest_event_ms=found.newest_event_ms,
            needed_full_decode=doubtful,
            engine=engine,
            unexpected=found.diverted + row_gate.unexpected_rows(judged),
            warnings=notes,
        )


def _counted(folded: DataFrame, definition: Definition) -> tuple[int, int, int, row_gate.Counts]:
    """(keys, how many of them have a row in the end, how many were seen in two partitions, what the gate counts)"""
    two = F.count_if(F.col(compact.TWO_PARTITIONS))
    judged = row_gate.counts_aggregate(definition, folded, F.lit(True))
    row = folded.agg(F.count(F.lit(1)), F.count_if(~retracts()), two, judged).first()
    assert row is not None
    return row[0], row[1], row[2], row_gate.read_counts(definition, folded, row[3])


def refuse_unexpected(definition: Definition, judged: row_gate.Counts, rows: DataFrame) -> tuple[str, ...]:
    """Raise QualityError where `gate` is fail and `rows`, which are to be written, are not as it expects; else what a
    user should know of them."""
    way_out = "correct the rows at their source and have the keys sent again"
    return row_gate.enforce(definition, judged, rows, "Nothing of this batch was written", way_out)


def refuse_bad(definition: Definition, found: BatchStats) -> None:
    """Raise BadRecordError where `bad-records` is fail and there are such; it names the first one's place."""
    if not found.bad or definition.bad_records is not BadRecords.FAIL:
        return
    more = f" (and {found.bad - 1} more in this batch)" if found.bad > 1 else ""
    raise BadRecordError(
        f"{found.first_bad}{more}. Nothing of this batch was written. Correct the producer and have the key sent "
        f"again, or set `ingest: {{bad-records: quarantine}}` in the pipeline file of {definition.name!r} to go on and "
        "keep such records aside, or `{bad-records: skip}` to count them only"
    )


def quarantine_bad(
    definition: Definition,
    spark: SparkSession,
    records: DataFrame,
    changes: DataFrame,
    found: BatchStats,
    progress: IngestProgress,
) -> bool:
    """Keep the bad ones among `records` in the quarantine, before the commit of `progress`; whether there was anything
    to do. See quarantine.put_aside."""
    target = definition.quarantine
    if target is None or not (found.bad or found.diverted):
        return False
    if definition.bad_records is not BadRecords.QUARANTINE:
        changes = changes.where(row_gate.is_diverted())
        if not found.diverted:
            return False
    quarantine_records(
        spark,
        target,
        records,
        changes,
        pipeline=definition.name,
        batch=progress.batch,
        topic_ids=progress.topic_ids or {},
    )
    return True
