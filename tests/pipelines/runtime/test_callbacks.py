"""Threads of the JVM that have called Python leave no thread of Python and no connection behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from bridge.pipelines.runtime.callbacks import CallbackConnection

pytestmark = pytest.mark.versions


def run_query(spark: SparkSession, folder: Path, batch: Callable[[DataFrame, int], None]) -> None:
    """Run a streaming query over two files, in two batches or more, to its end."""
    source = folder / "source"
    if not source.exists():
        for part in range(2):
            spark.range(part, part + 1).coalesce(1).write.mode("append").parquet(str(source))
    stream = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", 1).parquet(str(source))
    writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", str(folder / "state"))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)


def open_connections(spark: SparkSession) -> int:
    """Of threads of the JVM to Python, as py4j lists them."""
    jvm, gateway = cast(Any, spark._jvm), cast(Any, spark.sparkContext._gateway)
    client = gateway.java_gateway_server.getCallbackClient()
    field = jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("connections")
    field.setAccessible(True)
    return int(field.get(client).size())


def test_a_closed_connection_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    connection, answering = CallbackConnection(spark), set[threading.Thread]()

    def batch(rows: DataFrame, batch_id: int) -> None:
        connection.note()
        answering.add(threading.current_thread())
        assert rows.count() == 1  # Python calls the JVM back by this connection

    before = open_connections(spark)
    run_query(spark, tmp_path, batch)
    (thread,) = answering
    assert thread.is_alive()
    assert open_connections(spark) == before + 1
    connection.close()
    connection.close()
    thread.join(10)
    assert not thread.is_alive()
    assert open_connections(spark) == before


def test_other_connections_stay_open(spark: SparkSession, tmp_path: Path) -> None:
    """One query ends while another one is at work."""
    ended, goes_on = CallbackConnection(spark), CallbackConnection(spark)
    batches: list[int] = []

    def other(rows: DataFrame, batch_id: int) -> None:
        goes_on.note()
        batches.append(batch_id)
        if batch_id == 0:
            run_query(spark, tmp_path / "inner", lambda rows, batch_id: ended.note())
            ended.close()
        assert rows.count() == 1

    (tmp_path / "inner").mkdir()
    run_query(spark, tmp_path, other)
    goes_on.close()
    assert batches == [0, 1]


def test_a_gateway_without_such_connections_is_left_alone() -> None:
    bare = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace()))
    connection = CallbackConnection(cast(SparkSession, bare))
    connection.note()
    connection.close()


def test_nothing_is_closed_that_was_not_noted(spark: SparkSession) -> None:
    before = open_connections(spark)
    CallbackConnection(spark).close()
    assert open_connections(spark) == before
