"""Stores what was not applied: records with their bytes, positions and reasons, and rows that an INSERT leaves out.

They are quarantined before the batch that read them is committed, so none is lost in between. A batch that is repeated
finds its records there and adds none twice; its rows take the place of those that it left before.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bridge.columns import BAD, POSITION, col
from bridge.definition import DeltaTarget
from bridge.delta.delta_errors import retry_conflicts, table_errors
from bridge.delta.ingest_progress import committed_by
from bridge.delta.table import Table, create_by_sql, exists, handle, newest_in_history
from bridge.formats.sql import literal
from bridge.storage import make_local_folder

ROW_KEY = "array<struct<table: string, column: string, value: string>>"
"""The type of the columns of a row's keys."""

_COLUMNS = (
    "pipeline string, topic string, topic_id string, partition int, offset bigint, timestamp timestamp, "
    "timestamp_type int, key binary, value binary, headers array<struct<key: string, value: binary>>, "
    "reason string, batch bigint, quarantined_at timestamp, replayed_by string, "
    f"tables array<string>, row_key {ROW_KEY}"
)
"""A record as it was read; why it was quarantined (a reason contains no payload), by which batch and when; and the run
that is about to replay it. A row that an INSERT leaves out has no bytes, but its tables and the columns of their keys.
"""
_ROWS_ONLY = ("tables", "row_key")

_RECORD_KEY = ("pipeline", "topic", "topic_id", "partition", "offset")
"""Identifies a record. It includes the topic's id, as the offsets of a recreated topic start at 0 again."""


def quarantine_records(
    spark: SparkSession,
    target: DeltaTarget,
    records: DataFrame,
    changes: DataFrame,
    *,
    pipeline: str,
    batch: int,
    topic_ids: Mapping[str, str],
) -> None:
    """Quarantine those `records` (Kafka's columns) at whose position a row of `changes` has a reason in `__bad`.

    Creates the table when it is absent; several pipelines may share one. A record that is there already is not changed.
    Raises TableError when the table does not accept the records.
    """
    _create(spark, target)
    position = [col(POSITION).getField(part).alias(part) for part in ("topic", "partition", "offset")]
    bad = changes.where(col(BAD).isNotNull()).select(*position, col(BAD).alias("reason"))
    reasons = bad.groupBy("topic", "partition", "offset").agg(F.min("reason").alias("reason"))
    quarantined = records.join(F.broadcast(reasons), ["topic", "partition", "offset"]).select(
        F.lit(pipeline).alias("pipeline"),
        "topic",
        topic_id(topic_ids).alias("topic_id"),
        "partition",
        "offset",
        "timestamp",
        F.col("timestampType").alias("timestamp_type"),
        "key",
        "value",
        "headers",
        "reason",
        F.lit(batch).cast("bigint").alias("batch"),
        F.current_timestamp().alias("quarantined_at"),
        F.lit(None).cast("string").alias("replayed_by"),
    )

    def commit() -> None:
        target_table = handle(spark, target).alias("t")
        values: dict[str, str | Column] = {name: f"s.{name}" for name in quarantined.columns}
        matched = target_table.merge(quarantined.alias("s"), _same_record())
        matched.whenNotMatchedInsert(values=values).execute()

    retry_conflicts(target, commit, f"quarantine {target}:", "nothing of the batch is written")


def quarantine_rows(
    spark: SparkSession, target: DeltaTarget, rows: DataFrame, *, pipeline: str, batch: int, is_whole: bool
) -> None:
    """Quarantine the `rows` that a batch of an INSERT leaves out, in one commit.

    `rows` has the columns of the quarantine that are known of a row: `tables`, `row_key` and `reason`, and its record's
    `topic`, `partition`, `offset` and `timestamp` or null. They take the place of those that an attempt at the batch
    left that did not commit it; if the batch `is_whole`, as all rows were computed, of all rows of `pipeline`. Creates
    the table when it is absent. Raises TableError when it is no quarantine or does not accept the rows.
    """
    _create(spark, target)
    known = {
        "pipeline": F.lit(pipeline),
        "batch": F.lit(batch),
        "quarantined_at": F.current_timestamp(),
    } | {name: col(name) for name in rows.columns}
    fields = rows.sparkSession.createDataFrame([], _COLUMNS).schema.fields
    written = rows.select(*(known.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in fields))
    replaced = f"pipeline = {literal(pipeline)}" + ("" if is_whole else f" AND batch >= {batch}")

    def commit() -> None:
        writer = written.write.format("delta").mode("overwrite").option("replaceWhere", replaced)
        writer = writer.option("mergeSchema", "true")
        if target.table:
            writer.saveAsTable(target.table)
        else:
            writer.save(str(target.path))

    retry_conflicts(target, commit, f"quarantine {target}:", "nothing of the batch is written")


def topic_id(ids: Mapping[str, str]) -> Column:
    """The id of the topic that the column `topic` names; null for one that `ids` does not have."""
    pairs = [F.lit(part) for name, id in ids.items() for part in (name, id)]
    return F.create_map(*pairs)[F.col("topic")] if pairs else F.lit(None).cast("string")


def quarantined_count(spark: SparkSession, target: DeltaTarget, pipeline: str) -> int:
    """How many records of `pipeline` are quarantined; 0 where there is no table yet."""
    if not exists(spark, target):
        return 0
    with table_errors(target):
        return int(handle(spark, target).toDF().where(F.col("pipeline") == pipeline).count())


def quarantined_records(spark: SparkSession, target: DeltaTarget, pipeline: str) -> DataFrame:
    """The quarantined records of `pipeline`: Kafka's columns, as the source has them, and `topic_id`.

    Those of the newest version: later commits do not change what the frame has.
    """
    with table_errors(target):
        version = newest_in_history(handle(spark, target))
        reader = spark.read.format("delta").option("versionAsOf", version)
        rows = reader.table(target.table) if target.table else reader.load(target.path)
        records = rows.where(F.col("pipeline") == pipeline)
    return records.withColumnRenamed("timestamp_type", "timestampType").drop(
        "pipeline", "reason", "batch", "quarantined_at", "replayed_by", *_ROWS_ONLY
    )


def mark_replay(spark: SparkSession, target: DeltaTarget, places: DataFrame, run: str) -> None:
    """Record that `run` is about to commit the records at `places` (columns pipeline, topic, topic_id, partition,
    offset)."""
    with table_errors(target):
        matched = handle(spark, target).alias("t").merge(places.alias("s"), _same_record())
        matched.whenMatchedUpdate(set={"replayed_by": F.lit(run)}).execute()


def remove_replayed(spark: SparkSession, target: DeltaTarget, pipeline: str, run: str) -> None:
    """Delete the records that `run` has committed."""
    with table_errors(target):
        handle(spark, target).delete((F.col("pipeline") == pipeline) & (F.col("replayed_by") == run))


def finish_replays(table: Table, target: DeltaTarget, pipeline: str) -> None:
    """Finish replays that were interrupted: delete the records of those whose commit is in `table`, and clear the mark
    of the others."""
    spark = table.spark
    with table_errors(target):
        marked = (
            handle(spark, target)
            .toDF()
            .where((F.col("pipeline") == pipeline) & F.col("replayed_by").isNotNull())
        )
        runs = [row[0] for row in marked.select("replayed_by").distinct().collect()]
    for run in runs:
        if committed_by(table, pipeline, run):
            remove_replayed(spark, target, pipeline, run)
        else:
            with table_errors(target):
                handle(spark, target).update(
                    (F.col("pipeline") == pipeline) & (F.col("replayed_by") == run),
                    {"replayed_by": F.lit(None).cast("string")},
                )


def _same_record() -> str:
    return " AND ".join(f"t.{name} <=> s.{name}" for name in _RECORD_KEY)


def _create(spark: SparkSession, target: DeltaTarget) -> None:
    if exists(spark, target):
        return
    make_local_folder(spark, target.path)
    with table_errors(target):
        create_by_sql(spark, target, spark.createDataFrame([], _COLUMNS).schema.fields)
