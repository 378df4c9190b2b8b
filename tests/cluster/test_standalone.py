"""A standalone cluster runs the commands of docs/cluster.md; executors and workers are killed; nothing is lost.

The short form is one ingest and one publish. `make cluster` runs the rest, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from bridge.demo.orders import Order, changes, write
from bridge.embedded.broker import Broker
from bridge.pack import pack_environment
from tests.cluster.site import Site, commands, python_with_packages
from tests.cluster.standalone import Standalone
from tests.object_store import BUCKET, KEY, SECRET, ObjectStore

INGEST, PUBLISH, CHECK, VERIFY = commands("standalone, packages on the nodes")
(SHIPPED,) = commands("standalone, packages shipped")
PAUSED = "shard.before-commit"
_DYNAMIC = (
    "spark.dynamicAllocation.enabled=true",
    "spark.dynamicAllocation.shuffleTracking.enabled=true",
    "spark.dynamicAllocation.initialExecutors=0",
    "spark.dynamicAllocation.executorIdleTimeout=1s",
)
_EXCLUDING = (
    "spark.excludeOnFailure.enabled=true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor=1",
)

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with Standalone(tmp_path_factory.mktemp("cluster") / "nodes") as running:
        yield running


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_with_packages(tmp_path_factory.mktemp("python") / "environment")


@pytest.fixture
def site(
    tmp_path: Path, wheel: Path, broker: Broker, cluster: Standalone, unique: Callable[[str], str]
) -> Site:
    return Site(tmp_path, wheel, broker, unique("orders"), cluster.url)


def written(site: Site, seed: int = 5) -> dict[int, Order]:
    """Write changes of orders to the site's topic; return the orders that there are in the end."""
    story = list(changes(seed, keys=200, count=2_000))
    write(site.broker.bootstrap, site.topic, story)
    last = {change.order_id: change.order for change in story}
    return {key: order for key, order in last.items() if order is not None}


def succeed(site: Site, cluster: Standalone, command: str, python: Path, **environ: str) -> str:
    code, output = site.run(command, python, **environ)
    assert code == 0, f"{command}\n{output}\n{cluster.logs()}"
    return output


@pytest.mark.parametrize("lost", ["executor", pytest.param("worker", marks=pytest.mark.slow)])
def test_a_publish_survives_what_is_killed_and_sends_each_record_once(
    site: Site, cluster: Standalone, python: Path, lost: str
) -> None:
    """A worker takes its executor with it, and no other comes in its place; the one that is left does the work."""
    orders = written(site)
    succeed(site, cluster, INGEST, python)
    assert site.table() == orders

    (cluster.failpoints / PAUSED).write_text("pause")
    hit = cluster.failpoints / f"{PAUSED}.hit"
    publish = site.start(PUBLISH, python)
    try:
        deadline = time.monotonic() + 240
        while not hit.exists():
            assert publish.poll() is None and time.monotonic() < deadline, ended(publish) + cluster.logs()
            time.sleep(0.1)
        killed = cluster.executors(0)
        assert len(killed) == 1 and len(cluster.executors()) == 2
        if lost == "worker":
            cluster.workers[0].kill()
        os.kill(killed[0], signal.SIGKILL)
    finally:
        hit.unlink(missing_ok=True)
    output = ended(publish, 240)
    if lost == "worker":
        cluster.add_worker()
        cluster.wait_for(2)
    assert publish.returncode == 0, output + cluster.logs()
    fold, records = site.published()
    assert fold == {key: (order.status, order.quantity) for key, order in orders.items()}
    assert records == len(orders)


@pytest.mark.slow
def test_executors_come_and_go_and_are_excluded(site: Site, cluster: Standalone, python: Path) -> None:
    """Spark starts executors when tasks wait, and ends idle ones. A task that fails on one runs again on another."""
    orders = written(site)
    succeed(site, cluster, with_settings(INGEST, _DYNAMIC), python)
    assert site.table() == orders
    (cluster.failpoints / PAUSED).write_text("raise")
    succeed(site, cluster, with_settings(PUBLISH, _DYNAMIC + _EXCLUDING), python)
    (cluster.failpoints / f"{PAUSED}.hit").unlink()
    fold, records = site.published()
    assert fold == {key: (order.status, order.quantity) for key, order in orders.items()}
    assert records == len(orders)


def with_settings(command: str, settings: Sequence[str]) -> str:
    """The command of spark-submit with further settings."""
    program, _, rest = command.partition(" ")
    return " ".join([program, *(f"--conf {setting}" for setting in settings), rest])


def ended(process: subprocess.Popen[str], seconds: float = 10) -> str:
    """Wait for the end of a process; end it after so many seconds. Returns what it printed."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


@pytest.mark.slow
def test_every_command_of_the_page(site: Site, cluster: Standalone, python: Path) -> None:
    orders = written(site)
    for command in (INGEST, PUBLISH, CHECK):
        succeed(site, cluster, command, python)
    assert "equal" in succeed(site, cluster, VERIFY, python)
    assert site.table() == orders
    assert (site.lake / "_reports" / "orders.html").is_file()


@pytest.mark.slow
def test_a_table_on_an_object_store(
    site: Site, cluster: Standalone, python: Path, object_store: ObjectStore
) -> None:
    """Pipeline files, suites, table, checkpoint, progress, results and report are on S3; the driver fetches Hadoop's
    client and sends it to the executors."""
    orders, home = written(site), f"s3a://{BUCKET}/{site.topic}"
    site.use_object_store(object_store)
    site.upload(object_store, site.topic)
    lake = f"{home}/lake"
    for command in (INGEST, PUBLISH, CHECK):
        output = succeed(site, cluster, command.replace(" conf/o", f" {home}/conf/o"), python, LAKE="../lake")
        assert KEY not in output and SECRET not in output
    assert "equal" in succeed(
        site, cluster, VERIFY.replace(" conf/o", f" {home}/conf/o"), python, LAKE="../lake"
    )
    table = DeltaTable(f"{lake}/orders", storage_options=object_store.delta_rs_options())
    found = pa.table(QueryBuilder().register("t", table).execute("SELECT order_id, status FROM t").read_all())
    assert {row["order_id"]: row["status"] for row in found.to_pylist()} == {
        key: order.status for key, order in orders.items()
    }
    fold, records = site.published()
    assert len(fold) == records == len(orders)
    assert "<html" in object_store.text(f"{site.topic}/lake/_reports/orders.html")
    assert not site.lake.exists()


@pytest.mark.slow
def test_shipped_packages(site: Site, cluster: Standalone, wheel: Path) -> None:
    """The nodes have nothing but Spark and Python."""
    orders = written(site)
    pack_environment(wheel, site.folder / "dist" / "environment.tar.gz")
    driver = python_with_packages(site.folder / ".venv", wheel=wheel)
    for command in (SHIPPED, SHIPPED.replace("ingest conf/orders", "publish conf/orders_publish")):
        succeed(site, cluster, command, Path("environment/bin/python"), PYSPARK_DRIVER_PYTHON=str(driver))
    assert site.table() == orders
    fold, records = site.published()
    assert len(fold) == records == len(orders)


@pytest.mark.slow
def test_executors_without_a_package_are_named_at_the_start(
    site: Site, cluster: Standalone, python: Path, tmp_path: Path
) -> None:
    written(site)
    succeed(site, cluster, INGEST, python)
    lacking = python_with_packages(tmp_path / "lacking", without="confluent_kafka")
    for command in (PUBLISH, PUBLISH.replace("run.py publish", "run.py resync")):
        code, output = site.run(command, lacking, PYSPARK_DRIVER_PYTHON=str(python))
        assert code == 1 and "confluent-kafka is not installed on the executors" in output, output
        assert "; host " in output and "unexpected error" not in output
    assert site.published() == ({}, 0)
