"""The classes and conditions of an error, by the JVM and through Spark Connect: the same decisions follow."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions import captured as of_spark
from pyspark.errors.exceptions import connect
from pyspark.sql import SparkSession

from bridge.backend import causes
from bridge.delta.delta_errors import CONFLICTS, error_names, table_error

pytestmark = pytest.mark.versions
TRACE = """\
org.apache.spark.SparkException
\tat org.apache.spark.sql.Some$.method(Some.scala:1)
Caused by: org.apache.spark.sql.delta.DeltaErrors$Broken: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint \
positive (a > 0) violated by row with values:
 - a : secret
Caused by: java.io.FileNotFoundException: /a"""


def test_causes_of_the_jvm(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as failed:
        spark.sql("SELECT raise_error('no')").collect()
    (kind, text), *_ = causes(failed.value)
    assert kind == "SparkRuntimeException" and text.startswith("[USER_RAISED_EXCEPTION] no")
    assert list(causes(ValueError("no"))) == []


def test_a_conflict_is_known_by_its_condition_alone() -> None:
    """Databricks sends no stack trace."""
    lost = connect.UnknownException("files were added", errorClass="DELTA_CONCURRENT_APPEND.WITHOUT_HINT")
    assert error_names(lost) & CONFLICTS == {"ConcurrentAppendException"}
    twice = connect.SparkConnectGrpcException("known", errorClass="DELTA_CONCURRENT_TRANSACTION")
    assert "ConcurrentTransactionException" in error_names(twice)


def test_a_conflict_that_delta_has_made_an_exception_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    # Until 4.4 the import alone has Spark raise them, in the whole process.
    monkeypatch.setattr(of_spark, "convert_exception", of_spark.convert_exception)
    from delta.exceptions import captured

    lost = captured.ConcurrentAppendException("files were added", "a trace", None)
    assert error_names(lost) & CONFLICTS == {"ConcurrentAppendException"}


def test_a_missing_table_is_one() -> None:
    gone = connect.AnalysisException("there is none", errorClass="PATH_NOT_FOUND", messageParameters={})
    assert str(table_error("t", error_names(gone))).startswith("no Delta table at t")


def test_classes_of_a_stack_trace() -> None:
    failed = connect.SparkConnectGrpcException("Job aborted", server_stacktrace=TRACE)
    names = error_names(failed)
    assert {"SparkConnectGrpcException", "SparkException", "Broken", "FileNotFoundException"} <= names
    assert "secret" not in str(table_error("t", names)) and "positive" in str(table_error("t", names))
