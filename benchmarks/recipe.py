"""Runs the baseline of an ingest, the recipe of Delta Lake's documentation: foreachBatch, a window function, MERGE.

    python -m benchmarks.recipe --bootstrap H:P --topic T --table PATH --checkpoint PATH [--batch N]

A whole job with the default settings of Spark and Delta. It has none of the bridge's guarantees: a batch that is
applied twice, a bad record and a lost offset all go unnoticed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks.topics import SPARK, SPARK_TYPES
from bridge import jars


def session(app: str, *, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> SparkSession:
    """Starts Spark with Delta and the Kafka source, and as much memory as the bridge uses. The jars are those of the
    bridge; no other setting is."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.jars": ",".join(map(str, jars.fetch("spark", jars.spark_coordinates(), beside_spark=True))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", "2g"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(conf or {}),
    }
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def upsert(batch: DataFrame, table: str) -> None:
    """Merges one batch of records."""
    row = F.from_json(F.col("value").cast("string"), SPARK)
    key = F.from_json(F.col("key").cast("string"), "id BIGINT")
    changes = batch.select(
        key["id"].alias("id"), row.alias("row"), F.col("value").isNull().alias("deleted"), "offset"
    )
    newest = Window.partitionBy("id").orderBy(F.desc("offset"))
    last = changes.withColumn("nth", F.row_number().over(newest)).where("nth = 1")
    source = last.select("id", *(F.col(f"row.{name}") for name in list(SPARK_TYPES)[1:]), "deleted")
    values = {name: f"s.{name}" for name in SPARK_TYPES}
    (
        DeltaTable.forPath(batch.sparkSession, table)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedDelete("s.deleted")
        .whenMatchedUpdate(set=dict(values))
        .whenNotMatchedInsert("NOT s.deleted", values=dict(values))
        .execute()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Apply the topic to the table, from its beginning to the end it has now."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recipe", description=(__doc__ or "").splitlines()[0]
    )
    for name in ("--bootstrap", "--topic", "--table", "--checkpoint"):
        parser.add_argument(name, required=True)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--conf", action="append", default=[])
    chosen = parser.parse_args(arguments)
    spark = session("recipe", conf=dict(pair.split("=", 1) for pair in chosen.conf))
    if not DeltaTable.isDeltaTable(spark, chosen.table):
        spark.sql(f"CREATE TABLE delta.`{chosen.table}` ({SPARK}) USING delta")
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", chosen.bootstrap)
    reader = reader.option("subscribe", chosen.topic).option("startingOffsets", "earliest")
    if chosen.batch:
        reader = reader.option("maxOffsetsPerTrigger", chosen.batch)
    query = (
        reader.load()
        .writeStream.foreachBatch(lambda batch, _: upsert(batch, chosen.table))
        .option("checkpointLocation", chosen.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
