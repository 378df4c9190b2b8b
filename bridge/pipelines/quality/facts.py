"""Reads the facts about topic and history that the expectations of a check use; see quality.facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.columns import BAD, POSITION, col, retracts, row_fingerprint
from bridge.decode import decode_keys
from bridge.definition import Definition
from bridge.delta import change_feed
from bridge.delta.delta_errors import feed_errors
from bridge.delta.table import Table
from bridge.errors import QualityError
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.changes.good_changes import is_good
from bridge.pipelines.compare.verify import verify
from bridge.quality.facts import Facts, KeySplit, Moment, Ratio, RowDifferences

_EXAMPLES = 5
_LAST_RECORDS = 100
_SUM = "decimal(38,0)"


def facts_of(
    spark: SparkSession, definition: Definition, table: Table, version: int, offsets: Offsets | None
) -> Facts:
    """Return the facts about `table` at `version`, which has applied the topic up to `offsets` (None: up to its end).

    Each is read when an expectation uses it. Names: equality, feed, partitions, arrival, tombstones; the arguments are
    those of the expectation. `equality` compares the positions that `bridge verify` would choose, and names them.
    """
    reader = _FactReader(spark, definition, table, version, offsets)
    return Facts(
        {
            "equality": reader.equality,
            "feed": reader.feed,
            "partitions": reader.partitions,
            "arrival": reader.arrival,
            "tombstones": reader.tombstones,
        },
        base_folder=definition.base,
    )


class _FactReader:
    def __init__(
        self, spark: SparkSession, definition: Definition, table: Table, version: int, offsets: Offsets | None
    ) -> None:
        self.spark, self.definition, self.table = spark, definition, table
        self.version, self.offsets = version, offsets

    def equality(self, arguments: Mapping[str, Any]) -> RowDifferences:
        proof = verify(self.spark, self.definition, direction=arguments.get("direction"))
        result = proof.comparison
        return RowDifferences(
            f"version {proof.version}, topic up to {proof.offsets.to_json()}",
            result.topic_rows,
            result.table_rows,
            result.topic_checksum,
            result.table_checksum,
            result.missing_in_table + result.missing_in_topic + result.different + result.duplicate_keys,
            tuple(json.loads(example.key) for example in result.examples),
        )

    def feed(self, arguments: Mapping[str, Any]) -> RowDifferences:
        last = arguments.get("to_version", self.version)
        first = arguments.get("from_version", max(0, last - arguments["last_versions"]))
        if not first < last <= self.version:
            raise QualityError(
                f"there is nothing to replay from version {first} to {last}; the version that is checked is "
                f"{self.version}"
            )
        key = list(self.definition.row_key)
        with feed_errors(self.table, first, last), ExitStack() as stack:
            before, after = (
                change_feed.snapshot(self.table, number, by_delta=True) for number in (first, last)
            )
            changed = change_feed.changes(self.table, first + 1, last, by_delta=True)
            sign = F.when(retracts(), -1).otherwise(1)
            sides = (
                _signed(self.table, key, before, sign, F.lit(0))
                .unionByName(_signed(self.table, key, changed, sign, F.lit(0)))
                .unionByName(_signed(self.table, key, after, F.lit(0), F.lit(1)))
            )
            rows = sides.groupBy("fingerprint", "key").agg(
                F.sum("replayed").alias("replayed"), F.sum("stored").alias("stored")
            )
            rows = changelog_decode.persist_within(stack)(rows)
            replayed, stored = F.col("replayed"), F.col("stored")
            fingerprint = F.col("fingerprint").cast(_SUM)
            sums = (
                F.sum(replayed),
                F.sum(stored),
                F.sum(fingerprint * replayed),
                F.sum(fingerprint * stored),
            )
            row = rows.agg(*sums).collect()[0]
            differing_rows = rows.where(replayed != stored)
            keys = differing_rows.select("key").distinct() if key else differing_rows
            differing = keys.count()
            examples = (
                [r[0] for r in keys.sort("key").limit(_EXAMPLES).collect()] if key and differing else []
            )
        return RowDifferences(
            f"versions {first} to {last}",
            row[0] or 0,
            row[1] or 0,
            _hex(row[2]),
            _hex(row[3]),
            differing,
            tuple(json.loads(name) for name in examples),
        )

    def partitions(self, arguments: Mapping[str, Any]) -> KeySplit:
        definition = self.definition
        if not definition.primary_key:
            raise QualityError(
                "the table has no PRIMARY KEY, so records have no key that could be in two partitions"
            )
        names = [col(name) for name in definition.primary_key]
        place = F.struct(*[col(POSITION).getField(part) for part in ("topic", "partition")])
        with ExitStack() as stack:
            persist, records = changelog_decode.persist_within(stack), self._records()
            if definition.topic.is_upsert:
                changes = decode_keys(records, definition.topic).where(col(BAD).isNull())
            else:
                changes = changelog_decode.decode_with_fallback(records, definition, persist).where(is_good())
            keys = changes.groupBy(*names).agg((F.min(place) != F.max(place)).alias("__two"))
            row = keys.agg(F.count(F.lit(1)), F.count_if("__two")).collect()[0]
            examples = []
            if row[1]:
                moved = keys.where("__two").sort(*names).limit(_EXAMPLES)
                examples = [r[0] for r in moved.select(F.to_json(F.struct(*names))).collect()]
        return KeySplit(row[0], row[1], tuple(json.loads(name) for name in examples))

    def arrival(self, arguments: Mapping[str, Any]) -> Moment:
        if arguments["of"] == "commit":
            return Moment(change_feed.changed_ms(self.table, self.version))
        state = admin.describe(admin.resolve(self.definition.topic))
        end = self.offsets or state.end
        lookback = _LAST_RECORDS
        while True:
            start = Offsets.of((t, p, max(state.earliest.get(t, p) or 0, o - lookback)) for t, p, o in end)
            records = source.read(self.spark, self.definition.topic, start, end)
            newest = records.agg(F.max(F.unix_millis("timestamp"))).collect()[0][0]
            if newest is not None or all(o <= (state.earliest.get(t, p) or 0) for t, p, o in start):
                return Moment(newest)
            # Compaction and transaction markers leave offsets without a record.
            lookback *= 100

    def tombstones(self, arguments: Mapping[str, Any]) -> Ratio:
        if arguments["of"] == "topic":
            records = self._records()
            row = records.agg(F.count_if(F.col("value").isNull()), F.count(F.lit(1))).collect()[0]
            return Ratio(row[0], row[1])
        first = max(0, self.version - arguments["last_versions"]) + 1
        if first > self.version:
            return Ratio(0, 0)
        with feed_errors(self.table, first, self.version):
            kinds = change_feed.changes(self.table, first, self.version).select("__kind")
            deleted = F.count_if(F.col("__kind") == "-D")
            row = kinds.agg(deleted, F.count_if(F.col("__kind") != "-U")).collect()[0]
        return Ratio(row[0], row[1])

    def _records(self) -> DataFrame:
        """All records of the topic, up to the offsets that the table has applied."""
        state = admin.describe(admin.resolve(self.definition.topic))
        end = self.offsets or state.end
        start = Offsets.of((t, p, min(o, state.earliest.get(t, p) or 0)) for t, p, o in end)
        records = source.read(self.spark, self.definition.topic, start, end)
        return with_leader_epochs(records, self.definition.topic, start, end)


def _signed(table: Table, key: list[str], rows: DataFrame, replayed: Any, stored: Any) -> DataFrame:
    name = F.to_json(F.struct(*[col(n) for n in key]), {"ignoreNullFields": "false"}) if key else F.lit(None)
    return rows.select(
        row_fingerprint(table.fields).alias("fingerprint"),
        name.cast("string").alias("key"),
        replayed.cast(_SUM).alias("replayed"),
        stored.cast(_SUM).alias("stored"),
    )


def _hex(total: object) -> str:
    return f"{int(str(total or 0)) % 2**64:016x}"
