"""Compares a topic with a version of the table, and encodes the records that make the topic equal to it.

A resync uses it for the whole topic, an at-least-once publish for the records that follow a foreign write.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridge import compact
from bridge.columns import AFTER, BAD, BEFORE, KIND, POSITION, col, differs, members, retracts, same_key
from bridge.decode import DROPPED, SKIP, TRUNCATE, decode_keys
from bridge.definition import Definition, Topic
from bridge.delta import change_feed
from bridge.delta.table import Table
from bridge.encode import encode, encode_changes
from bridge.errors import BadRecordError, TableError
from bridge.kafka import source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.offsets import Offsets
from bridge.options import FORMATS
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.changes.declared_times import cut_times
from bridge.pipelines.changes.good_changes import is_good
from bridge.rows import RowKind

UNKNOWN = "__unknown"
"""True for a key whose last record cannot be decoded: its row is not known."""
_COORDINATES = ("topic", "partition", "offset")


@dataclass(frozen=True)
class TopicDifferences:
    """The differences between the topics of a definition and one version of the table.

    The definition has the topics that exist, with the columns of the table. Wrap Spark actions in
    `delta.delta_errors.feed_errors`. Raises TableError for a table with duplicate keys, BadRecordError for a record
    whose key cannot be decoded.
    """

    definition: Definition
    table: Table
    version: int

    def whole(self, start: Offsets, end: Offsets, persist: changelog_decode.Persist) -> DataFrame:
        """Return the changes, as compact.net does, that make the topic from `start` to `end` equal to the version."""
        rows = self._rows()
        self._refuse_duplicate_keys(rows)
        return self._differences(self._last_changes(start, end, persist).where(~retracts()), rows)

    def within(self, start: Offsets, end: Offsets, persist: changelog_decode.Persist) -> DataFrame:
        """Like `whole`, but only for the keys of the records from `start` to `end`, compared by the last of these."""
        key = self.definition.primary_key
        last = persist(self._last_changes(start, end, persist))
        keys = last.select(*(col(name) for name in key)).alias("k")
        rows = self._rows().alias("r").join(keys, same_key(key, "r", "k"), "left_semi")
        self._refuse_duplicate_keys(rows)
        return self._differences(last.where(~retracts()), rows)

    def records(self, sides: DataFrame) -> DataFrame:
        """Encode differences (BEFORE, AFTER and POSITION) as the records to send."""
        topic = self.definition.topic
        if FORMATS[topic.value.name].insert_only:
            return encode(compact.upserts(sides), topic)
        return encode_changes(sides, topic, pair=self.definition.publish.pair)

    def _rows(self) -> DataFrame:
        rows = change_feed.snapshot(self.table, self.version)
        rows = rows.select(*(col(name) for name in self.table.columns))
        return cut_times(rows, self.definition.topic.schema)

    def _differences(self, topic_rows: DataFrame, rows: DataFrame) -> DataFrame:
        key, columns = self.definition.primary_key, self.table.columns
        topic_rows = topic_rows.select(*(col(name) for name in columns), col(UNKNOWN))
        topic_rows = topic_rows.withColumn("__in_topic", F.lit(True)).alias("s")
        table_rows = rows.withColumn("__in_table", F.lit(True)).alias("t")
        only_topic, only_table = col("__in_table", "t").isNull(), col("__in_topic", "s").isNull()
        rest = [f for f in self.table.fields if f.name not in key]
        unknown = F.coalesce(col(UNKNOWN, "s"), F.lit(False))
        # An undecodable record has only its key, which is a row before only where that row is to be deleted.
        before, after = (F.struct(*(col(n, side).alias(n) for n in columns)) for side in ("s", "t"))
        joined = topic_rows.join(table_rows, same_key(key, "s", "t"), "full_outer")
        changed = only_topic | only_table | unknown | differs(rest, "s", "t")
        return joined.where(changed).select(
            F.when(~only_table & (only_topic | ~unknown), before).alias(BEFORE),
            F.when(~only_topic, after).alias(AFTER),
            F.struct(F.lit(self.version).cast("bigint").alias("version")).alias(POSITION),
            unknown.alias(UNKNOWN),
        )

    def _refuse_duplicate_keys(self, rows: DataFrame) -> None:
        key = [col(name) for name in self.definition.primary_key]
        duplicates = rows.groupBy(*key).count().where("count > 1").count()
        if duplicates:
            raise TableError(
                f"table {self.table}, version {self.version}: {duplicates} keys have more than one row, and a topic "
                "has one row per key; delete the surplus rows, then run again"
            )

    def _last_changes(self, start: Offsets, end: Offsets, persist: changelog_decode.Persist) -> DataFrame:
        """Return the last change of every key in the records from `start` to `end`, and UNKNOWN."""
        definition, topic = self.definition, self.definition.topic
        records = source.read(self.table.spark, topic, start, end)
        records = with_leader_epochs(records, topic, start, end)
        changes = changelog_decode.resolve_unavailable(
            changelog_decode.decode_with_fallback(records, definition, persist), definition, persist
        )
        undecoded = col(BAD).isNotNull() | col(KIND).isin(DROPPED, TRUNCATE)
        if topic.is_upsert:
            undecoded = undecoded | (col(KIND) == SKIP)
        if not changelog_decode.any_row(changes, undecoded):
            return changelog_decode.fold(changes, definition).withColumn(UNKNOWN, F.lit(False))
        good = changes.where(is_good()).withColumn(UNKNOWN, F.lit(False))
        both = good.unionByName(_placeholder_changes(records, changes.where(undecoded), topic, good, persist))
        return compact.latest_by_offset(both, list(definition.primary_key))


def _placeholder_changes(
    records: DataFrame, bad: DataFrame, topic: Topic, like: DataFrame, persist: changelog_decode.Persist
) -> DataFrame:
    """Return an upsert of its key alone for each `bad` change, in the columns of `like`.

    Raises BadRecordError for a record whose key is not known.
    """
    coordinates = persist(
        bad.select(*(col(POSITION).getField(part).alias(part) for part in _COORDINATES)).distinct()
    )
    primary = topic.schema.primary_key
    if topic.key is None or not set(primary) <= set(topic.key.columns):
        raise _undecodable(coordinates, topic, "its key is in the value")
    keyed = persist(
        decode_keys(records.join(F.broadcast(coordinates), list(_COORDINATES), "left_semi"), topic)
    )
    without_key = col(BAD).isNotNull() | col(KIND).isNotNull()
    if changelog_decode.any_row(keyed, without_key):
        at = (col(POSITION).getField(part).alias(part) for part in _COORDINATES)
        raise _undecodable(keyed.where(without_key).select(*at, col(BAD)), topic, None)
    type = like.schema[POSITION].dataType.simpleString()
    parts = [col(POSITION).getField(part) for part in (*_COORDINATES, "timestamp")]
    row = [F.lit(0).alias("row")] if "row" in members(like, POSITION) else []
    values = {name: col(name) for name in primary} | {
        KIND: F.lit(RowKind.UPDATE_AFTER.value),
        POSITION: F.struct(*parts, *row).cast(type),
        UNKNOWN: F.lit(True),
    }
    nulls = {f.name: F.lit(None).cast(f.dataType) for f in like.schema.fields}
    return keyed.select(*(values.get(name, nulls[name]).alias(name) for name in like.columns))


def _undecodable(coordinates: DataFrame, topic: Topic, reason: str | None) -> BadRecordError:
    first = coordinates.orderBy(*_COORDINATES).first()
    assert first is not None
    reason = reason or first[BAD] or "its key is dropped by ignore-parse-errors"
    return BadRecordError(
        f"{first['topic']}-{first['partition']} at offset {first['offset']} cannot be decoded, and {reason}: its "
        f"row is not known. Nothing is sent. If {topic.title} contains records of others, publish to a new "
        "topic with a new run.checkpoint or run.state; else correct the key's format in the DDL, or delete the records "
        "up to there (kafka-delete-records.sh) and run again"
    )
