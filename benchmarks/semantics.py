"""What change semantics cost: batches of 100,000 changes into a large table, beside plain upserts and, of a history,
beside the MERGE for SCD type 2 of Delta Lake's documentation.

All read the same topic in this process, in turn: each of its keys once, in no order of their numbers. The recipe is
what the documentation shows (a key joins the updates once with its key, which ends its row, and once without, which
inserts the new one), in a session with as many shuffle partitions as cores. It takes records of a key in their order
only, and applies a batch twice where it is cut off; late records are not in the topic, so that it is right here.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.base_tables import PIPELINE
from benchmarks.cpu import Others
from benchmarks.found import Found
from benchmarks.goals import at_most, faster
from benchmarks.ground import Ground
from benchmarks.jobs import Ran, commits
from benchmarks.results import RECIPE, Entry
from benchmarks.scale import Scale
from benchmarks.topics import FLINK_TYPES, PARTITIONS, ROW, SPARK, section
from bridge import config
from bridge.columns import row_fingerprint
from bridge.definition import Definition
from bridge.history_columns import History
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.runtime.preflight import ingest_table
from bridge.session import child_session

_BATCHES = 6
_BATCH = 100_000
_SLOWER, _FASTER = 2.0, 5.0
_COLUMNS = tuple(FLINK_TYPES)
_NAMED = ("status", "amount", "number")
"""The columns that a change sets under `update-columns`."""
_COLS = "cols"


@dataclass(frozen=True)
class _Kind:
    """A semantics: what `delta` has for it, and the columns of the DDL that only it has."""

    name: str
    delta: str
    more: str = ""


_PLAIN = _Kind("plain upserts", "")
_ORDERED = _Kind("sequence-by", ", sequence-by: number")
_HISTORY = _Kind("history: scd2", ", sequence-by: number, history: scd2")
_PARTIAL = _Kind("update-columns", f", update-columns: {_COLS}", f", {_COLS} ARRAY<STRING>")


def play(ground: Ground, scale: Scale, found: Found) -> None:
    """Adds the rows of a table of twice as many rows as `scale` has records."""
    load = _Load.of(2 * scale.records)
    topic = load.sent(ground)
    plain, ordered, history, partial = (
        _bridge(ground, load, topic, kind) for kind in (_PLAIN, _ORDERED, _HISTORY, _PARTIAL)
    )
    recipe = _recipe(ground, load, topic)
    for entry in (ordered, history, partial):
        name = f"{load.title}: {entry.system} / plain upserts"
        found.add(at_most, name, "s a batch", plain.warm, entry.warm, _SLOWER, of=(plain, entry))
    name = f"{load.title}: {_HISTORY.name}, beside the MERGE of Delta's documentation"
    found.add(faster, name, "s a batch", recipe.warm, history.warm, _FASTER, of=(recipe, history))


@dataclass(frozen=True)
class _Load:
    """Records 1, 2, ... of keys of a table with the keys 0 to `rows`, each of another one."""

    rows: int
    batch: int
    step: int
    """The distance of the keys of two records, which has no divisor in common with `rows`."""

    @classmethod
    def of(cls, rows: int) -> _Load:
        step = int(rows * 0.618) | 1
        while math.gcd(step, rows) > 1:
            step += 2
        return cls(rows, min(_BATCH, rows // (2 * _BATCHES)), step)

    @property
    def records(self) -> int:
        return _BATCHES * self.batch

    @property
    def title(self) -> str:
        return f"{self.batch:,} changes into {self.rows:,} rows"

    def changes(self, spark: SparkSession) -> DataFrame:
        """The row of each record."""
        number = F.col("id") + 1
        drawn = spark.range(self.records).select(
            (number * self.step % self.rows).alias("id"), number.alias("number")
        )
        return _filled(drawn)

    def base(self, spark: SparkSession) -> DataFrame:
        """The rows of the table before: with the number 0."""
        return _filled(spark.range(self.rows).select("id", F.lit(0).cast("bigint").alias("number")))

    def sent(self, ground: Ground) -> str:
        """The topic with all records."""
        topic = f"semantics-{self.rows}"
        ground.broker.create_topic(topic, partitions=PARTITIONS)
        cols = F.array(*map(F.lit, _NAMED)).alias(_COLS)
        value = F.to_json(
            F.struct(*_COLUMNS, cols), {"ignoreNullFields": "false", "timestampNTZFormat": _SQL_TIME}
        )
        key = F.to_json(F.struct("id"))
        records = self.changes(ground.spark).select(key.alias("key"), value.alias("value"))
        started = time.perf_counter()
        options = {"kafka.bootstrap.servers": ground.broker.bootstrap, "topic": topic}
        records.write.format("kafka").options(**options).save()
        ground.say(f"topic {topic}: {self.records:,} records in {time.perf_counter() - started:.0f} s")
        return topic


_SQL_TIME = "yyyy-MM-dd HH:mm:ss.SSS"


def _filled(numbered: DataFrame) -> DataFrame:
    """The columns of a row by its id and number."""
    return numbered.select(*(F.expr(ROW.get(name, name)).alias(name) for name in _COLUMNS))


def _bridge(ground: Ground, load: _Load, topic: str, kind: _Kind) -> Entry:
    """The batches of the bridge under one semantics, with its defaults."""
    place = ground.place()
    definition = _definition(ground, place, load, topic, kind)
    table = Path(str(definition.delta.path))
    made = ingest_table(ground.spark, definition)
    base = load.base(ground.spark)
    if kind is _PARTIAL:
        base = base.withColumn(_COLS, F.lit(None).cast("array<string>"))
    if kind is _HISTORY:
        base = _as_history(base)
    base.select(*made.columns).write.format("delta").mode("append").save(str(table))

    def judge() -> str | None:
        rows = ground.spark.read.format("delta").load(str(table))
        return _wrong(rows, _expected(ground.spark, load, kind).select(*made.columns))

    return _timed(ground, load, kind.name, lambda: ingest(ground.spark, definition), table, judge)


def _definition(ground: Ground, place: Path, load: _Load, topic: str, kind: _Kind) -> Definition:
    file = place / "pipeline.yaml"
    file.write_text(
        f"{section(ground.broker, topic, more=kind.more)}name: {PIPELINE}\n"
        f"delta: {{path: {place / 'table'}{kind.delta}}}\n"
        f"run: {{checkpoint: {place / 'checkpoint'}, max-offsets-per-batch: {load.batch}}}\n"
    )
    return config.load(file)


def _recipe(ground: Ground, load: _Load, topic: str) -> Entry:
    """The same batches by the recipe."""
    place, spark = ground.place(), child_session(ground.spark)
    table = place / "table"
    spark.conf.set("spark.sql.shuffle.partitions", str(os.cpu_count()))
    spark.sql(
        f"CREATE TABLE delta.`{table}` ({SPARK}, start BIGINT, `end` BIGINT, current BOOLEAN) USING delta"
    )
    base = _as_history(load.base(spark)).toDF(*_COLUMNS, "start", "end", "current")
    base.write.format("delta").mode("append").save(str(table))

    def run() -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", ground.broker.bootstrap)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        query = (
            reader.option("maxOffsetsPerTrigger", load.batch)
            .load()
            .writeStream.foreachBatch(lambda batch, _: merge_history(batch, str(table)))
            .option("checkpointLocation", str(place / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def judge() -> str | None:
        rows = spark.read.format("delta").load(str(table))
        return _wrong(rows, _expected(spark, load, _HISTORY).toDF(*rows.columns))

    partitions = f"{RECIPE}, {os.cpu_count()} shuffle partitions"
    return _timed(ground, load, partitions, run, table, judge)


def merge_history(batch: DataFrame, table: str) -> None:
    """Merge one batch of records as "SCD type 2 using MERGE" of Delta's documentation does."""
    row = F.from_json(F.col("value").cast("string"), SPARK, {"timestampNTZFormat": _SQL_TIME})
    updates = batch.select(row.alias("row")).select("row.*").persist()
    history = DeltaTable.forPath(batch.sparkSession, table)
    changed = "t.current = true AND t.number <> s.number"
    again = updates.alias("s").join(history.toDF().alias("t"), F.expr("t.id = s.id"))
    again = again.where(changed).select("s.*")
    keyless = again.selectExpr("CAST(NULL AS BIGINT) AS merge_key", *_COLUMNS)
    staged = keyless.union(updates.selectExpr("id AS merge_key", *_COLUMNS))
    values = {name: f"s.{name}" for name in _COLUMNS}
    (
        history.alias("t")
        .merge(staged.alias("s"), "t.id = s.merge_key")
        .whenMatchedUpdate(changed, set={"current": "false", "`end`": "s.number"})
        .whenNotMatchedInsert(values={**values, "current": "true", "start": "s.number", "`end`": "null"})
        .execute()
    )
    updates.unpersist()


def _as_history(rows: DataFrame) -> DataFrame:
    """The rows as intervals that are valid now, since their number."""
    start, end, current = History().columns
    none = F.lit(None).cast("bigint")
    return rows.withColumns({start: F.col("number"), end: none, current: F.lit(True)})


def _expected(spark: SparkSession, load: _Load, kind: _Kind) -> DataFrame:
    """The table after all records."""
    base, changes = load.base(spark), load.changes(spark)
    if kind is _HISTORY:
        start, end, current = History().columns
        before = base.join(changes.select("id", F.col("number").alias(end)), "id", "left")
        before = before.withColumns({start: F.col("number"), current: F.col(end).isNull()})
        return _as_history(changes).unionByName(before)
    if kind is not _PARTIAL:
        return base.join(changes, "id", "left_anti").unionByName(changes)
    none = F.lit(None).cast("array<string>")
    updated = changes.alias("c").join(base.alias("b"), "id")
    kept: list[Column] = [
        F.col(f"{'c' if name in _NAMED else 'b'}.{name}") for name in _COLUMNS if name != "id"
    ]
    merged = updated.select("id", *kept, F.array(*map(F.lit, _NAMED)).alias(_COLS))
    return base.join(changes, "id", "left_anti").withColumn(_COLS, none).unionByName(merged)


def _wrong(rows: DataFrame, expected: DataFrame) -> str | None:
    """What is wrong with the rows, by their number and the sum of their hashes."""
    found, right = (
        frame.agg(
            F.count(F.lit(1)), F.sum(row_fingerprint(expected.schema.fields).cast("decimal(38,0)"))
        ).collect()[0]
        for frame in (rows.select(*expected.columns), expected)
    )
    if found[0] != right[0]:
        return f"{found[0]:,} rows instead of {right[0]:,}"
    return None if found[1] == right[1] else "some rows have other values"


def _timed(
    ground: Ground,
    load: _Load,
    system: str,
    work: Callable[[], object],
    table: Path,
    judge: Callable[[], str | None],
) -> Entry:
    others, started = Others(ground.serving), time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    ran = Ran(seconds, commits(table), [], None, others.served, others.seconds())
    return ground.added(
        Entry(load.title, system, load.records, ran, _batches(ran) or judge(), ground.tolerance)
    )


def _batches(ran: Ran) -> str | None:
    found = len(ran.batches)
    return None if found >= _BATCHES else f"{found} batches instead of {_BATCHES}"
