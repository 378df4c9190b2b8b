"""Rows of files and tables as changes."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.columns import BAD, KIND, POSITION
from bridge.config import resolve_topic
from bridge.ddl import parse
from bridge.decode import CORRUPT, decode_rows

DDL = (
    "CREATE TABLE t (id BIGINT, n DECIMAL(10, 2) NOT NULL, twice AS n * 2, at TIMESTAMP_LTZ(3) METADATA FROM "
    "'timestamp' VIRTUAL, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 't', "
    "'properties.bootstrap.servers' = 'x:1', 'key.format' = 'json', 'value.format' = 'json')"
)


def test_rows_are_upserts_or_bad(spark: SparkSession) -> None:
    """Texts are cast, computed columns computed, and metadata that is not there is null."""
    given = [("1", "1.5", None), ("x", "1", None), (None, "2", None), ("4", None, None), ("5", "1", "torn")]
    rows = spark.createDataFrame(given, f"id STRING, n STRING, {CORRUPT} STRING")
    changes = decode_rows(rows, resolve_topic(parse(DDL)), "csv:rows")
    assert changes.columns == ["id", "n", "twice", "at", KIND, BAD, POSITION]
    found = {row[BAD]: row for row in changes.collect()}
    good = found.pop(None)
    assert (good["id"], str(good["n"]), str(good["twice"]), good["at"], good[KIND]) == (
        1,
        "1.50",
        "3.00",
        None,
        "+U",
    )
    assert good[POSITION]["topic"] == "csv:rows" and good[POSITION]["offset"] != 0
    assert {why: (row["id"], row[KIND]) for why, row in found.items()} == {
        "column 'id' has a text that is no BIGINT": (None, None),
        "it has no value of the PRIMARY KEY": (None, None),
        "column 'n' is NOT NULL, and the record has no value for it": (4, None),
        "it cannot be read": (5, None),
    }
