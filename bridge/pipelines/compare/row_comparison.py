"""Compares two frames of rows by key, without moving rows to the driver.

Both sides become one row per key: the key and a 64-bit fingerprint of the whole row. One grouping over both finds keys
that are missing, different or duplicate, whatever the size of either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.backend import persist, unpersist
from bridge.columns import KIND, POSITION, col, retracts, row_fingerprint, same_key

BUCKETS = 64
_EXAMPLES = 5
_SUM_TYPE = "decimal(38,0)"  # sums of 64-bit fingerprints must not overflow
_BUCKET, _WHY = "__bucket", "__why"


@dataclass(frozen=True)
class Bucket:
    """The rows whose key hashes to one of 64 buckets."""

    number: int
    topic_rows: int
    table_rows: int
    topic_checksum: str
    table_checksum: str


@dataclass(frozen=True)
class Example:
    """A key that differs between both sides; `key` and rows as JSON."""

    key: str
    why: str
    """missing_in_table, missing_in_topic, different or duplicate_keys."""
    topic_position: str | None = None
    """The position of its newest compared record: `topic-partition at offset N`; None without a record."""
    topic_row: str | None = None
    table_row: str | None = None
    """Only with `show_values`; of several rows the smallest."""


@dataclass(frozen=True)
class Comparison:
    """Counts of rows and of keys that differ."""

    topic_rows: int
    table_rows: int
    topic_checksum: str
    table_checksum: str
    missing_in_table: int
    missing_in_topic: int
    different: int
    duplicate_keys: int
    superseded: int = 0
    """Keys that only the table has, with a later record in the topic: compaction may have removed the compared one.
    They do not count as missing."""
    buckets: tuple[Bucket, ...] = ()
    """The buckets whose rows or checksums differ."""
    examples: tuple[Example, ...] = ()
    """At most five keys that differ, the smallest ones."""

    @property
    def equal(self) -> bool:
        """True if every key is on both sides, once, with the same row."""
        return not (self.missing_in_table or self.missing_in_topic or self.different or self.duplicate_keys)


def compare(
    topic: DataFrame,
    table: DataFrame,
    *,
    key: Sequence[str],
    fields: Sequence[T.StructField],
    later: DataFrame | None = None,
    show_values: bool = False,
) -> Comparison:
    """Compare the rows of both frames by `key`, over `fields` (the key among them), null-safely.

    Where `topic` has `__kind`, retractions do not count as rows; where it has `__position`, examples contain it.
    `later` has the keys of the records after the compared ones. The checksums do not depend on order: they are sums of
    the fingerprints of rows, modulo 2^64, in hexadecimal.
    """
    names = [col(name) for name in key]
    sides = _side(topic, names, fields, topic=True).unionByName(_side(table, names, fields, topic=False))
    if later is not None:
        later_keys = later.select(*names, F.lit(True).alias("__later"))
        sides = sides.unionByName(later_keys, allowMissingColumns=True)
    else:
        sides = sides.withColumn("__later", F.lit(None).cast("boolean"))
    keys = persist(
        sides.groupBy(*names)
        .agg(
            F.count("__topic").alias("__in_topic"),
            F.count("__table").alias("__in_table"),
            F.sum("__topic").alias("__topic"),
            F.sum("__table").alias("__table"),
            F.count("__later").alias("__later"),
        )
        .withColumn(_BUCKET, F.pmod(F.xxhash64(*names), F.lit(BUCKETS)))
    )
    try:
        conditions = {name: F.expr(condition) for name, condition in _CONDITIONS.items()}
        comparison = _to_comparison(
            keys.groupBy(_BUCKET)
            .agg(
                F.sum("__in_topic"),
                F.sum("__in_table"),
                F.sum("__topic"),
                F.sum("__table"),
                *[F.count_if(condition) for condition in conditions.values()],
            )
            .collect()  # a row per bucket
        )
        if not comparison.equal:
            why = F.coalesce(*[F.when(conditions[name], name) for name in _DIFFERENCES])
            differing = keys.withColumn(_WHY, why).where(col(_WHY).isNotNull())
            shown = differing.orderBy(*names).limit(_EXAMPLES).select(*names, _WHY)
            comparison = replace(
                comparison, examples=_examples(shown, topic, table, key, fields, show_values)
            )
    finally:
        unpersist(keys)
    return comparison


def compare_bags(topic: DataFrame, table: DataFrame, *, fields: Sequence[T.StructField]) -> Comparison:
    """Compare rows without a key: each must be on both sides the same number of times, a retraction, too.

    `different` and `duplicate_keys` are 0. There are no examples, since only its values identify a row.
    """
    rows = (
        _side(topic.drop(KIND), [], fields, topic=True)
        .unionByName(_side(table, [], fields, topic=False))
        .groupBy(F.coalesce("__topic", "__table").alias("__row"))
        .agg(F.count("__topic").alias("__in_topic"), F.count("__table").alias("__in_table"))
        .withColumn(_BUCKET, F.pmod(col("__row"), F.lit(BUCKETS)))
    )
    surplus = col("__in_topic") - col("__in_table")
    return _to_comparison(
        rows.groupBy(_BUCKET)
        .agg(
            F.sum("__in_topic"),
            F.sum("__in_table"),
            F.sum(col("__row") * col("__in_topic")),
            F.sum(col("__row") * col("__in_table")),
            F.sum(F.greatest(surplus, F.lit(0))),
            F.sum(F.greatest(-surplus, F.lit(0))),
        )
        .collect()  # a row per bucket
    )


_CONDITIONS = {
    "missing_in_table": "__in_topic > 0 and __in_table = 0",
    "missing_in_topic": "__in_topic = 0 and __in_table > 0 and __later = 0",
    "different": "__in_topic = 1 and __in_table = 1 and __topic != __table",
    "duplicate_keys": "__in_topic > 1 or __in_table > 1",
    "superseded": "__in_topic = 0 and __in_table > 0 and __later > 0",
}
_DIFFERENCES = ("duplicate_keys", "missing_in_table", "missing_in_topic", "different")
"""The conditions that count as a difference, in the order in which one is chosen for an example."""


def _to_comparison(rows: Sequence[Row]) -> Comparison:
    """Build a comparison from a row per bucket: number, rows and fingerprints of both sides, counts by _CONDITIONS."""
    buckets = [
        Bucket(int(r[0]), r[1] or 0, r[2] or 0, _hex(r[3]), _hex(r[4]))
        for r in sorted(rows, key=lambda r: r[0])
    ]
    counts = [sum(int(row[n] or 0) for row in rows) for n in range(1, len(rows[0]))] if rows else []
    by_name = dict.fromkeys(_CONDITIONS, 0) | dict(zip(_CONDITIONS, counts[4:], strict=False))
    topic_rows, table_rows, topic_sum, table_sum = counts[:4] or (0, 0, 0, 0)
    return Comparison(
        missing_in_table=by_name["missing_in_table"],
        missing_in_topic=by_name["missing_in_topic"],
        different=by_name["different"],
        duplicate_keys=by_name["duplicate_keys"],
        superseded=by_name["superseded"],
        topic_rows=topic_rows,
        table_rows=table_rows,
        topic_checksum=_hex(topic_sum),
        table_checksum=_hex(table_sum),
        buckets=tuple(
            b for b in buckets if (b.topic_rows, b.topic_checksum) != (b.table_rows, b.table_checksum)
        ),
    )


def _examples(
    shown: DataFrame,
    topic: DataFrame,
    table: DataFrame,
    key: Sequence[str],
    fields: Sequence[T.StructField],
    show_values: bool,
) -> tuple[Example, ...]:
    """Collect a few keys, the position of their newest records, and with `show_values` their rows."""
    named = F.to_json(F.struct(*[col(name, "k") for name in key]))
    keys = persist(shown.alias("k"))
    try:
        why = {row[0]: row[1] for row in keys.select(named, _WHY).collect()}
        sample = F.broadcast(keys)
        positions: dict[str, str] = {}
        rows: dict[tuple[str, str], str] = {}
        if POSITION in topic.columns:
            parts = (col(POSITION, "r").getField(part) for part in ("topic", "partition", "offset"))
            newest = F.max(F.struct(col(POSITION, "r").getField("timestamp"), *parts))
            at = topic.alias("r").join(sample, same_key(key, "r", "k")).groupBy(named).agg(newest)
            positions = {row[0]: "{1}-{2} at offset {3}".format(*row[1]) for row in at.collect()}
        for side, frame in (("topic", topic), ("table", table)) if show_values else ():
            present = frame.where(~retracts()) if KIND in frame.columns else frame
            row = F.to_json(F.struct(*[col(f.name, "r") for f in fields]), {"ignoreNullFields": "false"})
            first = present.alias("r").join(sample, same_key(key, "r", "k")).groupBy(named).agg(F.min(row))
            rows |= {(side, pair[0]): pair[1] for pair in first.collect()}
    finally:
        unpersist(keys)
    return tuple(
        Example(name, reason, positions.get(name), rows.get(("topic", name)), rows.get(("table", name)))
        for name, reason in why.items()
    )


def _side(frame: DataFrame, key: list[Column], fields: Sequence[T.StructField], *, topic: bool) -> DataFrame:
    fingerprint, null = row_fingerprint(fields).cast(_SUM_TYPE), F.lit(None).cast(_SUM_TYPE)
    if topic and KIND in frame.columns:
        fingerprint = F.when(~retracts(), fingerprint)
    return frame.select(
        *key,
        (fingerprint if topic else null).alias("__topic"),
        (null if topic else fingerprint).alias("__table"),
    )


def _hex(total: object) -> str:
    return f"{int(str(total or 0)) % 2**64:016x}"
