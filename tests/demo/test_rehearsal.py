"""The rehearsal creates the class archive once, and has no effect where it cannot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import appcds, jars
from bridge.demo import rehearsal

_ROOT = Path(__file__).parents[2]
_LOADED = """
from bridge.session import build_session
spark = build_session("x", conf={"spark.driver.extraJavaOptions": "-Xlog:class+load:file=LOG"})
assert spark.range(10).selectExpr("sum(id)").first()[0] == 45
spark.sparkContext.stop()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "jars").symlink_to(jars.home() / "jars")
    monkeypatch.setenv("BRIDGE_HOME", str(tmp_path))
    return tmp_path


def test_an_existing_archive_is_kept(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = appcds.archive()
    file.parent.mkdir(parents=True)
    file.write_bytes(b"made")
    assert rehearsal.main([]) == 0
    assert (file.read_bytes(), capfd.readouterr().out) == (b"made", "")


def test_a_java_without_support_changes_nothing(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    java = home / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home / "jdk"))
    assert rehearsal.main([]) == 0
    assert "not created; without it Spark needs a few seconds more to start" in capfd.readouterr().out
    assert list((home / "classes").iterdir()) == []


@pytest.mark.slow
@pytest.mark.versions
def test_spark_loads_classes_from_the_archive(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_ROOT)
    assert rehearsal.main([]) == 0 and appcds.archive().is_file()
    log = tmp_path / "loaded.txt"
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_GATEWAY")}
    subprocess.run([sys.executable, "-c", _LOADED.replace("LOG", str(log))], env=environ, check=True)
    found = re.findall(r"org\.apache\.spark\S* source: (.*)", log.read_text())
    shared = [source for source in found if source == "shared objects file (top)"]
    assert len(shared) > len(found) / 2
