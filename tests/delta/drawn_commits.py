"""Drawn commits of several writers, with rows of many types, for tests of what is read from the files of a log."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from bridge.delta.table import Table
from tests.delta.tables import FIELDS, append, commit_by_hand, log_file

WIDE = (
    *FIELDS,
    T.StructField("d", T.DecimalType(38, 9)),
    T.StructField("at", T.TimestampType()),
    T.StructField("ntz", T.TimestampNTZType()),
    T.StructField("day", T.DateType()),
    T.StructField("raw", T.BinaryType()),
    T.StructField(
        "n", T.StructType([T.StructField("a", T.ArrayType(T.MapType(T.StringType(), T.LongType())))])
    ),
)
MOMENT = datetime(1600, 2, 29, 23, 59, 59, 999999)


def counted(frame: DataFrame) -> Counter[str]:
    """Rows by their text, as JSON for values that cannot be hashed."""
    return Counter(row[0] for row in frame.select(F.to_json(F.struct("*"))).collect())


def add_by_hand(table: Table, version: int, path: str, size: int) -> None:
    """A commit that adds a file, in the words of another writer."""
    commit_by_hand(table, version, operation="WRITE")
    about = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    with log_file(table, version).open("a") as log:
        log.write(json.dumps({"add": about}) + "\n")


def sql(spark: SparkSession, table: Table, text: str) -> None:
    spark.sql(text.format(t=f"delta.`{table.target.path}`"))


def steps(spark: SparkSession, table: Table, draw: random.Random) -> dict[str, Callable[[], object]]:
    def appended() -> None:
        count = draw.choice([1, 5, 30])
        rows = [(draw.randrange(100), draw.choice(["a", "", None])) for _ in range(count)]
        frame = spark.createDataFrame(rows, T.StructType(list(FIELDS))).repartition(draw.choice([1, 3]))
        frame.write.format("delta").mode("append").save(str(table.target.path))

    def column_added() -> None:
        sql(spark, table, f"ALTER TABLE {{t}} ADD COLUMNS (c{draw.randrange(10**6)} INT)")

    return {
        "append": appended,
        "optimize": lambda: table.delta().optimize().executeCompaction(),
        "column": column_added,
        "property": lambda: sql(spark, table, "ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')"),
        "update": lambda: sql(spark, table, f"UPDATE {{t}} SET v = 'u' WHERE id % 7 = {draw.randrange(7)}"),
        "delete": lambda: sql(spark, table, f"DELETE FROM {{t}} WHERE id < {draw.randrange(20)}"),
        "merge": lambda: sql(
            spark,
            table,
            f"MERGE INTO {{t}} t USING (SELECT {draw.randrange(200)}L AS id, 'm' AS v) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
        ),
        "nothing": lambda: append(table, []),
    }


def play(spark: SparkSession, table: Table, draw: random.Random, length: int, *, appends: int) -> list[str]:
    """Make `length` drawn commits between two appends, which are `appends` times as frequent as others."""
    possible = steps(spark, table, draw)
    weights = [appends if name == "append" else 1 for name in possible]
    names = ["append", *draw.choices(list(possible), weights, k=length), "append"]
    for name in names:
        possible[name]()
    return names
