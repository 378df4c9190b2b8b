"""Jars that users give are kept and not fetched again; what is missing is fetched for the Spark that runs."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge import jars
from bridge.errors import BridgeError, DefinitionError
from bridge.spark_jars import JARS, PACKAGES, add_missing_jars, joined, missing_jars, refuse_jars_after_start

DELTA = "io.delta.sql.DeltaSparkSessionExtension"
KAFKA = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
AVRO = "org.apache.spark.sql.avro.AvroDataToCatalyst"


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The coordinates that would be fetched."""
    asked: list[str] = []

    def fetch(name: str, coordinates: Sequence[str], **_: bool) -> list[Path]:
        asked.extend(coordinates)
        return [Path("/jars") / f"{c.split(':')[1]}.jar" for c in coordinates]

    monkeypatch.setattr("bridge.jars.fetch", fetch)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return asked


def test_lists_are_joined_in_order_and_each_entry_is_there_once() -> None:
    assert joined("a.jar, b.jar", None, "", "b.jar,c.jar") == "a.jar,b.jar,c.jar"


@pytest.mark.versions
def test_a_spark_without_settings_gets_all_three(wanted: list[str]) -> None:
    assert len(missing_jars({})) == 3
    assert wanted == jars.spark_coordinates()


@pytest.mark.versions
def test_what_packages_name_is_left_to_spark(wanted: list[str]) -> None:
    delta, kafka, avro = jars.spark_coordinates()
    assert missing_jars({PACKAGES: f"com.example:own:1,{delta}, {kafka}"}) == ["/jars/spark-avro_2.13.jar"]
    assert wanted == [avro]
    assert missing_jars({PACKAGES: joined(delta, kafka, avro)}) == []


def test_a_jar_is_known_by_the_class_in_it_and_a_remote_one_by_its_name(
    tmp_path: Path, wanted: list[str]
) -> None:
    fat = tmp_path / "our-platform.jar"
    with zipfile.ZipFile(fat, "w") as jar:
        for name in (DELTA, KAFKA):
            jar.writestr(f"{name.replace('.', '/')}.class", b"")
    assert missing_jars({JARS: f"file:{fat},s3a://b/spark-avro_2.13-4.1.1.jar"}) == []
    missing_jars({JARS: f"{fat},hdfs://n/own-spark-avro.jar"})
    assert [c.split(":")[1] for c in wanted] == ["spark-avro_2.13"]


def test_jars_in_the_image_of_a_spark_are_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: list[str]
) -> None:
    (tmp_path / "jars").mkdir()
    for coordinate in jars.spark_coordinates():
        _, name, number = coordinate.split(":")
        (tmp_path / "jars" / f"{name}-{number}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert missing_jars({}) == [] and wanted == []


class _Loader:
    """The class loader of a JVM that spark-submit has started."""

    def __init__(self) -> None:
        self.added: list[str] = []

    def addURL(self, url: str) -> None:
        self.added.append(url)


def _jvm(
    classes: set[str], loader: Any, spark: str = version("pyspark"), scala: str = "2.13.17", delta: str = ""
) -> Any:
    def for_name(name: str, initialize: bool, loader: Any) -> None:
        if name not in classes:
            raise RuntimeError("ClassNotFoundException")

    def file(path: str) -> Any:
        return SimpleNamespace(toURI=lambda: SimpleNamespace(toURL=lambda: path))

    lang = SimpleNamespace(
        Thread=SimpleNamespace(currentThread=lambda: SimpleNamespace(getContextClassLoader=lambda: loader)),
        Class=SimpleNamespace(forName=for_name),
    )
    package = SimpleNamespace(SPARK_VERSION=lambda: spark)
    return SimpleNamespace(
        java=SimpleNamespace(lang=lang, io=SimpleNamespace(File=file)),
        org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(package=package))),
        io=SimpleNamespace(delta=SimpleNamespace(package=SimpleNamespace(VERSION=lambda: delta))),
        scala=SimpleNamespace(
            util=SimpleNamespace(Properties=SimpleNamespace(versionNumberString=lambda: scala))
        ),
    )


def test_a_class_path_with_everything_is_left_alone(wanted: list[str]) -> None:
    loader = _Loader()
    there = {DELTA, KAFKA, AVRO, "io.delta.package"}
    assert add_missing_jars(_jvm(there, loader, delta=version("delta-spark"))) == []
    assert loader.added == wanted == []


def test_a_class_path_gets_what_it_lacks_in_the_version_of_the_spark_that_runs(wanted: list[str]) -> None:
    loader = _Loader()
    jvm = _jvm({DELTA, "io.delta.package"}, loader, spark="4.1.7-vendor-2", delta="4.2.0")
    added = add_missing_jars(jvm)
    assert loader.added == added == ["/jars/spark-sql-kafka-0-10_2.13.jar", "/jars/spark-avro_2.13.jar"]
    assert wanted == [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.7",
        "org.apache.spark:spark-avro_2.13:4.1.7",
    ]


@pytest.mark.parametrize(
    ("jvm", "message"),
    [
        (
            _jvm(set(), _Loader(), scala="2.12.18"),
            r"with Scala 2\.12, .* by --packages or --jars: delta-spark, spark-sql-kafka-0-10, spark-avro",
        ),
        (
            _jvm({DELTA, KAFKA, AVRO, "io.delta.package"}, _Loader(), spark="4.1.7", delta="4.0.1"),
            r"Spark 4\.1\.7 runs here, with Delta 4\.0\.1.* --packages io\.delta:delta-spark_4\.1_2\.13:4\.3\.1",
        ),
        (
            _jvm(set(), object()),
            r"not on the class path: add --packages io\.delta:delta-spark.*,.*spark-avro",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_packages_to_add(
    jvm: Any, message: str, wanted: list[str]
) -> None:
    with pytest.raises(BridgeError, match=message):
        add_missing_jars(jvm)
    assert wanted == []


def test_jars_after_the_start_of_the_jvm_are_refused() -> None:
    with pytest.raises(DefinitionError, match=r"--conf spark\.jars\.packages: .* as --packages"):
        refuse_jars_after_start({PACKAGES: "a:b:1"})
    refuse_jars_after_start({"spark.sql.shuffle.partitions": "4"})


@pytest.mark.versions
def test_a_running_spark_lacks_nothing(spark: SparkSession, wanted: list[str]) -> None:
    assert add_missing_jars(spark._jvm) == [] and wanted == []
