"""What a check's expectations may ask about topic and history; see quality.facts."""

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
from bridge.delta.table import Table
from bridge.errors import QualityError
from bridge.kafka import admin, source
from bridge.kafka.leader_epochs import with_leader_epochs
from bridge.offsets import Offsets
from bridge.pipelines.changes import changelog_decode
from bridge.pipelines.compare.verify import verify
from bridge.quality.facts import Facts, KeySplit, Moment, Ratio, RowDifferences

__all__ = ["facts_of"]

_EXAMPLES = 5
_LAST_RECORDS = 100
_SUM = "decimal(38,0)"


def facts_of(
    spark: SparkSession, definition: Definition, table: Table, version: int, offsets: Offsets | None
) -> Facts:
    """Answers about `table` at `version`, which holds the topic up to `offsets` (None: up to its end).

    Nothing is read before an expectation asks. Names: equality, feed, partitions, arrival, tombstones; arguments are
    those of the expectations that ask. `equality` looks at the positions that `bridge verify` would choose, and says
    which these were.
    """
    asked = _FactReader(spark, definition, table, version, offsets)
    return Facts(
        {
            "equality": asked.equality,
            "feed": asked.feed,
            "partitions": asked.partitions,
            "arrival": asked.arrival,
            "tombstones": asked.tombstones,
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
        found = proof.comparison
        return RowDifferences(
            f"version {proof.version}, topic up to {proof.offsets.to_json()}",
            found.topic_rows,
            found.table_rows,
            found.topic_checksum,
            found.table_checksum,
            found.missing_in_table + found.missing_in_topic + found.different + found.duplicate_keys,
            tuple(json.loads(example.key) for example in found.examples),
        )

    def feed(self, arguments: Mapping[str, Any]) -> RowDifferences:
        last = arguments.get("to_version", self.version)
        first = arguments.get("from_version", max(0, last - arguments["last_versions"]))
        if not first < last <= self.version:
            raise QualityError(
                f"there is nothing to replay from version {first} to {last}; the version that is checked is "
                f"{self.version}"
            )
        key = list(self.definition.primary_key)
        with change_feed.feed_errors(self.table, first, last), ExitStack() as stack:
            then, now = (change_feed.snapshot(self.table, number) for number in (first, last))
            changed = change_feed.changes(self.table, first + 1, last)
            sign = F.when(retracts(), -1).otherwise(1)
            sides = (
                _signed(self.table, key, then, sign, F.lit(0))
                .unionByName(_signed(self.table, key, changed, sign, F.lit(0)))
                .unionByName(_signed(self.table, key, now, F.lit(0), F.lit(1)))
            )
            rows = sides.groupBy("print", "key").agg(F.sum("one").alias("one"), F.sum("other").alias("other"))
            rows = changelog_decode.persist_within(stack)(rows)
            one, other, print_ = F.col("one"), F.col("other"), F.col("print").cast(_SUM)
            row = rows.agg(F.sum(one), F.sum(other), F.sum(print_ * one), F.sum(print_ * other)).collect()[0]
            wrong = rows.where(one != other)
            keys = wrong.select("key").distinct() if key else wrong
            differing = keys.count()
            named = [r[0] for r in keys.sort("key").limit(_EXAMPLES).collect()] if key and differing else []
        return RowDifferences(
            f"versions {first} to {last}",
            row[0] or 0,
            row[1] or 0,
            _hex(row[2]),
            _hex(row[3]),
            differing,
            tuple(json.loads(name) for name in named),
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
            held, records = changelog_decode.persist_within(stack), self._records()
            if definition.topic.is_upsert:
                known = decode_keys(records, definition.topic).where(col(BAD).isNull())
            else:
                known = changelog_decode.decode_with_fallback(records, definition, held).where(
                    changelog_decode.is_good()
                )
            keys = known.groupBy(*names).agg((F.min(place) != F.max(place)).alias("__two"))
            row = keys.agg(F.count(F.lit(1)), F.count_if("__two")).collect()[0]
            named = []
            if row[1]:
                wrong = keys.where("__two").sort(*names).limit(_EXAMPLES)
                named = [r[0] for r in wrong.select(F.to_json(F.struct(*names))).collect()]
        return KeySplit(row[0], row[1], tuple(json.loads(name) for name in named))

    def arrival(self, arguments: Mapping[str, Any]) -> Moment:
        if arguments["of"] == "commit":
            return Moment(change_feed.changed_ms(self.table, self.version))
        state = admin.describe(admin.resolve(self.definition.topic))
        end = self.offsets or state.end
        back = _LAST_RECORDS
        while True:
            start = Offsets.of((t, p, max(state.earliest.get(t, p) or 0, o - back)) for t, p, o in end)
            records = source.read(self.spark, self.definition.topic, start, end)
            newest = records.agg(F.max(F.unix_millis("timestamp"))).collect()[0][0]
            if newest is not None or all(o <= (state.earliest.get(t, p) or 0) for t, p, o in start):
                return Moment(newest)
            # Compaction and the markers of transactions leave offsets without a record.
            back *= 100

    def tombstones(self, arguments: Mapping[str, Any]) -> Ratio:
        if arguments["of"] == "topic":
            records = self._records()
            row = records.agg(F.count_if(F.col("value").isNull()), F.count(F.lit(1))).collect()[0]
            return Ratio(row[0], row[1])
        first = max(0, self.version - arguments["last_versions"]) + 1
        if first > self.version:
            return Ratio(0, 0)
        with change_feed.feed_errors(self.table, first, self.version):
            kinds = change_feed.changes(self.table, first, self.version).select("__kind")
            deleted = F.count_if(F.col("__kind") == "-D")
            row = kinds.agg(deleted, F.count_if(F.col("__kind") != "-U")).collect()[0]
        return Ratio(row[0], row[1])

    def _records(self) -> DataFrame:
        """All that the topic holds, up to where the table does."""
        state = admin.describe(admin.resolve(self.definition.topic))
        end = self.offsets or state.end
        start = Offsets.of((t, p, min(o, state.earliest.get(t, p) or 0)) for t, p, o in end)
        records = source.read(self.spark, self.definition.topic, start, end)
        return with_leader_epochs(records, self.definition.topic, start, end)


def _signed(table: Table, key: list[str], rows: DataFrame, one: Any, other: Any) -> DataFrame:
    name = F.to_json(F.struct(*[col(n) for n in key]), {"ignoreNullFields": "false"}) if key else F.lit(None)
    return rows.select(
        row_fingerprint(table.fields).alias("print"),
        name.cast("string").alias("key"),
        one.cast(_SUM).alias("one"),
        other.cast(_SUM).alias("other"),
    )


def _hex(total: object) -> str:
    return f"{int(str(total or 0)) % 2**64:016x}"
