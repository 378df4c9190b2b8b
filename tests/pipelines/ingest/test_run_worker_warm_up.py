from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

from bridge.pipelines.ingest.run import warm_up


def imported(_: Iterable[int]) -> Iterator[bool]:
    return iter(["bridge.kafka.latest_rows" in sys.modules])


def test_workers_have_imported_what_reads_a_batch(spark: SparkSession) -> None:
    """One at least: a worker that is quick takes the tasks of both."""
    for _ in range(2):
        thread = warm_up(spark)
        thread.join(60)
        assert not thread.is_alive()
    tasks = spark.sparkContext.defaultParallelism
    found = spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(imported).collect()
    assert True in found and len(found) == tasks
