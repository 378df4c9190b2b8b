"""A topic whose types have fewer digits of time than the values of its table."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bridge.ddl import parse
from bridge.errors import TableError
from bridge.pipelines.changes.declared_times import has_longer_keys
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.publish.run import publish
from bridge.pipelines.resync.table_to_topic import resync
from tests.delta.tables import create_fed
from tests.pipelines.world import Make

DAY = "2020-01-01 00:00:00"


def test_a_publish_cuts_values_and_refuses_longer_keys(make: Make, spark: SparkSession, lake: Path) -> None:
    world = make(columns="ts TIMESTAMP(3), v TIMESTAMP(0), PRIMARY KEY (ts) NOT ENFORCED")
    table = f"delta.`{lake}/table`"
    create_fed(spark, f"{lake}/table", "ts TIMESTAMP_NTZ, v TIMESTAMP_NTZ")
    spark.sql(f"INSERT INTO {table} VALUES ('{DAY}.123', '{DAY}.999999'), ('1969-12-31 23:59:59.999', NULL)")
    publish(spark, world.definition())
    assert sorted((key, json.loads(value or b"")["v"]) for key, value in world.received()) == [
        (b'{"ts":"1969-12-31 23:59:59.999"}', None),
        (b'{"ts":"2020-01-01 00:00:00.123"}', DAY),
    ]
    assert verify(spark, world.definition()).comparison.equal

    spark.sql(f"INSERT INTO {table} VALUES ('{DAY}.123456', NULL)")
    with pytest.raises(TableError) as error:
        publish(spark, world.definition())
    assert str(error.value).endswith(
        f"the key of a row (ts: {DAY}.123456) has more digits than TIMESTAMP(3) of column ts, so several rows would be "
        "one key of the topic, and a delete of one would remove all. Declare ts with the digits that it has, such as "
        "TIMESTAMP(6), or cut it in the table"
    )
    assert len(world.received()) == 2


def test_times_within_columns_are_cut(make: Make, spark: SparkSession, lake: Path) -> None:
    columns = (
        "id INT, l ARRAY<TIMESTAMP(3)>, m MAP<STRING, TIMESTAMP_LTZ(0)>, r ROW<f TIMESTAMP(0), g ARRAY<ROW<h "
        "TIMESTAMP(3)>>>, PRIMARY KEY (id) NOT ENFORCED"
    )
    world = make(columns=columns)
    table = f"delta.`{lake}/table`"
    create_fed(
        spark,
        f"{lake}/table",
        "id INT, l ARRAY<TIMESTAMP_NTZ>, m MAP<STRING, TIMESTAMP>, r STRUCT<f: TIMESTAMP_NTZ, g: ARRAY<STRUCT<h: "
        "TIMESTAMP_NTZ>>>",
    )
    moment = "TIMESTAMP_NTZ '1969-12-31 23:59:58.123456'"
    spark.sql(
        f"INSERT INTO {table} SELECT 1, array({moment}, NULL), map('k', TIMESTAMP '2020-01-01 00:00:00.9'), "
        f"named_struct('f', {moment}, 'g', array(named_struct('h', {moment})))"
    )
    spark.sql(f"INSERT INTO {table} VALUES (2, NULL, NULL, NULL)")
    publish(spark, world.definition())
    sent = [json.loads(value or b"") for _, value in sorted(world.received(), key=str)]
    assert sent[0]["l"] == ["1969-12-31 23:59:58.123", None]
    assert sent[0]["r"] == {"f": "1969-12-31 23:59:58", "g": [{"h": "1969-12-31 23:59:58.123"}]}
    assert verify(spark, world.definition()).comparison.equal
    planned = resync(spark, world.definition(), dry_run=True)
    assert (planned.inserted, planned.updated, planned.deleted) == (0, 0, 0)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_longer_keys_in_the_driver(zone: str | None) -> None:
    type = "TIMESTAMP" if zone is None else "TIMESTAMP_LTZ"
    schema = parse(
        f"CREATE TABLE t (k {type}(1), v {type}(0), PRIMARY KEY (k) NOT ENFORCED) WITH ('a' = 'b')"
    ).schema
    for micros, expected in ((100_000, False), (-100_000, False), (120_000, True), (-1, True), (None, False)):
        moment = None if micros is None else dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
        rows = pa.table({"k": pa.array([moment], pa.timestamp("us", zone)), "v": [1]})
        assert has_longer_keys(rows, schema) == expected


def test_keys_with_times_within_a_row_are_left_to_spark() -> None:
    schema = parse(
        "CREATE TABLE t (k ROW<f TIMESTAMP(3)>, PRIMARY KEY (k) NOT ENFORCED) WITH ('a' = 'b')"
    ).schema
    assert has_longer_keys(pa.table({"k": [{"f": dt.datetime(2020, 1, 1)}]}), schema)
