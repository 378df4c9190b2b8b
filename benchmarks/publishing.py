"""Plays the scenarios of publish: changes of every row of a table, with each guarantee."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.goals import Outcome, at_least, void
from benchmarks.ground import Say
from benchmarks.measure import race
from benchmarks.oracle import same
from benchmarks.publish import COLUMNS, INGESTED, TABLE, Bench
from bridge.embedded.broker import Broker

__all__ = ["outcomes"]

_LOOPED = 1_000_000
"""The number of different records that the bare loop sends repeatedly, to limit memory."""
_GUARANTEES = ("at-least-once", "exactly-once")


def outcomes(spark: SparkSession, broker: Broker, folder: Path, rows: int, say: Say) -> list[Outcome]:
    """Publish `rows` updates from the change feed, those that an ingest made and those of an UPDATE, once for nothing
    and three times measured, the shortest counts; the last topics are then compared with the tables by Spark's own
    reader."""
    bench = Bench(spark, broker, folder, rows)
    plain = bench.plain(min(rows, _LOOPED))
    begun = {INGESTED: bench.ingested(), TABLE: "version:1"}
    say(
        f"publish: a table of {rows:,} rows, and one written by an ingest, whose changes start with {begun[INGESTED]}"
    )
    topics: dict[tuple[str, str], str] = {}

    def publish(table: str, guarantee: str) -> None:
        topics[table, guarantee] = bench.publish(begun[table], guarantee, table)

    kinds = list(itertools.product(begun, _GUARANTEES))
    ways: list[Callable[[], object]] = [
        lambda: bench.loop(itertools.islice(itertools.cycle(plain), rows)),
        *(partial(publish, *kind) for kind in kinds),
    ]
    loop, *seconds = race(ways, rounds=3, warm=1)
    took = dict(zip(kinds, seconds, strict=True))
    shown = ", ".join(f"{table} {guarantee} {took[table, guarantee]:.1f} s" for table, guarantee in kinds)
    say(f"publish: a bare loop {loop:.1f} s, {shown}")
    found = []
    for table, whose in ((INGESTED, "that an ingest wrote"), (TABLE, "by an UPDATE")):
        here = spark.read.format("delta").load(str(folder / table))
        some, once = (same(here, _rows(spark, broker, topics[table, g])) for g in _GUARANTEES)
        least, exactly = (rows / took[table, g] for g in _GUARANTEES)
        what = f"publish of {rows:,} changes {whose}"
        first = at_least(
            f"{what}, at-least-once / a bare produce loop", "records/s", rows / loop, least, 0.35
        )
        second = at_least(f"{what}, exactly-once / at-least-once", "records/s", least, exactly, 0.8)
        either = some or once
        found += [
            first if not some else void(first, some),
            second if not either else void(second, either),
        ]
    return found


def _rows(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    """Returns the rows in committed records of the topic."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    records = reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()
    row = F.from_json(F.col("value").cast("string"), COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_NTZ"))
    return records.select(row.alias("row")).select("row.*")
