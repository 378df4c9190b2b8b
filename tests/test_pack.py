"""What a cluster gets: a zip that Spark's workers can import, and an environment that works where it is unpacked."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from bridge.pack import needed_packages, pack_bridge, pack_environment

ROOT = Path(__file__).parents[1]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "changelog_bridge-9.9-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as built:
        built.writestr("bridge/__init__.py", "")
        built.writestr("bridge/packed.py", "import yaml; print('packed', __file__, yaml.__version__)")
        built.writestr("changelog_bridge-9.9.dist-info/METADATA", "Name: changelog-bridge\nVersion: 9.9\n")
    return file


def run(*command: str, cwd: Path) -> str:
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=True).stdout


def test_what_the_bridge_needs_goes_down_to_the_last_package_and_leaves_spark_out() -> None:
    found = needed_packages()
    assert {"confluent-kafka", "pyarrow", "numpy", "pydantic-core", "delta-spark"} <= set(found)
    assert not {"pyspark", "py4j", "changelog-bridge", "pytest", "mypy"} & set(found)
    assert found == sorted(found)


def test_the_bare_wheel_brings_neither_spark_nor_delta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Databricks has its own, which they would replace; its metadata is what a build of today says."""
    program = f"import setuptools.build_meta as b; b.prepare_metadata_for_build_wheel({str(tmp_path)!r})"
    run(sys.executable, "-W", "ignore", "-c", program, cwd=ROOT)
    monkeypatch.syspath_prepend(str(tmp_path))
    bare = needed_packages("changelog-bridge", without=())
    assert {"confluent-kafka", "deltalake", "pyarrow"} <= set(bare)
    assert not {"pyspark", "pyspark-client", "py4j", "delta-spark", "databricks-connect"} & set(bare)
    whole = needed_packages("changelog-bridge[spark]", without=())
    assert set(whole) - set(bare) == {"pyspark", "py4j", "delta-spark", "importlib-metadata", "zipp"}


@pytest.mark.parametrize("command", [["--help"], ["validate", "conf/orders.yaml"], ["doctor", "--help"]])
def test_commands_without_spark_need_no_extra(command: list[str]) -> None:
    """Packages of the extras cannot be imported, as where the bare wheel is installed."""
    extras = ("pyspark", "py4j", "delta", "grpc", "openlineage", "opentelemetry", "prometheus_client")
    hidden = f"import sys; sys.modules.update(dict.fromkeys({extras})); from bridge.cli.app import main; "
    assert run(sys.executable, "-c", f"{hidden}assert main({command}) == 0", cwd=ROOT)


def test_the_zip_is_importable_and_tells_its_version(wheel: Path, tmp_path: Path) -> None:
    packed = pack_bridge(wheel, tmp_path / "bridge.zip")
    program = (
        f"import sys; sys.path.insert(0, {str(packed)!r}); from importlib.metadata import version; "
        "import bridge; print(bridge.__file__, version('changelog-bridge'))"
    )
    assert run(sys.executable, "-c", program, cwd=tmp_path).split() == [f"{packed}/bridge/__init__.py", "9.9"]


def test_an_unpacked_environment_runs_the_bridge_anywhere(wheel: Path, tmp_path: Path) -> None:
    packed = pack_environment(wheel, tmp_path / "environment.tar.gz", ["pyyaml"])
    elsewhere = tmp_path / "else where" / "environment"
    with tarfile.open(packed) as archive:
        archive.extractall(elsewhere, filter="fully_trusted")
    said = run(str(elsewhere / "bin" / "python"), "-m", "bridge.packed", cwd=tmp_path)
    assert said.startswith(f"packed {elsewhere}") and said.split()[-1] == version("pyyaml")
    assert not list(elsewhere.rglob("pytest"))


def test_a_package_without_files_is_refused(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BridgeError, match="no-such-package is needed and not installed here: run `make setup`"
    ):
        pack_environment(wheel, tmp_path / "environment.tar.gz", ["no-such-package"])
    with pytest.raises(BridgeError, match="changelog-bridge is not installed as files"):
        pack_environment(wheel, tmp_path / "environment.tar.gz", ["changelog-bridge"])
