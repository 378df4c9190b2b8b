"""Errors name classes and places, never the text of an exception, which may quote a record."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.errors import BridgeError, TableError
from bridge.ingest_progress import IngestProgress
from bridge.offsets import Offsets
from bridge.pipelines.runtime.kafka_read_errors import explained_read_error as why
from bridge.pipelines.runtime.spark_errors import (
    data_reason,
    explain_errors,
    explained_error,
    offsets_between,
)
from tests.config.files import WHOLE, loaded


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    return loaded(tmp_path, WHOLE)


def test_offsets_by_partition() -> None:
    start = Offsets({("t", 0): 5, ("t", 1): 7})
    assert offsets_between(start, Offsets({("t", 0): 9, ("t", 1): 7, ("t", 2): 1})) == (
        "t-0 offsets 5 to 8, t-2 offsets 0 to 0"
    )
    many = Offsets({("t", n): 10 for n in range(7)})
    assert offsets_between(Offsets(), many).endswith("t-3 offsets 0 to 9 and 3 more partitions")


def test_memory_that_ran_out_under_kafka_is_memory(spark: SparkSession, definition: Definition) -> None:
    text = "the value 'secret'\njava.lang.OutOfMemoryError: Java heap space\n at org.apache.kafka.common.Pool"
    failure = PySparkException(message=text)
    progress = IngestProgress("orders", "run", 3, Offsets())
    explained = why(spark, failure, definition, progress, "batch 4 (t-0 offsets 1 to 2)")
    assert isinstance(explained, BridgeError) and explained.__cause__ is failure
    assert str(explained).startswith(
        "'orders': batch 4 (t-0 offsets 1 to 2) failed: OutOfMemoryError. Make batches smaller (`run: "
        "{max-offsets-per-batch: 100000}`) or give Spark more memory"
    )
    assert "secret" not in str(explained)


def test_other_failures_name_what_to_narrow_down(spark: SparkSession, definition: Definition) -> None:
    text = "Python worker exited unexpectedly (crashed)\nValueError: secret\njava.io.EOFException: secret"
    failure = PySparkException(message=text)
    reading = str(explained_error(spark, failure, definition, "reading version 3"))
    assert reading.startswith(
        "'orders': reading version 3 failed: a Python worker exited unexpectedly, ValueError, EOFException. Nothing of "
        "it is committed. Start it again"
    )
    sending = str(explained_error(spark, failure, definition, "sending versions 3 to 4", sends=True))
    assert "EOFException. Some of its records may be in the topic; the next run sends them again" in sending
    assert "secret" not in reading + sending


def test_a_full_disk_and_what_is_not_ours(spark: SparkSession, definition: Definition) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "file")
    no_space = r"'orders': it failed, as there is no space left on the device"
    with pytest.raises(BridgeError, match=no_space), explain_errors(spark, definition, "it"):
        raise full
    with pytest.raises(FileNotFoundError), explain_errors(spark, definition, "it"):
        raise FileNotFoundError("x")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "CAST(v AS INT)",
            "a CAST of a text that is no value of its type; TRY_CAST gives NULL (in CAST(v AS INT)",
        ),
        ("1 / n", "a division by zero; NULLIF(x, 0) as divisor gives NULL (in 1 / n"),
        ("n % n", "a division by zero; NULLIF(x, 0) as divisor gives NULL (in n % n"),
        (
            "9223372036854775807L + n + 1",
            "a number or time that its type cannot hold; TRY_CAST of its parts gives NULL",
        ),
        ("RAISE_ERROR('a CAST to DATE of a text')", "a CAST to DATE of a text"),
    ],
)
def test_why_a_query_fails_for_the_values_of_a_row(spark: SparkSession, query: str, reason: str) -> None:
    """The part of the query is named, the value is not."""
    rows = spark.createDataFrame([("secret", 0)], "v STRING, n INT")
    with pytest.raises(PySparkException) as failure:
        spark.sql(f"SELECT {query} FROM {{rows}}", rows=rows).collect()
    found = data_reason(failure.value)
    assert found is not None and found.startswith(reason) and "secret" not in found


def test_other_errors_are_not_of_values() -> None:
    assert data_reason(PySparkException(message="[TABLE_OR_VIEW_NOT_FOUND] x")) is None


def test_a_function_of_the_user_that_raises_is_named(spark: SparkSession, tmp_path: Path) -> None:
    def half(value: int) -> int:
        raise LookupError(f"secret {value}")

    spark.udf.register("half_of", half, "int")
    definition = loaded(tmp_path, WHOLE.replace("id BIGINT", "id BIGINT, h AS ABS(half_of(id))", 1))
    with pytest.raises(PySparkException) as failure:
        spark.range(1).selectExpr("half_of(id)").collect()
    explained = explained_error(spark, failure.value, definition, "batch 4")
    assert isinstance(explained, TableError)
    assert str(explained).startswith(
        "'orders': batch 4 failed: LookupError, raised by a function of your own: half_of in computed "
        "column 'h', ABS(half_of(id)). Nothing of it is committed. Such an error is no bad record: let the function "
        "return NULL for a value that it does not take."
    )
    assert "secret" not in str(explained)


def test_an_error_of_the_bridge_s_own_workers_is_not_of_a_function(
    spark: SparkSession, tmp_path: Path
) -> None:
    definition = loaded(tmp_path, WHOLE.replace("id BIGINT", "id BIGINT, h AS half_of(id)", 1))
    trace = (
        'Traceback (most recent call last):\n  File "/lib/bridge/kafka/consume.py", line 1, in f\nKeyError: 1'
    )
    failure = PySparkException(message=f"org.apache.spark.api.python.PythonException: {trace}")
    assert "function of your own" not in str(explained_error(spark, failure, definition, "batch 4"))
