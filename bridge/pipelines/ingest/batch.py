"""One batch of an ingest: read, decode, judge, compact, merge, report.

`apply_batch` is these steps in their order. Each step takes values and returns values; only `merge` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge import failpoints
from bridge.columns import retracts
from bridge.compact import TWO_PARTITIONS
from bridge.definition import Definition, Topic
from bridge.delta.append import append_batch
from bridge.delta.engine_choice import Engines
from bridge.delta.merge_contract import MergeResult
from bridge.delta.table import Table
from bridge.ingest_progress import IngestProgress
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.kafka.read_counts import ReadCounts
from bridge.metrics import BatchReport, now_ms
from bridge.metrics.steps import step
from bridge.offsets import Offsets, TopicPartition
from bridge.pipelines.changes import changelog_decode, row_gate
from bridge.pipelines.changes.bad_records import quarantine_bad_records, refuse_bad_records
from bridge.pipelines.changes.batch_stats import BatchStats, collect_batch_stats, count_reads
from bridge.pipelines.changes.changelog_decode import Persist
from bridge.pipelines.changes.own_rows import own_rows
from bridge.pipelines.changes.truncates import Applied, after_truncates
from bridge.pipelines.runtime.preflight import refuse_partitions
from bridge.ways import told


@dataclass(frozen=True)
class Decoded:
    """The changes of a batch, bad ones included, and their counts."""

    records: DataFrame
    changes: DataFrame
    stats: BatchStats
    read: ReadCounts
    needed_full_decode: bool
    """The fast path left at least one record open."""
    truncate: Applied | None = None
    """The last truncate: all rows of the table before it are deleted, and the changes before it are skipped."""


@dataclass(frozen=True)
class Compacted:
    """The changes to merge (the last good one per key) or the rows to append, and their counts."""

    rows: DataFrame
    keys: int
    """Keys; rows, where the table has no key."""
    upserts: int
    """Keys that have a row after the batch."""
    two_partitions: int
    """Keys with records in two partitions."""
    gate_values: Sequence[int] | None
    """The value of `row_gate.counts_aggregate` over the rows."""


@dataclass(frozen=True)
class AppliedBatch:
    """What a batch did to the table."""

    merged: MergeResult
    read: ReadCounts
    newest_event_ms: dict[TopicPartition, int]
    """The newest value of the watermark column in each partition that had records; empty without a WATERMARK."""
    bad: int = 0
    unchanged: int = 0
    """Changes that the table already contained."""
    two_partitions: int = 0
    needed_full_decode: bool = False
    reader: str = ""
    """What read the records, and why; see `metrics.BatchReport`."""
    unexpected: int = 0
    """Rows that break a rule of the gate: quarantined, or written under `gate: warn`."""
    warnings: tuple[str, ...] = ()
    """Warnings of the gate."""


def apply_batch(
    definition: Definition,
    table: Table,
    polled: DataFrame,
    progress: IngestProgress,
    *,
    engines: Engines,
    start: Offsets | None = None,
    bound: Offsets | None = None,
    fast: bool = True,
    reader: str = "",
) -> AppliedBatch:
    """Apply the records from `start` to `progress.offsets` to `table`, in one commit that carries `progress`.

    A table with a key is merged with the last change of each key; a table without one gets every row appended.
    Of the `polled` records those at or after `bound` are left out. `fast` tries the fast path first. The session of
    `polled` executes the write. `reader` is the reason why Spark's source has read them, for the report.

    Raises BadRecordError under `bad-records: fail` for a record that cannot be applied (of an upsert topic only the
    last record of each key is decoded then) and for a truncate under `truncate: refuse`, DefinitionError for one of a
    topic of several partitions, QualityError under `gate: fail`; nothing is written then. Under `skip`
    and `quarantine` the last good record of a key counts, and `quarantine` writes the bad ones before the commit.
    """
    with ExitStack() as stack:
        persist = changelog_decode.persist_within(stack)
        records = read(polled, definition.topic, start or Offsets(), progress.offsets, bound)
        with step("decode", f"reading and decoding batch {progress.batch}"):
            decoded = decode(records, definition, table, persist, fast=fast)
        if decoded.truncate is not None:
            refuse_partitions(definition, progress.offsets)  # others may have been added since the run began
        judge_records(decoded, definition)
        with step("compact", f"compacting batch {progress.batch}"):
            compacted = compact(decoded, definition, persist)
        unexpected, warnings = judge_rows(compacted, definition)
        with step("merge", f"merging batch {progress.batch}"):
            progress = replace(progress, newest_ms=decoded.read.newest_ms, reader=told("spark", reader))
            merged = merge(decoded, compacted, definition, table, engines, progress)
        return report(decoded, compacted, merged, progress.reader, unexpected, warnings)


def read(polled: DataFrame, topic: Topic, start: Offsets, end: Offsets, bound: Offsets | None) -> DataFrame:
    """The records of the batch: below `bound`, with leader epochs where the table has such a column.

    Raises KafkaError when the broker does not return the leader epochs in time.
    """
    records = polled if bound is None else polled.where(_is_below(bound))
    return with_leader_epochs(records, topic, start, end)


def decode(
    records: DataFrame, definition: Definition, table: Table, persist: Persist, *, fast: bool
) -> Decoded:
    """Decode records into changes, count them, and fill unavailable values from the batch and the table. Raises
    BadRecordError for a truncate under `truncate: refuse`.

    With `fast`, the full decode runs only if the fast path left a record open.
    """
    observed, counter = count_reads(records)
    changes = persist(changelog_decode.decode(observed, definition, fast=fast))
    stats = collect_batch_stats(definition, changes)
    read = counter.value()
    needed_full_decode = stats.needs_full_decode > 0
    if needed_full_decode:
        changes = persist(changelog_decode.decode(records, definition))
        stats = collect_batch_stats(definition, changes)
    changes, truncate = after_truncates(changes, definition, stats.truncates)
    if truncate is not None:
        stats = collect_batch_stats(definition, changes)
    if stats.unavailable:
        rows = own_rows(table.on(records.sparkSession).delta().toDF(), definition)
        rows = rows if truncate is None else rows.limit(0)
        changes = changelog_decode.fill_unavailable(changes, rows, definition, persist)
        stats = collect_batch_stats(definition, changes)
    if stats.bad or stats.diverted:
        whole = changelog_decode.without_halves(changes, definition)
        if whole is not changes:
            changes = persist(whole)
            stats = collect_batch_stats(definition, changes)
    return Decoded(records, changes, stats, read, needed_full_decode, truncate)


def judge_records(decoded: Decoded, definition: Definition) -> None:
    """Raise BadRecordError under `bad-records: fail` if the batch has a bad record."""
    refuse_bad_records(definition, decoded.stats)


def compact(decoded: Decoded, definition: Definition, persist: Persist) -> Compacted:
    """Leave out bad records and keep the last change of each key; a table without a key keeps all rows.

    Reads nothing where the changes are compacted already (`definition.compacts_first`) and all of them count.
    """
    stats, changes = decoded.stats, decoded.changes
    if definition.topic.appends:
        rows = changelog_decode.fold(changes, definition)
        return Compacted(rows, stats.good, stats.upserts, 0, stats.gate_values)
    if stats.skipped or stats.dropped or not definition.compacts_first:
        return _count(persist(changelog_decode.fold_into_table(changes, definition)), definition)
    return Compacted(changes, stats.good, stats.upserts, stats.two_partitions, stats.gate_values)


def judge_rows(compacted: Compacted, definition: Definition) -> tuple[int, tuple[str, ...]]:
    """Apply the gate to the rows to be written: how many break a rule, and the warnings about it.

    Raises QualityError under `gate: fail`.
    """
    return row_gate.enforce_before_write(definition, compacted.rows, compacted.gate_values)


def merge(
    decoded: Decoded,
    compacted: Compacted,
    definition: Definition,
    table: Table,
    engines: Engines,
    progress: IngestProgress,
) -> MergeResult:
    """Write bad records to the quarantine, then commit the rows together with `progress`.

    A run that dies between the two writes finds its records in the quarantine and does not write them twice.
    """
    target = table.on(decoded.records.sparkSession)
    stats = decoded.stats
    if (stats.bad or stats.diverted) and quarantine_bad_records(
        definition, target.spark, decoded.records, decoded.changes, stats, progress
    ):
        failpoints.hit("ingest.put-aside")
    failpoints.hit("ingest.before-merge")
    if definition.topic.appends:
        merged = append_batch(target, compacted.rows, rows=compacted.keys, progress=progress)
    else:
        merged = engines.merge(
            target,
            compacted.rows,
            key=definition.primary_key,
            adds=compacted.upserts,
            progress=progress,
            deletes_others=decoded.truncate is not None,
            floor=None if decoded.truncate is None else decoded.truncate.floor,
        )
        if decoded.truncate is not None:
            of = (
                "all records before it"
                if decoded.truncate.floor is None
                else "sequences that are not greater"
            )
            truncated = f"{decoded.truncate}: a truncate has deleted the rows of {of}"
            merged = replace(merged, warnings=(*merged.warnings, truncated))
    failpoints.hit("ingest.after-merge")
    return merged


def report(
    decoded: Decoded,
    compacted: Compacted,
    merged: MergeResult,
    reader: str,
    unexpected: int,
    warnings: tuple[str, ...],
) -> AppliedBatch:
    """Summarize what the steps did."""
    stats = decoded.stats
    return AppliedBatch(
        merged=merged,
        read=decoded.read,
        bad=stats.bad + stats.dropped,
        unchanged=merged.unchanged(compacted.keys),
        two_partitions=compacted.two_partitions,
        newest_event_ms=stats.newest_event_ms,
        needed_full_decode=decoded.needed_full_decode,
        reader=reader,
        unexpected=stats.diverted + unexpected,
        warnings=(*warnings, *merged.warnings),
    )


def batch_report(applied: AppliedBatch, pipeline: str, batch: int, topic: str, table: Table) -> BatchReport:
    """Report a batch of an ingest that is in `table`, as of now: what `applied` tells alone."""
    merged = applied.merged
    return BatchReport(
        pipeline=pipeline,
        verb="ingest",
        batch=batch,
        topic=topic,
        version=merged.version,
        table=table.id,
        records_in=applied.read.records,
        bytes_in=applied.read.bytes,
        inserted=merged.inserted,
        updated=merged.updated,
        deleted=merged.deleted,
        unchanged=applied.unchanged,
        bad_records=applied.bad,
        unexpected_rows=applied.unexpected,
        committed_ms=now_ms(),
        engine=merged.engine or None,
        reader=applied.reader or None,
    )


def _is_below(bound: Offsets) -> Column:
    """True for records below `bound`, and for no record of a partition that `bound` does not name (Flink:
    specific-offsets bound)."""
    limits = [part for topic, partition, offset in bound for part in (f"{topic}/{partition}", offset)]
    at = F.concat_ws("/", F.col("topic"), F.col("partition"))
    return F.col("offset") < F.create_map(*[F.lit(part) for part in limits])[at] if limits else F.lit(False)


def _count(rows: DataFrame, definition: Definition) -> Compacted:
    two_partitions = F.count_if(F.col(TWO_PARTITIONS))
    gate = row_gate.counts_aggregate(definition, rows, F.lit(True))
    row = rows.agg(F.count(F.lit(1)), F.count_if(~retracts()), two_partitions, gate).first()
    assert row is not None
    return Compacted(rows, row[0], row[1], row[2], row[3])
