"""Delta, whole -compare with fold(topic)-> what differs -encode-> records -produce-> topic"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge import compact, failpoints
from bridge.columns import AFTER, BAD, BEFORE, KIND, POSITION, col, differs, members, retracts, same_key
from bridge.config import refuse_unpublishable
from bridge.decode import DROPPED, SKIP, decode_keys
from bridge.definition import Definition, Topic
from bridge.delta import feed
from bridge.delta.failures import reading
from bridge.delta.table import Table
from bridge.encode import encode, encode_changes
from bridge.errors import BadRecordError, TableError
from bridge.kafka import admin, provision, source
from bridge.kafka.epochs import with_leader_epochs
from bridge.options import FORMATS
from bridge.pipelines import fold, gate, lease, scratch
from bridge.pipelines.carry import grown
from bridge.pipelines.outlets import outlet
from bridge.pipelines.preflight import published_table
from bridge.pipelines.presence import Presence
from bridge.pipelines.resync import Resync, refuse_appends
from bridge.pipelines.watching import Notices
from bridge.positions import Offsets
from bridge.published import NOTHING, PublishProgress, Stretch
from bridge.rows import RowKind

__all__ = ["resync"]

_UNKNOWN = "__unknown"
"""True for a key whose last record cannot be decoded: what it says is not known."""
_PLACE = ("topic", "partition", "offset")


def resync(spark: SparkSession, definition: Definition, *, dry_run: bool = False) -> Resync:
    """Make the topic say what the newest version of the table holds, and write down that version as published: an
    ordinary publish goes on from there, whatever became of its progress, the change feed or the table.

    The topic is read to the end it has now, by committed records. Sent are records of rows that it lacks or has
    otherwise, and tombstones (CDC formats: delete messages) of keys that only it has; a key whose last record cannot be
    decoded is sent again. Nothing else is. With exactly-once it goes out in transactions, and what runs before have
    open is ended first. When it dies, run it again: it compares anew, so a record that arrived is not sent twice; a
    publish refuses to go on before that. A publish that runs at the same time ends when it next writes its progress.
    `dry_run` writes nothing, and takes nothing over.

    Raises DefinitionError for a table without a PRIMARY KEY, TableError for one that holds a key twice, BadRecordError
    for a record of the topic whose key cannot be decoded, KafkaError, ConcurrentRunError.
    """
    refuse_appends(definition)
    refuse_unpublishable(definition.topic)
    gate.refuse_quarantine(definition)
    topic, table = admin.resolve(definition.topic), published_table(spark, definition)
    topic, table = grown(definition, topic, table, table.read({}).schema)
    run = _Run(replace(definition, topic=topic), table, feed.latest_version(table))
    with ExitStack() as stack:
        held = fold.held_by(stack)
        if dry_run:
            state = admin.describe(topic)
            with reading(table, run.version, run.version):
                return run.report(held(run.differences(state.earliest, state.end, held)), state.end, True)
        ours = stack.enter_context(lease.held(spark, definition, "publish", verb="resync"))
        provision.prepare(topic)
        return run.send(stack, held, ours)


@dataclass(frozen=True)
class _Run:
    definition: Definition
    """With the topics that are there, and the columns that the table has."""
    table: Table
    version: int

    def send(self, stack: ExitStack, held: fold.Held, ours: lease.Lease) -> Resync:
        definition, table, spark = self.definition, self.table, self.table.spark
        out = stack.enter_context(outlet(spark, definition, definition.topic))
        found = out.start_anew()
        known = found.version if found is not None and found.table_id == table.id else NOTHING
        stretch = Stretch(self.version, self.version, slots=out.slots(0), resync=True)
        state = PublishProgress(definition.name, table.id, known, found.batch if found is not None else -1)
        # Written down before the topic is read: a publish that still runs ends there, and none goes on before us.
        state = out.record(replace(state, resync=uuid.uuid4().hex).opened(stretch))
        failpoints.hit("resync.opened")
        topic = admin.describe(definition.topic)
        place = stack.enter_context(scratch.folder(spark, definition, "resync", state.resync))
        with reading(table, self.version, self.version):
            # Kept in files: the same rows for a task that is repeated, though the topic has changed by then.
            self.differences(topic.earliest, topic.end, held).write.parquet(place)
            todo = spark.read.parquet(place)
            result = self.report(todo, topic.end, False)
        ours.check()
        rows = compact.upserts(todo.select(BEFORE, AFTER, POSITION))
        way_out = (
            "correct the rows in the table and run the resync again (a publish does not go on before that)"
        )
        notes = gate.enforce(definition, gate.judge(definition, rows), rows, "Nothing was sent", way_out)
        if result.inserted or result.updated or result.deleted:
            out.send(self._records(todo.select(BEFORE, AFTER, POSITION)), stretch)
        failpoints.hit("resync.sent")
        state = out.record(state.closed())
        notices = Notices()
        for warning in (ours.warning, *notes, Presence(definition, table).tell(state)):
            notices.add(warning)
        return replace(result, warning=notices.all())

    def differences(self, start: Offsets, end: Offsets, held: fold.Held) -> DataFrame:
        """As compact.net, what makes the topic up to `end` equal to the version, and `__unknown`."""
        key, columns = self.definition.primary_key, self.table.columns
        rows = feed.snapshot(self.table, self.version).select(*(col(name) for name in columns))
        self._refuse_twice(rows)
        there = self._state(start, end, held).withColumn("__there", F.lit(True)).alias("s")
        wanted = rows.withColumn("__wanted", F.lit(True)).alias("t")
        only_topic, only_table = col("__wanted", "t").isNull(), col("__there", "s").isNull()
        rest = [f for f in self.table.fields if f.name not in key]
        unknown = F.coalesce(col(_UNKNOWN, "s"), F.lit(False))
        # Of a row that cannot be read only the key is said to have been there, and only to take it away.
        before, after = (F.struct(*(col(n, side).alias(n) for n in columns)) for side in ("s", "t"))
        joined = there.join(wanted, same_key(key, "s", "t"), "full_outer")
        changed = only_topic | only_table | unknown | differs(rest, "s", "t")
        return joined.where(changed).select(
            F.when(~only_table & (only_topic | ~unknown), before).alias(BEFORE),
            F.when(~only_topic, after).alias(AFTER),
            F.struct(F.lit(self.version).cast("bigint").alias("version")).alias(POSITION),
            unknown.alias(_UNKNOWN),
        )

    def report(self, todo: DataFrame, end: Offsets, dry_run: bool) -> Resync:
        """Counts of `differences`."""
        deleted, unknown = col(AFTER).isNull(), col(_UNKNOWN)
        inserted = col(BEFORE).isNull() & ~unknown
        row = todo.agg(
            F.count_if(inserted), F.count_if(~inserted & ~deleted), F.count_if(deleted), F.count_if(unknown)
        ).first()
        assert row is not None
        rows = self.table.read({"versionAsOf": str(self.version)}).count()
        return Resync(
            pipeline=self.definition.name,
            direction="publish",
            dry_run=dry_run,
            version=None if dry_run else self.version,
            topic_end=end.to_json(),
            inserted=row[0],
            updated=row[1],
            deleted=row[2],
            unchanged=rows - row[0] - row[1],
            kept=0,
            bad=row[3],
        )

    def _records(self, sides: DataFrame) -> DataFrame:
        topic = self.definition.topic
        if FORMATS[topic.value.name].insert_only:
            return encode(compact.upserts(sides), topic)
        return encode_changes(sides, topic, pair=self.definition.publish.pair)

    def _refuse_twice(self, rows: DataFrame) -> None:
        key = [col(name) for name in self.definition.primary_key]
        twice = rows.groupBy(*key).count().where("count > 1").count()
        if twice:
            raise TableError(
                f"table {self.table}, version {self.version}: {twice} keys stand more than once, and a topic has one "
                "row per key; delete the rows that are too many, then run again"
            )

    def _state(self, start: Offsets, end: Offsets, held: fold.Held) -> DataFrame:
        """The row of every key that the topic has at `end`, and `__unknown`."""
        definition, topic = self.definition, self.definition.topic
        records = source.read(self.table.spark, topic, start, end)
        records = with_leader_epochs(records, topic, start, end)
        changes = fold.told(fold.settled(records, definition, held), definition, held)
        doubtful = col(BAD).isNotNull() | (col(KIND) == DROPPED)
        if topic.is_upsert:
            doubtful = doubtful | (col(KIND) == SKIP)
        columns = [col(name) for name in self.table.columns]
        if not fold.any_row(changes, doubtful):
            last = fold.folded(changes, definition).withColumn(_UNKNOWN, F.lit(False))
        else:
            good = changes.where(fold.is_good()).withColumn(_UNKNOWN, F.lit(False))
            both = good.unionByName(_keys(records, changes.where(doubtful), topic, good, held))
            last = compact.latest_by_offset(both, list(definition.primary_key))
        return last.where(~retracts()).select(*columns, col(_UNKNOWN))


def _keys(records: DataFrame, bad: DataFrame, topic: Topic, like: DataFrame, held: fold.Held) -> DataFrame:
    """One add per `bad` change, of its key alone, in the columns of `like`. Raises BadRecordError where a record does
    not tell its key."""
    places = held(bad.select(*(col(POSITION).getField(part).alias(part) for part in _PLACE)).distinct())
    primary = topic.schema.primary_key
    if topic.key is None or not set(primary) <= set(topic.key.columns):
        raise _undecodable(places, topic, "its key is in the value")
    found = held(decode_keys(records.join(F.broadcast(places), list(_PLACE), "left_semi"), topic))
    lost = col(BAD).isNotNull() | col(KIND).isNotNull()
    if fold.any_row(found, lost):
        at = (col(POSITION).getField(part).alias(part) for part in _PLACE)
        raise _undecodable(found.where(lost).select(*at, col(BAD)), topic, None)
    type = like.schema[POSITION].dataType.simpleString()
    parts = [col(POSITION).getField(part) for part in (*_PLACE, "timestamp")]
    row = [F.lit(0).alias("row")] if "row" in members(like, POSITION) else []
    known = {name: col(name) for name in primary} | {
        KIND: F.lit(RowKind.UPDATE_AFTER.value),
        POSITION: F.struct(*parts, *row).cast(type),
        _UNKNOWN: F.lit(True),
    }
    nothing = {f.name: F.lit(None).cast(f.dataType) for f in like.schema.fields}
    return found.select(*(known.get(name, nothing[name]).alias(name) for name in like.columns))


def _undecodable(places: DataFrame, topic: Topic, why: str | None) -> BadRecordError:
    first = places.orderBy(*_PLACE).first()
    assert first is not None
    reason = why or first[BAD] or "its key is dropped by ignore-parse-errors"
    return BadRecordError(
        f"{first['topic']}-{first['partition']} at offset {first['offset']} cannot be decoded, and {reason}: so it is "
        f"not known which row it is of. Nothing is sent. If {topic.title} holds records of others, publish to a new "
        "topic with a new run.checkpoint; else correct the key's format in the DDL, or delete the records up to there "
        "(kafka-delete-records.sh) and run again"
    )
