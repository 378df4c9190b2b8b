"""Files of Spark are read in the types of the table."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.lake.data_files import arrow_schema, open_file
from bridge.lake.local_store import LocalStore
from bridge.lake.snapshot import Snapshot, open_snapshot
from bridge.session import session_settings
from bridge.ways import NotThisWay
from tests.delta.tables import FIELDS, append, made

FAR = datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc)


def test_files_of_spark(spark: SparkSession, lake: Path) -> None:
    """INT96, Spark's default for a TIMESTAMP, has times that nanoseconds have not; a new column is null."""
    fields = [*FIELDS, T.StructField("at", T.TimestampType()), T.StructField("n", T.ShortType())]
    table = made(spark, lake / "t", fields=fields)
    with session_settings(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        append(table, [(1, "a", FAR, -5), (2, None, None, None)])
    spark.sql(f"ALTER TABLE delta.`{lake}/t` ADD COLUMN later DECIMAL(10, 2)")
    table.delta().delete("id = 2")
    snapshot = open_snapshot(LocalStore(str(lake / "t")))
    schema = arrow_schema(snapshot.metadata)
    assert [str(type) for type in schema.types] == [
        "int64",
        "string",
        "timestamp[us, tz=UTC]",
        "int16",
        "decimal128(10, 2)",
    ]
    (name,) = snapshot.files
    file = open_file(snapshot, name, schema)
    assert (file.rows, list(file.marked), file.begin_of(0)) == (2, [1], 0)
    rows = file.read([0], ["at", "later", "id"])
    assert rows.schema == pa.schema([schema.field(n) for n in ("at", "later", "id")])
    assert rows.to_pylist() == [
        {"at": FAR, "later": None, "id": 1},
        {"at": None, "later": None, "id": 2},
    ]


def test_the_calendar_of_old_releases_is_left_to_spark(tmp_path: Path) -> None:
    old = pa.table({"id": [1]}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(old, tmp_path / "f")
    with pytest.raises(NotThisWay, match=r"^files of the table have dates in the calendar of Spark 2$"):
        open_file(
            Snapshot(LocalStore(str(tmp_path)), files={"f": {"path": "f", "size": 0}}),
            "f",
            pa.schema([("id", pa.int64())]),
        )
