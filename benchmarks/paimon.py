"""Flink → Paimon over the same topics: the statements that fill a table, apply topics to it, and read it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.topics import FLINK, FLINK_TYPES, ORDERS, PARTITIONS, TopicRows, columns, spark_types

BATCH = {"execution.runtime-mode": "BATCH"}
"""Flink's settings of a job over what is there when it starts."""
TABLE = "paimon.bench.t"
_KEY = "PRIMARY KEY (id) NOT ENFORCED"
_NULL = "-"
_CHUNK = 1000


def settings(checkpoint: str) -> dict[str, str]:
    """Flink's settings of an ingest with a checkpoint every so often, as '10 s'; Paimon commits with each."""
    return {"execution.runtime-mode": "STREAMING", "execution.checkpointing.interval": checkpoint}


def folder(warehouse: Path) -> Path:
    """The folder of the table in its warehouse."""
    return warehouse / "bench.db" / "t"


def ingest(bootstrap: str, topic: str, warehouse: Path, rows: TopicRows = ORDERS) -> list[str]:
    """The topic into a new table, up to the end that it has when the job starts."""
    options = {
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        **rows.options(),
        "scan.bounded.mode": "latest-offset",
    }
    given = columns(rows.types)
    return [
        *catalog(warehouse),
        f"CREATE TABLE {TABLE} ({given}, {_KEY}) WITH ('bucket' = '{PARTITIONS}')",
        f"CREATE TEMPORARY TABLE source ({given}, {_KEY}) WITH ({shown(options)})",
        f"INSERT INTO {TABLE} SELECT * FROM source",
    ]


def fill(warehouse: Path, rows: int) -> list[str]:
    """A new table with the ids 0 to `rows`, whose number is 0, and a column for the row kind of `apply`."""
    numbers = {
        "a": ("thousands", -(-rows // _CHUNK)),
        "b": ("ones", _CHUNK),
    }
    sources = [
        f"CREATE TEMPORARY TABLE {table} ({name} BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{count}', "
        f"'fields.{name}.kind' = 'sequence', 'fields.{name}.start' = '0', 'fields.{name}.end' = '{count - 1}')"
        for name, (table, count) in numbers.items()
    ]
    row = (
        "id, CONCAT('customer-', CAST(MOD(id, 5000) AS STRING)), 'NEW', "
        "CAST(CAST(MOD(id * 7, 100000) AS DECIMAL(10, 0)) / 100 AS DECIMAL(10, 2)), "
        "TIMESTAMP '2023-11-14 22:13:20', 'please leave it at the door', CAST(0 AS BIGINT), '+I'"
    )
    options = f"'bucket' = '{PARTITIONS}', 'rowkind.field' = 'op'"
    return [
        *catalog(warehouse),
        f"CREATE TABLE {TABLE} ({FLINK}, op STRING, {_KEY}) WITH ({options})",
        *sources,
        f"INSERT INTO {TABLE} SELECT {row} FROM (SELECT a * {_CHUNK} + b AS id FROM thousands CROSS JOIN ones) "
        f"WHERE id < {rows}",
    ]


def apply(bootstrap: str, topics: Sequence[str], warehouse: Path) -> list[str]:
    """Each topic, up to its end, into the table of `fill`, one job after the other.

    Not with `upsert-kafka`: that source drops a delete of a key that it has not seen in the topic itself. So a value
    is read as text, and a null one is a row of kind -D."""
    fields = ", ".join(
        f"CAST(JSON_VALUE(v, '$.{n}') AS {type})" for n, type in FLINK_TYPES.items() if n != "id"
    )
    statements = catalog(warehouse)
    for number, topic in enumerate(topics):
        options = {
            **_appended(bootstrap, topic),
            "scan.bounded.mode": "latest-offset",
            "key.fields": "k_id",
            "key.fields-prefix": "k_",
            "value.format": "raw",
            "value.fields-include": "EXCEPT_KEY",
        }
        statements += [
            f"CREATE TEMPORARY TABLE source_{number} (k_id BIGINT, v STRING) WITH ({shown(options)})",
            f"INSERT INTO {TABLE} SELECT k_id, {fields}, CASE WHEN v IS NULL THEN '-D' ELSE '+I' END "
            f"FROM source_{number}",
        ]
    return statements


def follow(bootstrap: str, topic: str, warehouse: Path) -> list[str]:
    """A topic without tombstones into the table of `fill`, until the job is stopped."""
    options = {
        **_appended(bootstrap, topic),
        "key.fields": "id",
        "value.format": "json",
    }
    return [
        *catalog(warehouse),
        f"CREATE TEMPORARY TABLE source ({FLINK}) WITH ({shown(options)})",
        f"INSERT INTO {TABLE} SELECT {', '.join(FLINK_TYPES)}, '+I' FROM source",
    ]


def dump(warehouse: Path, folder: Path, rows: TopicRows = ORDERS) -> list[str]:
    """The table's rows as CSV of texts, for `dumped`."""
    texts = ", ".join(f"CAST({name} AS STRING)" for name in rows.types)
    place = f"'connector' = 'filesystem', 'path' = '{folder.as_uri()}'"
    options = f"{place}, 'format' = 'csv', 'csv.null-literal' = '{_NULL}'"

    return [
        *catalog(warehouse),
        f"CREATE TEMPORARY TABLE texts ({columns(dict.fromkeys(rows.types, 'STRING'))}) WITH ({options})",
        f"INSERT INTO texts SELECT {texts} FROM {TABLE}",
    ]


def dumped(spark: SparkSession, folder: Path, rows: TopicRows = ORDERS) -> DataFrame:
    """What `dump` has written, with the types of Spark."""
    texts = spark.read.schema(columns(dict.fromkeys(rows.types, "STRING"))).option("nullValue", _NULL)
    types = spark_types(rows.types)
    return texts.csv(str(folder)).select(
        *[F.col(name).cast(type).alias(name) for name, type in types.items()]
    )


def _appended(bootstrap: str, topic: str) -> dict[str, str]:
    return {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "scan.startup.mode": "earliest-offset",
        "key.format": "json",
    }


def shown(options: Mapping[str, str]) -> str:
    """The options of a table, as they are between the parentheses of WITH."""
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())


def catalog(warehouse: Path) -> list[str]:
    """Makes the warehouse known."""
    return [
        f"CREATE CATALOG paimon WITH ('type' = 'paimon', 'warehouse' = '{warehouse.as_uri()}')",
        "CREATE DATABASE IF NOT EXISTS paimon.bench",
    ]
