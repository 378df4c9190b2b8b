"""The rows of a batch are counted by the job that reads them, or by a second one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession

from bridge.kafka.read_counts import ReadCounts
from bridge.pipelines.changes.batch_stats import ReadCounter, collect_batch_stats, count_reads
from tests.config.files import loaded, upsert_file
from tests.public_api import PublicApi

pytestmark = pytest.mark.versions


def records(spark: SparkSession) -> DataFrame:
    rows = [(bytes(n), None if n == 3 else b"12345", n * 1000 - 1) for n in range(7)]
    given = spark.createDataFrame(rows, "key BINARY, value BINARY, ms BIGINT")
    return given.selectExpr("key", "value", "timestamp_millis(ms) AS timestamp")


READ = ReadCounts(7, 21 + 6 * 5, 999, 5999)
"""Of `records`: a timestamp of -1 is Kafka's for none."""


def test_what_is_read_is_counted_by_the_first_job(spark: SparkSession) -> None:
    frame, counter = count_reads(records(spark))
    assert frame.selectExpr("sum(octet_length(key))").first() == (21,)
    assert replace(counter.value(), at_ms=None) == READ
    frame.limit(1).collect()
    assert replace(counter.value(), at_ms=None) == READ


@pytest.mark.parametrize(
    ("hidden", "row"),
    [
        ("", f"row (a: {'x?' * 50}, b: 01FF)"),
        ("peek: {hide: [b]}\n", f"row (a: {'x?' * 50}, b: ***)"),
        ("peek: {hide: all}\n", "row (a: ***, b: ***)"),
    ],
)
def test_the_key_of_the_first_bad_record(spark: SparkSession, tmp_path: Path, hidden: str, row: str) -> None:
    """On one line, of bounded length, and without what the file hides."""
    file = upsert_file("a STRING, b BYTES, c INT, PRIMARY KEY (a, b) NOT ENFORCED", "json")
    place = {"topic": "t", "partition": 0}
    changes = spark.createDataFrame(
        [
            (None, None, None, "no key", {**place, "offset": 2}),
            ("x\n" * 99, b"\x01\xff", None, "bad", {**place, "offset": 1}),
        ],
        "a STRING, b BINARY, __kind STRING, __bad STRING, "
        "__position STRUCT<topic: STRING, partition: INT, offset: BIGINT>",
    )
    stats = collect_batch_stats(loaded(tmp_path, file + hidden), changes)
    assert stats.first_bad == f"t-0 at offset 1, {row}: bad"
    other = collect_batch_stats(loaded(tmp_path, file), changes.where("a IS NULL"))
    assert other.first_bad == "t-0 at offset 2: no key"


def test_where_the_observation_tells_nothing_another_job_counts(spark: SparkSession) -> None:
    counter = ReadCounter(PublicApi(Observation()), records(spark))  # type: ignore[arg-type]
    assert replace(counter.value(), at_ms=None) == READ
