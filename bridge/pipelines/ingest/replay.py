"""Replays bad records: quarantine -> records -decode-> changes -compact-> changes -merge-> Delta

Records that can be decoded now (their bytes in the quarantine table, or the DDL, were corrected) are applied as if they
had been good when read.
"""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge import failpoints
from bridge.columns import BAD, POSITION, col, same_key
from bridge.decode import UNAVAILABLE
from bridge.definition import Definition, DeltaTarget, Topic
from bridge.delta import quarantine
from bridge.delta.append import append_batch
from bridge.delta.delete_memory import DeleteMemory
from bridge.delta.file_statistics import repair_statistics
from bridge.delta.ingest_progress import read_progress
from bridge.delta.merge_semantics import semantics_of
from bridge.delta.merge_spark import SparkEngine
from bridge.delta.table import Table, exists
from bridge.delta.timeline import Timeline
from bridge.errors import DefinitionError, GapError
from bridge.ingest_progress import IngestProgress
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.changes.good_changes import is_good
from bridge.pipelines.changes.own_rows import own_rows
from bridge.pipelines.changes.truncates import settle
from bridge.pipelines.changes.unfit_rows import with_constraints
from bridge.pipelines.runtime.lineage import replay_flow, tracked_command
from bridge.pipelines.runtime.preflight import ingest_table, refuse_other_key, refuse_partitions
from bridge.pipelines.runtime.storage_checks import check_storage_locations

_COORDINATES = ["topic", "partition", "offset"]


@dataclass(frozen=True)
class Replay:
    """What a replay did with the quarantined records."""

    pipeline: str
    version: int | None = None
    """The table version that contains them; None when there was nothing to apply."""
    replayed: int = 0
    """Records that are good now, applied, and removed from the quarantine."""
    overtaken: int = 0
    """How many of these changed nothing, because their key has a newer record."""
    still_bad: int = 0
    former_topic: int = 0
    """Records of a topic that was deleted since. They stay: the records that followed them are not known."""
    warning: str | None = None


def replay(spark: SparkSession, definition: Definition, *, force: bool = False) -> Replay:
    """Apply the quarantined records that are good now, in one commit, and remove them from the quarantine.

    A record never overtakes a newer one: it is folded together with all records of its topic from there to the
    progress of the table, and only keys with a replayed record are written. To a table without a PRIMARY KEY every
    record is appended, once, also when a replay is killed and run again.

    Raises DefinitionError without a quarantine and before the first ingest. Raises GapError when the topic no longer
    has all records that followed: they have expired, or the record is older than `delete.retention.ms`, after which
    compaction removes tombstones (`force` replays the record all the same in this second case). Raises
    ConcurrentRunError when an ingest commits at the same time; nothing is written then.
    """
    target = definition.quarantine
    if target is None:
        raise DefinitionError(
            f"{definition.name!r} quarantines no bad records: set ingest: {{bad-records: quarantine}}, or quality: "
            "{gate: quarantine}"
        )
    if definition.kept_columns:
        raise DefinitionError(
            f"{definition.name!r}: under `delta.{definition.keeps_by}` a record that is applied later than others "
            "would overwrite their values; have the keys sent again by their producer, or run `bridge resync FILE`"
        )
    if definition.delta.first_row:
        raise DefinitionError(
            f"{definition.name!r}: under `delta.first-row` it is not known whether a record is the first one of a key "
            "that has a row; run `bridge resync FILE`, which reads all of them"
        )
    check_storage_locations(spark, definition)
    table = ingest_table(spark, definition)
    definition = with_constraints(definition, table)
    warning = repair_statistics(table)
    last = read_progress(table, definition.name)
    if last is None:
        raise DefinitionError(f"{definition.name!r} has not ingested into {table} yet: nothing to replay")
    refuse_other_key(table, definition, last[0])
    if not exists(spark, target):
        return Replay(definition.name, warning=warning)
    quarantine.finish_replays(table, target, definition.name)
    topic = admin.resolve(definition.topic)
    with tracked_command(spark, definition, "replay", replay_flow):
        state = admin.describe(topic)
        refuse_partitions(definition, state.end)
        done = _Run(definition, topic, state, table, target, last[0]).run(force)
    return replace(done, warning=warning)


@dataclass(frozen=True)
class _Run:
    definition: Definition
    topic: Topic
    state: admin.TopicState
    table: Table
    target: DeltaTarget
    progress: IngestProgress

    def run(self, force: bool) -> Replay:
        name, result = self.definition.name, Replay(self.definition.name)
        with ExitStack() as stack:
            persist = changelog_decode.persist_within(stack)
            quarantined = persist(quarantine.quarantined_records(self.table.spark, self.target, name))
            topic_id = quarantine.topic_id(self.state.ids)
            of_this_topic = F.coalesce(F.col("topic_id") == topic_id, F.lit(False))
            result = replace(result, former_topic=quarantined.where(~of_this_topic).count())
            records = quarantined.where(of_this_topic).select(*source.COLUMNS)
            first, through, oldest_ms = _offset_range(records)
            if oldest_ms is None:
                return result
            _check_available(self.topic, self.state, first, oldest_ms, force)
            records = with_leader_epochs(records, self.topic, first, through)
            changes = changelog_decode.decode_with_fallback(records, self.definition, persist)
            _, truncate = settle(changes, self.definition)
            if truncate is not None:
                raise DefinitionError(
                    f"{truncate}: the quarantined record is a truncate, after which "
                    "other records were applied. Run `bridge resync FILE`, and delete it from the quarantine"
                )
            coordinates = persist(_without_bad(records.select(*_COORDINATES).distinct(), changes))
            if not self.definition.topic.appends and not coordinates.isEmpty():
                # Some are bad by the values that they leave out, which other records and the table have.
                changes = persist(self._applied(records, first, persist))
                coordinates = persist(_without_bad(coordinates, changes))
            result = replace(result, replayed=coordinates.count())
            result = replace(result, still_bad=records.count() - result.replayed)
            if not result.replayed:
                return result
            good = _at(coordinates, changes)
            next_progress = replace(self.progress, run=uuid.uuid4().hex[:12], batch=self.progress.batch + 1)
            marked = coordinates.withColumns({"pipeline": F.lit(name), "topic_id": topic_id})
            quarantine.mark_replay(self.table.spark, self.target, marked, next_progress.run)
            if self.definition.topic.appends:
                rows = persist(self._new_rows(changelog_decode.fold(good, self.definition)))
                merged = append_batch(self.table, rows, rows=rows.count(), progress=next_progress)
            else:
                rows = folded = persist(self._compact(changes, good))
                if self.definition.delta.sequence_by:
                    memory = DeleteMemory.open(self.table, self.definition.primary_key)
                    if self.definition.delta.history is None:
                        rows = folded = persist(memory.without_older(folded))
                    else:
                        known = memory.of_keys(folded)
                        rows = persist(Timeline.of_batch(self.table, folded, memory.key, known).changes())
                    memory.remember(folded)
                merged = SparkEngine().merge(
                    self.table,
                    rows,
                    key=self.definition.row_key,
                    progress=next_progress,
                    semantics=semantics_of(self.definition.delta),
                )
                newest = folded.select(*_coordinates()).join(coordinates, _COORDINATES, "left_semi")
                result = replace(result, overtaken=result.replayed - newest.distinct().count())
            failpoints.hit("replay.committed")
            quarantine.remove_replayed(self.table.spark, self.target, name, next_progress.run)
            return replace(result, version=merged.version)

    def _new_rows(self, rows: DataFrame) -> DataFrame:
        """Without those that the table has already, where it tells: of a record with several rows, the good ones."""
        history = self.definition.delta.append_history
        if history is None:
            return rows
        place = [col(name) for name in history.place]
        found = self.table.delta().toDF().select(*place).alias("t")
        found = found.join(
            F.broadcast(rows.select(*place)).alias("s"), same_key(history.place, "t", "s"), "left_semi"
        )
        return rows.alias("c").join(found.alias("t"), same_key(history.place, "c", "t"), "left_anti")

    def _applied(
        self, quarantined: DataFrame, first: Offsets, persist: changelog_decode.Persist
    ) -> DataFrame:
        """The changes of the quarantined records and of all later ones, judged with the values that they leave out."""
        spark, ingested = self.table.spark, self.progress.offsets.by_partition
        end = Offsets({at: ingested.get(at, offset) for at, offset in first.by_partition.items()})
        later = with_leader_epochs(source.read(spark, self.topic, first, end), self.topic, first, end)
        others = later.join(F.broadcast(quarantined.select(*_COORDINATES)), _COORDINATES, "left_anti").select(
            *quarantined.columns
        )
        changes = changelog_decode.decode_with_fallback(
            others.unionByName(quarantined), self.definition, persist
        )
        changes, truncate = settle(changes, self.definition)
        if UNAVAILABLE in changes.columns:
            rows = own_rows(self.table.delta().toDF(), self.definition)
            rows = rows if truncate is None else rows.limit(0)
            changes = changelog_decode.fill_unavailable(changes, rows, self.definition, persist)
        return changelog_decode.without_halves(changes, self.definition)

    def _compact(self, changes: DataFrame, good: DataFrame) -> DataFrame:
        """The last one of the `changes` of each key that has one of the `good` ones."""
        key = self.definition.primary_key
        keys = good.where(is_good()).select(*(col(name) for name in key)).distinct()
        last = changelog_decode.fold_into_table(changes, self.definition)
        return last.alias("c").join(F.broadcast(keys.alias("k")), same_key(key, "c", "k"), "left_semi")


def _without_bad(coordinates: DataFrame, changes: DataFrame) -> DataFrame:
    """Leave out the records with a bad one among their `changes`: a record may have several."""
    bad = changes.where(col(BAD).isNotNull()).select(*_coordinates())
    return coordinates.join(F.broadcast(bad), _COORDINATES, "left_anti")


def _at(coordinates: DataFrame, changes: DataFrame) -> DataFrame:
    """Those of the `changes` whose records are at the `coordinates`."""
    wanted = coordinates.select(F.struct(*_COORDINATES).alias("__at"))
    return changes.join(F.broadcast(wanted), F.struct(*_coordinates()) == col("__at"), "left_semi")


def _coordinates() -> list[Column]:
    return [col(POSITION).getField(part).alias(part) for part in _COORDINATES]


def _offset_range(records: DataFrame) -> tuple[Offsets, Offsets, int | None]:
    """The first offset of each partition, the one after the last, and the time of the oldest record in ms."""
    spans = records.groupBy("topic", "partition").agg(
        F.min("offset"), F.max("offset"), F.min(F.unix_millis("timestamp"))
    )
    rows = spans.collect()  # a row per partition
    return (
        Offsets.of((row[0], row[1], row[2]) for row in rows),
        Offsets.of((row[0], row[1], row[3] + 1) for row in rows),
        min((row[4] for row in rows), default=None),
    )


def _check_available(
    topic: Topic, state: admin.TopicState, first: Offsets, oldest_ms: int, force: bool
) -> None:
    way_out = "have the keys sent again by their producer, then delete these records from the quarantine"
    for name, partition, offset in first:
        earliest = state.earliest.get(name, partition)
        if earliest is not None and earliest > offset:
            raise GapError(
                f"{name}-{partition}: a quarantined record has offset {offset}, but the topic begins at {earliest}: "
                f"the records in between are not known; {way_out}"
            )
    if topic.appends or force:
        return
    settings = [admin.topic_config(topic, name, "delete.retention.ms") for name in topic.names]
    age = int(time.time() * 1000) - oldest_ms
    limit = min((int(ms) for ms in settings if ms is not None), default=age)
    if age > limit:
        raise GapError(
            f"a quarantined record is {age} ms old, older than the topic's delete.retention.ms ({limit}): a tombstone "
            f"that followed it may be gone; {way_out}, or run again with --force if no such key was deleted"
        )
