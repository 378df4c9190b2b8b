"""One Spark session, one broker and one schema registry for the whole run, or for each of the two processes of
`make test`, which divide the test files between them; each started only if a test asks for it."""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from pyspark.sql import SparkSession

from tests.azure_store import AzureStore, azure_jars
from tests.object_store import ObjectStore

if TYPE_CHECKING:
    from bridge.embedded.broker import Broker
    from tests.kafka.topics import Fresh
    from tests.pipelines.processes import Prepare
    from tests.pipelines.scripts.scripts import MakeScript
    from tests.pipelines.world import Make

os.environ.setdefault("TZ", "UTC")
# Before Spark starts, whose workers inherit it; the folder is empty unless a test of this process arms a failpoint.
if "BRIDGE_FAILPOINTS" not in os.environ or "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["BRIDGE_FAILPOINTS"] = tempfile.mkdtemp(prefix="bridge-failpoints-")
    atexit.register(shutil.rmtree, os.environ["BRIDGE_FAILPOINTS"], ignore_errors=True)
ON_AZURE = os.environ.get("BRIDGE_TEST_STORE") == "azure"
JAVA_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-Xms1200m -Xmn600m -XX:MetaspaceSize=400m"
)
"""Without the second compiler Java's code cache has 48 MB by default, which the run would fill. The JVM begins with
room for its classes and garbage: growing costs full collections."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session as the command line builds it, with two shuffle partitions."""
    from bridge.session import build_session

    folder = tmp_path_factory.mktemp("spark")
    os.environ.setdefault("BRIDGE_LOG", str(folder / "bridge.log"))
    if "SPARK_REMOTE" in os.environ:  # tests/backend/test_connect_server.py runs some files so
        yield build_session("bridge-tests")
        return
    session = build_session(
        "bridge-tests",
        master="local[2]",
        stores=("s3a",),
        conf={
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            **({"spark.jars": ",".join(map(str, azure_jars()))} if ON_AZURE else {}),
            # Hundreds of queries over a few rows: Spark's code generation and Java's second compiler do not pay back
            # what they cost. The demo, the jobs' tests and the acceptance cases run with both.
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            # A worker keeps one session for thousands of tests, and Delta the snapshot of each of their tables with the
            # query plan of its state: with the plans of tests that fill in values they filled 2 GB, and Java collected
            # garbage for minutes.
            "spark.databricks.delta.delta.log.cacheSize": "32",
            "spark.driver.memory": "3g",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.python.daemon.module": "tests.python_daemon",
        },
    )
    yield session
    session.sparkContext.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The embedded broker, on a free port."""
    from bridge.embedded.broker import Broker

    # Else its controller writes to its log twice a second that nothing has happened.
    with Broker(
        tmp_path_factory.mktemp("broker"), settings={"metadata.max.idle.interval.ms": "0"}
    ) as running:
        yield running


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The schema registry, on a free port; ids and subjects are shared by the session's tests."""
    from bridge.embedded.schema_registry import SchemaRegistryServer

    with SchemaRegistryServer(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A local S3 server with one bucket; under `make azurite` a server of Azure's in its place."""
    made = AzureStore if ON_AZURE else ObjectStore
    with made(tmp_path_factory.mktemp("store")) as running:
        yield cast("ObjectStore", running)


@pytest.fixture
def store(object_store: ObjectStore, spark: SparkSession) -> ObjectStore:
    """The server, which the session reaches."""
    for name, value in object_store.settings().items():
        spark.conf.set(name, value)
    return object_store


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel from a copy, so that no build/ is left in the checkout."""
    root = Path(__file__).parents[1]
    tree, dist = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(root / name, tree)
    shutil.copytree(root / "bridge", tree / "bridge", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = dist.glob("*.whl")
    return built


_count = itertools.count(1)


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Makes names no other test uses: unique("orders") -> "orders-test_x-3"."""
    test = re.sub(r"[^A-Za-z0-9]+", "_", request.node.name)[:40]
    return lambda stem: f"{stem}-{test}-{next(_count)}"


@pytest.fixture
def fresh(broker: Broker, unique: Callable[[str], str]) -> Fresh:
    """Creates a topic as `Broker.create_topic` does, with a name no other test uses, which it returns."""

    def made(stem: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        name = unique(stem)
        broker.create_topic(name, partitions, config)
        return name

    return made


@pytest.fixture
def arm() -> Iterator[Callable[[str, str], Path]]:
    """Arms a failpoint: arm("shard.before-commit", "kill"); gives the file that is there once it was hit."""
    folder = Path(os.environ["BRIDGE_FAILPOINTS"])

    def armed(name: str, action: str) -> Path:
        (folder / name).write_text(action)
        return folder / f"{name}.hit"

    yield armed
    for file in folder.iterdir():
        file.unlink()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A folder for this test's tables and checkpoints."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def make(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Make:
    """Makes a topic, a table and a pipeline file of this test; see `World.make`."""
    from tests.pipelines.world import World

    return partial(World.make, spark, broker, lake, unique)


@pytest.fixture
def prepare(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> Prepare:
    """Makes an exactly-once publish of this test, and its ledger; see `prepared`."""
    from tests.pipelines.processes import prepared

    return partial(prepared, spark, broker, lake, unique)


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    """Ends a run with an interval, after two minutes in any case."""
    asked = threading.Event()
    watchdog = threading.Timer(120, asked.set)
    watchdog.start()
    yield asked
    watchdog.cancel()


@pytest.fixture
def script_of(spark: SparkSession, broker: Broker, lake: Path, unique: Callable[[str], str]) -> MakeScript:
    """Makes a script with topics of this test; see `ScriptRun`."""
    from tests.pipelines.scripts.scripts import ScriptRun

    return lambda text: ScriptRun(spark, broker, lake, unique("s"), text)


@pytest.fixture(autouse=True)
def nothing_stays_cached(request: pytest.FixtureRequest) -> Iterator[None]:
    """Frames that a test has persisted end with it: Spark looks for each of them in the plan of each later query."""
    session = request.getfixturevalue("spark") if "spark" in request.fixturenames else None
    yield
    if session is not None and not isinstance(session, str):  # some tests have a parameter of this name
        session.catalog.clearCache()


@pytest.fixture
def small_arrow_batches(spark: SparkSession) -> Iterator[None]:
    """Tasks are given five rows at a time, so that a few rows are several batches."""
    from bridge.session import session_settings

    with session_settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "5"}):
        yield


def pytest_collection_finish(session: pytest.Session) -> None:
    """Free the garbage collector of half a million objects: what is imported and collected stays to the end."""
    gc.collect()
    gc.freeze()


SLOW = Path(__file__).parent / "slow_tests.txt"
UNMATCHED = pytest.StashKey[set[str]]()
"""The lines of `slow_tests.txt` that name no test of the files that were collected."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of `slow_tests.txt` as slow, before pytest chooses by marks."""
    tests = Path(__file__).parent
    listed = {line for line in SLOW.read_text().splitlines() if line and not line.startswith("#")}
    files, found = set(), set()
    for item in items:
        file = str(item.path.relative_to(tests))
        names = {f"{file}::{item.name}", f"{file}::{item.name.partition('[')[0]}"} & listed
        if names:
            item.add_marker(pytest.mark.slow)
        files.add(file)
        found |= names
    collected = {line for line in listed if line.partition("::")[0] in files}
    gone = {line for line in listed if not (tests / line.partition("::")[0]).exists()}
    config.stash[UNMATCHED] = (collected | gone) - found
