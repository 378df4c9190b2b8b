"""Plays the scenarios of publish: changes of every row of a table with each guarantee, and a table beside Flink."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks import sinks
from benchmarks.goals import Outcome
from benchmarks.ground import Ground
from benchmarks.oracle import digest, same
from benchmarks.publish import COLUMNS, INGESTED, TABLE, Bench
from benchmarks.results import Entry
from benchmarks.rounds import Rounds, compared, in_turn

_LOOPED = 1_000_000
"""The number of different records that the bare loop sends repeatedly, to limit memory."""
_GUARANTEES = ("at-least-once", "exactly-once")
_LOOP = "a bare produce loop"
_SOURCES = ((INGESTED, "that an ingest wrote", 0.5), (TABLE, "by an UPDATE", 0.35))
"""Tables, who wrote their changes, and the part of a bare loop's speed that is the goal."""


def outcomes(ground: Ground, folder: Path, rows: int, rounds: int) -> list[Outcome]:
    """Publish `rows` updates from the change feed, those that an ingest made and those of an UPDATE, in this process:
    once for nothing, then in turn with a bare loop; each topic is then compared with its table by Spark's own reader.
    At last the whole table, in a process of its own, beside Flink."""
    bench = Bench(ground.spark, ground.broker, folder, rows)
    plain = bench.plain(min(rows, _LOOPED))
    begun = {INGESTED: bench.ingested(), TABLE: "version:1"}
    tables = {name: digest(ground.spark.read.format("delta").load(str(folder / name))) for name in begun}
    ground.say(f"publish: a table of {rows:,} rows, and one written by an ingest, from {begun[INGESTED]} on")

    def loop() -> None:
        bench.loop(itertools.islice(itertools.cycle(plain), rows))

    def publish(table: str, guarantee: str) -> str:
        return bench.publish(begun[table], guarantee, table)

    def judged(table: str, topic: object) -> str | None:
        return same(tables[table], digest(topic_rows(ground, str(topic))))

    kinds = list(itertools.product(begun, _GUARANTEES))
    loop()
    for kind in kinds:
        publish(*kind)
    ways: list[Callable[[], Entry]] = [partial(_timed, ground, _LOOP, rows, loop, lambda _: None)]
    for table, guarantee in kinds:
        system = f"bridge, {table}, {guarantee}"
        given = (partial(publish, table, guarantee), partial(judged, table))
        ways.append(partial(_timed, ground, system, rows, *given))
    played = [found for found in in_turn(rounds, ways) if found is not None]
    took: dict[tuple[str, str], Rounds] = dict(zip(kinds, played[1:], strict=True))
    made = []
    for table, whose, goal in _SOURCES:
        some, once = (took[table, guarantee] for guarantee in _GUARANTEES)
        what = f"publish of {rows:,} changes {whose}"
        made += [
            compared(f"{what}, at-least-once / {_LOOP}", "records/s", _rate, goal, played[0], some),
            compared(f"{what}, exactly-once / at-least-once", "records/s", _rate, 0.8, some, once),
        ]
    return made + sinks.outcomes(ground, bench, tables[TABLE], rounds, partial(topic_rows, ground))


def topic_rows(ground: Ground, topic: str) -> DataFrame:
    """Returns the rows in committed records of the topic."""
    reader = ground.spark.read.format("kafka").option("kafka.bootstrap.servers", ground.broker.bootstrap)
    records = reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()
    row = F.from_json(F.col("value").cast("string"), COLUMNS.replace("TIMESTAMP(3)", "TIMESTAMP_NTZ"))
    return records.select(row.alias("row")).select("row.*")


def _timed(
    ground: Ground,
    system: str,
    rows: int,
    work: Callable[[], object],
    judge: Callable[[object], str | None],
) -> Entry:
    return ground.timed(f"publish of {rows:,} changes, in a process that runs", system, rows, work, judge)


def _rate(entry: Entry) -> float:
    return entry.rate
