"""An executor that joins a run, and lacks what the others have, ends it with the error that names host and way out."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from tests.cluster.site import Site, commands, python_with_packages
from tests.cluster.standalone import Standalone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

INGEST = commands("standalone, packages on the nodes")[0]
# The same path on all nodes, as it must be; what is behind it differs.
_PYTHON = '#!/bin/sh\nexec "${{NODE_PYTHON:-{python}}}" "$@"\n'
_NO_NETWORK = """
import socket
def refused(*arguments):
    raise ConnectionRefusedError(111, "Connection refused")
socket.create_connection = refused
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Standalone:
    return Standalone(tmp_path / "nodes", workers=1)


def late_python(folder: Path, lacks: str) -> Path:
    """The Python of a node without confluent-kafka, or with a network that lets no Python out."""
    if lacks == "package":
        return python_with_packages(folder, without="confluent_kafka")
    python = python_with_packages(folder)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "no_network.py").write_text(_NO_NETWORK)
    (packages / "no_network.pth").write_text("import no_network\n")
    return python


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        ("package", "confluent-kafka is not installed on the executors"),
        ("network", "cannot be reached from Spark's executors"),
    ],
)
def test_a_late_executor_that_lacks_something_is_named(
    tmp_path: Path,
    wheel: Path,
    broker: Broker,
    cluster: Standalone,
    unique: Callable[[str], str],
    lacks: str,
    message: str,
) -> None:
    good = python_with_packages(tmp_path / "good")
    python = tmp_path / "python"
    python.write_text(_PYTHON.format(python=good))
    python.chmod(0o755)
    with cluster:
        site = Site(tmp_path / "site", wheel, broker, unique("orders"), cluster.url)
        file = site.folder / "conf" / "orders.yaml"
        text = file.read_text().replace("trigger: available-now", "trigger: 1 s")
        file.write_text(text.replace("ingest:\n", "ingest:\n  reader: consumer\n"))
        story = list(changes(5, keys=200, count=2_000))
        write(broker.bootstrap, site.topic, story[:1_000])
        command = INGEST.replace("spark-submit ", "spark-submit --conf spark.task.maxFailures=1 ")
        running = site.start(command, python, PYSPARK_DRIVER_PYTHON=str(good))
        try:
            wait(running, lambda: len(list((site.lake / "orders" / "_delta_log").glob("*.json"))) > 1)
            cluster.add_worker(NODE_PYTHON=str(late_python(tmp_path / "late", lacks)))
            wait(running, lambda: bool(cluster.executors(1)))
            for change in story[1_000:]:  # several batches: not each gives the new executor a task
                if running.poll() is not None:
                    break
                write(broker.bootstrap, site.topic, [change])
                time.sleep(0.02)
            output, _ = running.communicate(timeout=60)
        finally:
            running.kill()
        assert running.returncode == 1, output + cluster.logs()
        assert message in output and "unexpected error" not in output, output
        assert "host " in output


def wait(running: subprocess.Popen[str], done: Callable[[], bool], seconds: float = 120) -> None:
    """Until something is so, or the run has ended."""
    deadline = time.monotonic() + seconds
    while not done():
        assert running.poll() is None and time.monotonic() < deadline, running.communicate(timeout=10)[0]
        time.sleep(0.2)
