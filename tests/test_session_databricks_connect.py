"""The bare wheel beside Databricks Connect, whose pyspark is a client alone: what it imports, says and does.

Databricks Connect needs Python 3.12 and excludes pyspark, so it has an environment of its own here. No workspace is
reached: the round trip goes through the server of `tests.backend.serverless`, which needs no Python tasks.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from tests.backend.serverless import ServerlessServer
from tests.backend.test_connect_server import ROOT, exactly_once
from tests.backend.test_connect_serverless import with_state

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
_EXTRAS = {"openlineage", "opentelemetry", "prometheus_client"}
_IMPORTS = """
import importlib, json, pkgutil
import bridge
missing = {}
names = [m.name for m in pkgutil.walk_packages(bridge.__path__, "bridge.") if not m.name.endswith("__main__")]
for name in names:
    try:
        importlib.import_module(name)
    except Exception as failed:
        missing[name] = [getattr(failed, "name", None) or "", f"{type(failed).__name__}: {failed}"]
print(json.dumps([bridge.__file__, len(names), missing]))
"""


@dataclass(frozen=True)
class Client:
    """An environment with the wheel and a version of Databricks Connect."""

    python: Path
    home: Path
    version: str

    def run(self, *arguments: str, exit_code: int = 0, cwd: Path = ROOT, **more: str) -> str:
        """What it prints. It knows no workspace: no profile of this machine, no variable of Databricks."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DATABRICKS_", "PYTHON", "SPARK_"))}
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=cwd,
            env={**kept, "HOME": str(self.home), "COLUMNS": "300", "LAKE": str(self.home / "lake"), **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        said = done.stdout + done.stderr
        assert done.returncode == exit_code, f"exit code {done.returncode}, not {exit_code}: {said[-4000:]}"
        return said


def _python() -> str:
    versions = Path.home() / ".pyenv" / "versions"  # a shim of pyenv in PATH may be that of no version
    found = next(map(str, versions.glob("3.12*/bin/python")), None) or shutil.which("python3.12")
    if found is None:
        pytest.skip("Databricks Connect needs Python 3.12, which is not here: install python3.12")
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone, as it would be built of these files; the folder that it is in."""
    folder = tmp_path_factory.mktemp("databricks")
    python, source = _python(), folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "bridge", source / "bridge", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    (folder / "constraints.txt").write_text(
        # Databricks Connect takes older versions of Arrow only.
        "\n".join(
            p for p in (ROOT / "constraints.txt").read_text().splitlines() if not p.startswith("pyarrow")
        )
    )
    _pip(folder, str(source), "pyarrow<25")
    return folder


def _pip(folder: Path, *wanted: str) -> None:
    command = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "-q", "--no-compile"]
    command += ["-c", str(folder / "constraints.txt"), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{wanted[0]} cannot be installed here: {done.stderr.strip()[-500:]}")


@pytest.fixture(scope="module", params=["17.3", "18"])
def client(request: pytest.FixtureRequest, environment: Path) -> Client:
    _pip(environment, f"databricks-connect=={request.param}.*")
    return Client(environment / "venv" / "bin" / "python", environment, request.param)


def test_each_module_is_importable(client: Client) -> None:
    file, count, missing = json.loads(client.run("-c", _IMPORTS, cwd=client.home))
    assert Path(file).is_relative_to(client.home) and count > 400
    assert {name: said for name, (package, said) in missing.items() if package not in _EXTRAS} == {}


def test_commands_without_compute(client: Client) -> None:
    assert "orders: accepted" in client.run("-m", "bridge", "validate", "conf/orders.yaml")
    assert "properties" in json.loads(client.run("-m", "bridge", "schema"))


def test_without_a_workspace_the_ways_to_name_one_are_said(client: Client) -> None:
    said = client.run("-m", "bridge", "ingest", "conf/orders.yaml", "--explain", exit_code=1)
    assert "no session of Databricks Connect" in said and "DATABRICKS_CONFIG_PROFILE" in said
    master = ("--master", "local[2]")
    assert "starts no Spark" in client.run("-m", "bridge", "status", "conf/orders.yaml", *master, exit_code=2)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerlessServer]:
    with ServerlessServer(tmp_path_factory.mktemp("serverless")) as running:
        yield running


def test_a_round_trip(
    client: Client, server: ServerlessServer, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if client.version == "18":
        pytest.skip("its process does not end: the channel of version 18.3 waits for ever when it is closed")
    given = (
        ROOT / "conf" / "orders.yaml",
        ROOT / "conf" / "orders_publish.yaml",
        Path(exactly_once(tmp_path)),
    )
    files = [with_state(file, tmp_path) for file in given]
    with Broker(tmp_path / "broker") as broker:
        for topic in ("serverless_orders", "serverless_orders_out", "serverless_orders_once"):
            broker.create_topic(topic, partitions=2, config={"cleanup.policy": "compact"})
        for seed in (7, 8):  # the second batch is a MERGE
            write(broker.bootstrap, "serverless_orders", list(changes(seed, keys=20, count=60)))
            said = client.run(
                "-m",
                "tests.backend.round_trip",
                *files,
                SPARK_REMOTE=server.remote,
                KAFKA=broker.bootstrap,
                LAKE=str(tmp_path / "lake"),
            )
            found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
            assert found["records"][0] == 60 and 0 < found["records"][1] == found["records"][2] <= 20
            assert len(set(found["sums"])) == 1 and "differs" not in found["sums"]
