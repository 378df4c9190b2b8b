"""What executors lack is said before a run begins, with host and way out; a local master is not asked.

The executors are processes of their own that are told what they lack; tests/cluster has those of a real cluster.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.backend import Feature
from bridge.backend.hadoop import HadoopFiles
from bridge.definition import Definition
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError, MissingPackageError, TableError
from bridge.kafka.worker_check import expected
from bridge.pipelines.runtime.executors import check_executors, executors_error, look
from tests.pipelines.world import World

_EXECUTOR = """
import json, os, socket, sys
from importlib import metadata

lacks = json.loads(sys.argv[1])

class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == lacks.get("module"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def refused(*arguments):
    raise ConnectionRefusedError(111, "Connection refused")

sys.meta_path.insert(0, Lacking())
own = metadata.version
metadata.version = lambda package: lacks.get("versions", {}).get(package) or own(package)
if lacks.get("network"):
    socket.create_connection = refused
if lacks.get("disk"):
    os.path.exists = lambda path: False
socket.gethostname = lambda: "node-7"
from pyspark import cloudpickle
print("\\n".join(cloudpickle.loads(sys.stdin.buffer.read())(iter([]))))
"""


@dataclass
class Cluster:
    """The part of a Spark session that the check uses, on a cluster whose executors lack something."""

    lacks: dict[str, Any] = field(default_factory=dict)
    failure: Exception | None = None
    jobs: int = 0
    master: str = "spark://master:7077"
    parallelism: int = 2

    def __post_init__(self) -> None:
        self._bridge_backend = self
        self.files = HadoopFiles(cast(SparkSession, None))

    def can(self, feature: Feature) -> str | None:
        return None

    def run_tasks(self, task: Callable[[Any], Any], parts: Sequence[int]) -> list[str]:
        assert len(parts) == 2
        self.jobs += 1
        if self.failure:
            raise self.failure
        command = [sys.executable, "-c", _EXECUTOR, json.dumps(self.lacks)]
        pickled = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
        done = subprocess.run(command, input=pickled, capture_output=True, check=True)
        return str(done.stdout, "utf-8").splitlines() * 2

    def check(self, definition: Definition, *, sends: bool) -> None:
        check_executors(cast(SparkSession, self), definition, sends=sends)


@pytest.fixture(autouse=True)
def local_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Hadoop says of a path on a local disk."""
    monkeypatch.setattr("bridge.backend.hadoop.HadoopFiles.local_path", lambda _, path: Path(path))


@pytest.fixture(scope="module")
def make(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Definition]:
    def definition(reader: str) -> Definition:
        folder = tmp_path_factory.mktemp("definition")
        sections = f"ingest: {{reader: {reader}}}\n"
        return World(cast(SparkSession, None), broker, folder, "t", sections=sections).definition()

    return definition


def test_executors_like_the_driver_are_accepted(make: Callable[[str], Definition]) -> None:
    cluster = Cluster()
    cluster.check(make("auto"), sends=True)
    assert cluster.jobs == 1


@pytest.mark.parametrize(
    ("module", "package"),
    [("confluent_kafka", "confluent-kafka"), ("bridge", "changelog-bridge")],
)
def test_a_missing_package_is_named_with_its_host(
    make: Callable[[str], Definition], module: str, package: str
) -> None:
    cluster = Cluster({"module": module})
    for reader, sends in (("auto", True), ("consumer", False)):
        with pytest.raises(MissingPackageError) as refused:
            cluster.check(make(reader), sends=sends)
        assert str(refused.value).startswith(f"{package} is not installed on the executors (No module named")
        assert f"; host node-7, {sys.executable})" in str(refused.value)
        assert "`make pack`" in str(refused.value) and "spark.pyspark.python" in str(refused.value)
    cluster.check(make("auto"), sends=False)  # Spark's reader does it


@pytest.mark.parametrize(("package", "there"), [("changelog-bridge", "0.0.9"), ("pyarrow", "9.0.0")])
def test_another_version_is_named_with_the_drivers(
    make: Callable[[str], Definition], package: str, there: str
) -> None:
    cluster = Cluster({"versions": {package: there}})
    with pytest.raises(
        MissingPackageError, match=rf"{package} is {there} on the executors \(host node-7, .*in the driver: "
    ):
        cluster.check(make("auto"), sends=False)
    cluster.check(make("spark"), sends=False)


def test_a_broker_that_only_the_driver_reaches_is_named(
    make: Callable[[str], Definition], broker: Broker
) -> None:
    address = rf"{broker.bootstrap} cannot be reached from Spark's executors"
    message = rf"{address} \(host node-7: .*refused.*advertised\.listeners"
    for reader in ("auto", "spark"):
        with pytest.raises(KafkaError, match=message):
            Cluster({"network": True}).check(make(reader), sends=False)


def test_a_table_on_a_disk_of_the_driver_alone_is_refused(make: Callable[[str], Definition]) -> None:
    definition = make("auto")
    assert definition.delta.path is not None
    message = (
        rf"{definition.delta.path} is on a disk of the driver's machine, .*\(host node-7\): put table and"
    )
    for exists in (False, True):
        if exists:
            Path(definition.delta.path).mkdir()
        for sends in (True, False):
            with pytest.raises(TableError, match=message):
                Cluster({"disk": True}).check(definition, sends=sends)
    left = {p.name for p in Path(definition.delta.path).parent.rglob("*")}
    assert left == {"orders.yaml", "table"}


def test_executors_without_a_fitting_python(make: Callable[[str], Definition]) -> None:
    text = 'Lost task 0.3 in stage 0.0 (TID 3) (10.1.2.3 executor 1): java.io.IOException: Cannot run program "python9"'
    cluster = Cluster(failure=PySparkException(text))
    with pytest.raises(MissingPackageError) as refused:
        cluster.check(make("auto"), sends=True)
    assert str(refused.value).startswith(
        "Spark's executors cannot run the driver's Python on host 10.1.2.3 (Cannot run program \"python9\")"
    )
    assert "PYSPARK_PYTHON" in str(refused.value)
    cluster.check(make("spark"), sends=False)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_a_local_master_is_not_asked(make: Callable[[str], Definition], master: str) -> None:
    cluster = Cluster(master=master, failure=PySparkException("asked"))
    cluster.check(make("consumer"), sends=True)
    assert cluster.jobs == 0


def test_what_is_expected_of_executors_that_join_later(
    make: Callable[[str], Definition], broker: Broker
) -> None:
    definition = make("auto")
    Cluster().check(definition, sends=False)
    check = expected(definition.topic.properties)
    assert check is not None
    assert [f"{host}:{port}" for host, port in check.addresses] == [broker.bootstrap]


def test_after_a_failure_executors_are_asked_again(make: Callable[[str], Definition]) -> None:
    found = executors_error(cast(SparkSession, Cluster({"network": True})), make("spark"))
    assert isinstance(found, KafkaError) and "(host node-7: " in str(found)
    assert executors_error(cast(SparkSession, Cluster()), make("spark")) is None


def test_a_look_at_this_process(tmp_path: Path) -> None:
    seen = look(("json", "no_such_module"), (("127.0.0.1", 1),))
    assert seen.python == sys.executable
    assert seen.missing == ["no_such_module", "No module named 'no_such_module'"]
    assert seen.unreachable is not None and seen.unreachable[0] == "127.0.0.1:1"
