"""The rows of the table of goals about publishing: the changes of every row of a table, with each guarantee."""

from __future__ import annotations

import itertools
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.goals import Outcome, at_least, void
from benchmarks.ground import Say
from benchmarks.measure import race
from benchmarks.oracle import same
from benchmarks.publish import COLUMNS, Bench
from bridge.kafka.broker import Broker

__all__ = ["outcomes"]

_LOOPED = 1_000_000
"""The bare loop sends these many records again and again: more need not be held in memory."""
_GUARANTEES = ("at-least-once", "exactly-once")


def outcomes(spark: SparkSession, broker: Broker, folder: Path, rows: int, say: Say) -> list[Outcome]:
    """Publish `rows` updates from the change feed, once for nothing and twice measured, the shorter counts; the
    last topics are then compared with the table by Spark's own reader."""
    bench = Bench(spark, broker, folder, rows)
    plain = bench.plain(min(rows, _LOOPED))
    topics: dict[str, str] = {}

    def publish(guarantee: str) -> None:
        topics[guarantee] = bench.publish("version:1", guarantee)

    ways = [
        lambda: bench.loop(itertools.islice(itertools.cycle(plain), rows)),
        *(lambda g=guarantee: publish(g) for guarantee in _GUARANTEES),
    ]
    loop, least, once = race(ways, rounds=2, warm=1)
    say(f"publish: a bare loop {loop:.1f} s, at-least-once {least:.1f} s, exactly-once {once:.1f} s")
    table = spark.read.format("delta").load(str(folder / "table"))
    wrong = {g: same(table, _rows(spark, broker, topic)) for g, topic in topics.items()}
    first = at_least(
        f"publish of {rows:,} changes, at-least-once / a bare produce loop",
        "records/s",
        rows / loop,
        rows / least,
        0.35,
    )
    second = at_least(
        f"publish of {rows:,} changes, exactly-once / at-least-once",
        "records/s",
        rows / least,
        rows / once,
        0.8,
    )
    some, all_of_them = wrong["at-least-once"], wrong["at-least-once"] or wrong["exactly-once"]
    return [
        first if not some else void(first, some),
        second if not all_of_them else void(second, all_of_them),
    ]


def _rows(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    """The rows in committed records of the topic."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    records = reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()
    row = F.from_json(F.col("value").cast("string"), COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_NTZ"))
    return records.select(row.alias("row")).select("row.*")
