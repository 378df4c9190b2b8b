"""Coordinates follow what is installed; a fetch happens once."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from bridge import jars
from bridge.errors import BridgeError

DELTA = f"delta-spark_{version('pyspark').rpartition('.')[0]}_2.13"


@pytest.mark.versions
def test_coordinates_follow_the_installed_packages() -> None:
    found = jars.spark_coordinates()
    assert f"io.delta:{DELTA}:{version('delta-spark')}" in found
    assert f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version('pyspark')}" in found
    assert all(c.endswith(jars.KAFKA_BROKER) for c in jars.broker_coordinates())


@pytest.mark.versions
def test_fetched_jars_leave_out_what_pyspark_ships() -> None:
    names = {
        jar.name.rsplit("-", 1)[0] for jar in jars.fetch("spark", jars.spark_coordinates(), beside_spark=True)
    }
    assert {DELTA, "delta-storage", "spark-sql-kafka-0-10_2.13", "kafka-clients"} <= names
    assert not names & {"scala-library", "antlr4-runtime", "hadoop-client-api"}


def test_an_unreachable_repository_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        "<ivysettings><settings defaultResolver='none'/><resolvers>"
        f"<filesystem name='none'><artifact pattern='{tmp_path}/[artifact]'/></filesystem>"
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("BRIDGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BRIDGE_IVY_SETTINGS", str(settings))
    with pytest.raises(BridgeError, match=r"could not fetch a:b:1.*(?s:.*)BRIDGE_IVY_SETTINGS"):
        jars.fetch("test", ["a:b:1"], attempts=1)
    assert not list((tmp_path / "home" / "jars").glob("test-*"))


def test_a_missing_java_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BridgeError, match="no java found: install Java 17"):
        jars.java()


def test_an_application_comes_as_one_unpacked_archive() -> None:
    """Fetched once; what starts it lies at its top."""
    folder = jars.fetch_application("registry", jars.registry_coordinate())
    assert folder.parent == jars.home() / "jars" and len(list(folder.glob("*-runner.jar"))) == 1
    assert jars.fetch_application("registry", jars.registry_coordinate()) == folder


def test_single_jars_come_without_what_they_depend_on() -> None:
    coordinate = f"org.apache.kafka:kafka-tools:{jars.KAFKA_BROKER}"
    assert [jar.name for jar in jars.fetch("tools", [coordinate], transitive=False)] == [
        f"kafka-tools-{jars.KAFKA_BROKER}.jar"
    ]
