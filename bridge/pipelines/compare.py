"""Two frames of rows by key, compared without moving a row to the driver.

Both sides become one row per key: the key and a 64-bit fingerprint of the whole row. One grouping over both
finds keys that are missing, differ, or stand twice, whatever the size of either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.columns import col, fingerprint

__all__ = ["Comparison", "compare", "compare_bags"]

_EXAMPLES = 5
_PRINT = "decimal(38,0)"  # sums of 64-bit prints must not overflow


@dataclass(frozen=True)
class Comparison:
    """Counts of rows and of keys that are not the same; `examples` are at most five such keys as JSON."""

    topic_rows: int
    table_rows: int
    topic_checksum: str
    table_checksum: str
    missing_in_table: int
    missing_in_topic: int
    different: int
    duplicate_keys: int
    examples: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """True when every key is on both sides, once, with the same row."""
        return not (self.missing_in_table or self.missing_in_topic or self.different or self.duplicate_keys)


def compare(
    topic: DataFrame, table: DataFrame, *, key: Sequence[str], fields: Sequence[T.StructField]
) -> Comparison:
    """Compare the rows of both frames by `key`, over `fields` (the key among them), null-safely.

    The checksums do not depend on order: the sums of the rows' fingerprints, modulo 2^64, in hexadecimal.
    """
    names = [col(name) for name in key]
    keys = (
        _side(topic, names, fields, topic=True)
        .unionByName(_side(table, names, fields, topic=False))
        .groupBy(*names)
        .agg(
            F.count("__topic").alias("__in_topic"),
            F.count("__table").alias("__in_table"),
            F.sum("__topic").alias("__topic"),
            F.sum("__table").alias("__table"),
        )
        .persist()
    )
    judged = _judgements()
    try:
        found = keys.agg(
            F.sum("__in_topic").alias("topic_rows"),
            F.sum("__in_table").alias("table_rows"),
            F.sum("__topic").alias("topic_sum"),
            F.sum("__table").alias("table_sum"),
            *[F.count_if(condition).alias(name) for name, condition in judged.items()],
        ).first()
        assert found is not None
        counts = {name: int(found[name]) for name in judged}
        wrong = keys.where(" or ".join(f"({name})" for name in _CONDITIONS.values())).limit(_EXAMPLES)
        # At most five keys, and only where something is wrong: no data travels to the driver.
        examples = (
            wrong.select(F.to_json(F.struct(*names)).alias("key")).collect() if any(counts.values()) else []
        )
    finally:
        keys.unpersist()
    return Comparison(
        topic_rows=int(found["topic_rows"] or 0),
        table_rows=int(found["table_rows"] or 0),
        topic_checksum=_hex(found["topic_sum"]),
        table_checksum=_hex(found["table_sum"]),
        examples=tuple(row["key"] for row in examples),
        **counts,
    )


def compare_bags(topic: DataFrame, table: DataFrame, *, fields: Sequence[T.StructField]) -> Comparison:
    """Compare rows that have no key: each must be on both sides as many times. `different` and `duplicate_keys` are 0,
    and there are no examples, as nothing but a whole row names a row."""
    rows = (
        _side(topic, [], fields, topic=True)
        .unionByName(_side(table, [], fields, topic=False))
        .groupBy(F.coalesce("__topic", "__table").alias("__row"))
        .agg(F.count("__topic").alias("__in_topic"), F.count("__table").alias("__in_table"))
    )
    found = rows.agg(
        F.sum("__in_topic").alias("topic_rows"),
        F.sum("__in_table").alias("table_rows"),
        F.sum(col("__row") * col("__in_topic")).alias("topic_sum"),
        F.sum(col("__row") * col("__in_table")).alias("table_sum"),
        F.sum(F.greatest(col("__in_topic") - col("__in_table"), F.lit(0))).alias("missing_in_table"),
        F.sum(F.greatest(col("__in_table") - col("__in_topic"), F.lit(0))).alias("missing_in_topic"),
    ).first()
    assert found is not None
    return Comparison(
        topic_rows=int(found["topic_rows"] or 0),
        table_rows=int(found["table_rows"] or 0),
        topic_checksum=_hex(found["topic_sum"]),
        table_checksum=_hex(found["table_sum"]),
        missing_in_table=int(found["missing_in_table"] or 0),
        missing_in_topic=int(found["missing_in_topic"] or 0),
        different=0,
        duplicate_keys=0,
        examples=(),
    )


_CONDITIONS = {
    "missing_in_table": "__in_topic > 0 and __in_table = 0",
    "missing_in_topic": "__in_topic = 0 and __in_table > 0",
    "different": "__in_topic = 1 and __in_table = 1 and __topic != __table",
    "duplicate_keys": "__in_topic > 1 or __in_table > 1",
}


def _judgements() -> dict[str, Column]:
    return {name: F.expr(condition) for name, condition in _CONDITIONS.items()}


def _side(frame: DataFrame, key: list[Column], fields: Sequence[T.StructField], *, topic: bool) -> DataFrame:
    mark, nothing = fingerprint(fields).cast(_PRINT), F.lit(None).cast(_PRINT)
    return frame.select(
        *key, (mark if topic else nothing).alias("__topic"), (nothing if topic else mark).alias("__table")
    )


def _hex(total: Decimal | None) -> str:
    return f"{int(total or 0) % 2**64:016x}"
