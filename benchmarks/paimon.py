"""Flink → Paimon over the same topic: the statements of an ingest, and of reading its table back."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.topics import FLINK, PARTITIONS, SPARK

__all__ = ["dump", "dumped", "ingest", "settings"]

_TABLE = "paimon.bench.t"
_NULL = "-"


def settings(checkpoint: str) -> dict[str, str]:
    """Flink's settings of an ingest with a checkpoint every so often, as '10 s'; Paimon commits with each."""
    return {"execution.runtime-mode": "STREAMING", "execution.checkpointing.interval": checkpoint}


def ingest(bootstrap: str, topic: str, warehouse: Path) -> list[str]:
    """The topic into a new table, up to the end that it has when the job starts."""
    options = {
        "connector": "upsert-kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "key.format": "json",
        "value.format": "json",
        "scan.bounded.mode": "latest-offset",
    }
    shown = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    key = "PRIMARY KEY (id) NOT ENFORCED"
    return [
        *_catalog(warehouse),
        f"CREATE TABLE {_TABLE} ({FLINK}, {key}) WITH ('bucket' = '{PARTITIONS}')",
        f"CREATE TEMPORARY TABLE source ({FLINK}, {key}) WITH ({shown})",
        f"INSERT INTO {_TABLE} SELECT * FROM source",
    ]


def dump(warehouse: Path, folder: Path) -> list[str]:
    """The table's rows as CSV of texts, for `dumped`."""
    names = _names()
    columns = ", ".join(f"{name} STRING" for name in names)
    texts = ", ".join(f"CAST({name} AS STRING)" for name in names)
    place = f"'connector' = 'filesystem', 'path' = '{folder.as_uri()}'"
    options = f"{place}, 'format' = 'csv', 'csv.null-literal' = '{_NULL}'"

    return [
        *_catalog(warehouse),
        f"CREATE TEMPORARY TABLE texts ({columns}) WITH ({options})",
        f"INSERT INTO texts SELECT {texts} FROM {_TABLE}",
    ]


def dumped(spark: SparkSession, folder: Path) -> DataFrame:
    """What `dump` has written, with the columns of SPARK."""
    columns = ", ".join(f"{name} STRING" for name in _names())
    texts = spark.read.schema(columns).option("nullValue", _NULL).csv(str(folder))
    types = dict(column.split(" ", 1) for column in SPARK.replace("(10, 2)", "(10,2)").split(", "))
    return texts.select(*[F.col(name).cast(type).alias(name) for name, type in types.items()])


def _names() -> list[str]:
    return [column.split(" ", 1)[0] for column in SPARK.replace("(10, 2)", "").split(", ")]


def _catalog(warehouse: Path) -> list[str]:
    return [
        f"CREATE CATALOG paimon WITH ('type' = 'paimon', 'warehouse' = '{warehouse.as_uri()}')",
        "CREATE DATABASE IF NOT EXISTS paimon.bench",
    ]
