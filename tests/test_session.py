"""The session of a pipeline has UTC and Delta, and its settings stay in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.session import build_session, child_session
from bridge.watchdog import log_file

pytestmark = pytest.mark.versions


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


def test_columns_do_not_send_their_source_line_to_the_jvm(spark: SparkSession) -> None:
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


def test_an_existing_session_is_used_and_not_changed(spark: SparkSession) -> None:
    SparkSession.builder.getOrCreate()
    again = build_session("another name", conf={"spark.sql.shuffle.partitions": "77"})
    assert again.sparkContext is spark.sparkContext
    assert again is not spark and spark.conf.get("spark.sql.shuffle.partitions") != "77"


def test_sparks_log_goes_to_a_file(spark: SparkSession) -> None:
    logger = spark._jvm.org.apache.logging.log4j.LogManager.getLogger("bridge.test")  # type: ignore[union-attr]
    logger.warn("a line for the test")
    assert "a line for the test" in log_file().read_text()


class Started(Exception):
    """Spark would start now."""


class Builder:
    """Collects the settings of a session, and starts none."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def appName(self, name: str) -> Builder:
        return self

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> None:
        raise Started


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    def settings(**given: Any) -> dict[str, str]:
        builder = Builder()
        nothing = SimpleNamespace(builder=builder, getActiveSession=lambda: None)
        monkeypatch.setattr("bridge.session.SparkSession", nothing)
        for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON"):
            monkeypatch.setenv(name, os.environ.get(name, ""))
        with pytest.raises(Started):
            build_session("bridge", **given)
        return builder.settings

    return settings


def test_jars_and_extensions_of_the_command_line_are_added_to(
    started: Callable[..., dict[str, str]],
) -> None:
    own = {"spark.jars": "/own/a.jar", "spark.sql.extensions": "own.Extension"}
    settings = started(master="local[2]", conf={**own, "spark.jars.packages": "own:module:1"})
    first, *others = settings["spark.jars"].split(",")
    assert first == "/own/a.jar" and any("delta-spark" in jar for jar in others)
    assert settings["spark.sql.extensions"] == "own.Extension,io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.jars.packages"] == "own:module:1"


def test_a_cluster_can_reach_the_driver(started: Callable[..., dict[str, str]]) -> None:
    """The driver of a local Spark is bound to 127.0.0.1."""
    assert started(master="local[2]")["spark.driver.host"] == "127.0.0.1"
    settings = started(master="spark://master:7077")
    assert settings["spark.master"] == "spark://master:7077"
    assert not {"spark.driver.host", "spark.driver.bindAddress"} & set(settings)
