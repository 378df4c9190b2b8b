"""The session pipelines run in: UTC, Delta on board, settings that stay at home."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bridge.session import build_session, child_session, log_file


def test_the_session_has_delta_kafka_and_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "DeltaSparkSessionExtension" in (spark.conf.get("spark.sql.extensions") or "")
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.Class.forName(
        "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        True,
        jvm.java.lang.Thread.currentThread().getContextClassLoader(),
    )


def test_python_does_not_tell_the_jvm_where_each_column_was_made(spark: SparkSession) -> None:
    assert spark.conf.get("spark.python.sql.dataFrameDebugging.enabled") == "false"
    from pyspark.errors.utils import is_debugging_enabled

    assert not is_debugging_enabled()


def test_the_classes_of_a_batch_outlive_it(spark: SparkSession) -> None:
    assert int(spark.conf.get("spark.sql.codegen.cache.maxEntries") or 0) >= 1000


def test_a_child_does_not_change_its_parent(spark: SparkSession) -> None:
    own = child_session(spark)
    own.conf.set("spark.databricks.delta.write.txnAppId", "mine")
    assert spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None
    assert own.sparkContext is spark.sparkContext


def test_a_session_that_exists_is_used_and_left_alone(spark: SparkSession) -> None:
    SparkSession.builder.getOrCreate()
    again = build_session("another name", conf={"spark.sql.shuffle.partitions": "77"})
    assert again.sparkContext is spark.sparkContext
    assert again is not spark and spark.conf.get("spark.sql.shuffle.partitions") != "77"


def test_sparks_log_goes_to_a_file(spark: SparkSession) -> None:
    logger = spark._jvm.org.apache.logging.log4j.LogManager.getLogger("bridge.test")  # type: ignore[union-attr]
    logger.warn("a line for the test")
    assert "a line for the test" in log_file().read_text()
