"""The jar in the repository is what its source gives."""

from __future__ import annotations

import re
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from bridge import jars
from bridge.errors import BridgeError
from bridge.log_store import JAR
from bridge.log_store.build import build


def _compiler_version() -> str:
    compiler = Path(jars.java()).with_name("javac")
    if not compiler.exists():
        return ""
    shown = subprocess.run([compiler, "-version"], capture_output=True, text=True, check=True)
    return re.sub(r"javac (\d+).*\s*", r"\1", shown.stdout + shown.stderr)


@pytest.mark.skipif(
    _compiler_version() != "17", reason="needs the compiler of a JDK 17: others write other bytes"
)
def test_the_jar_is_built_from_its_source(tmp_path: Path) -> None:
    build(tmp_path / JAR)
    assert (tmp_path / JAR).read_bytes() == (files("bridge.log_store") / JAR).read_bytes()


def test_a_java_without_a_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BridgeError) as refused:
        build(tmp_path / JAR)
    assert str(refused.value) == (
        f"no {tmp_path}/bin/javac: install a JDK 17, or set JAVA_HOME to one, to build log-store.jar"
    )
