"""The AppCDS archive is named after Java and Spark, and is not used where Java options cannot name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import appcds

_JAVA = "spark.driver.extraJavaOptions"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRIDGE_HOME", str(tmp_path))
    return tmp_path


def _made(file: Path) -> Path:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    return file


def test_a_session_uses_an_existing_archive(spark: SparkSession) -> None:
    given = spark.sparkContext.getConf().get(_JAVA) or ""
    assert appcds.java_options() in given
    assert ("SharedArchiveFile" in given) == appcds.archive().is_file()


def test_without_an_archive_there_is_no_option(home: Path) -> None:
    assert appcds.java_options() == ""
    file = _made(appcds.archive())
    assert file.is_relative_to(home)
    assert appcds.java_options() == f"-XX:SharedArchiveFile={file} -Xlog:cds*=off"
    assert appcds.java_options_to_create(file) == f"-XX:ArchiveClassesAtExit={file} -Xlog:cds*=off"


def test_another_java_has_another_archive(
    home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = appcds.archive()
    other = tmp_path_factory.mktemp("jdk")
    (other / "bin").mkdir()
    (other / "bin" / "java").write_text("")
    monkeypatch.setenv("JAVA_HOME", str(other))
    assert appcds.archive() != mine


def test_another_environment_has_another_archive(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive fits the class path that it was made with, and no other."""
    mine = appcds.archive()
    monkeypatch.setattr("bridge.jars.pyspark_jars", lambda: home / "other" / "jars")
    assert appcds.archive() != mine


def test_a_path_that_java_options_cannot_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_HOME", str(tmp_path / "my home"))
    file = _made(appcds.archive())
    assert (appcds.java_options(), appcds.java_options_to_create(file)) == ("", "")
