"""Through a server of Spark Connect in a process of its own: the commands of users, and suites of engine and feed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from tests.backend.connect_server import ConnectServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]

SUITES = (
    "tests/backend/through_connect.py",
    "tests/backend/test_compute.py::test_the_table_knows_what_a_session_refuses",
    "tests/delta/test_table_state.py",
    "tests/delta/test_change_feed.py::test_a_feed_that_was_off_in_between",
    "tests/delta/test_change_feed.py::test_a_log_that_was_cleaned",
    "tests/delta/test_change_feed.py::test_other_failures_pass_through_the_wrapper",
    "tests/delta/test_merge_spark.py::test_a_batch_is_one_commit_with_its_progress[spark]",
    "tests/delta/test_merge_spark.py::test_a_batch_that_is_there_already_is_not_applied_again[spark]",
    "tests/scenarios/test_random_histories.py::test_a_history_folds_to_the_same_rows_on_both_ends",
)
"""What must hold through Spark Connect as it does beside the JVM."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as running:
        yield running


class Remote(Protocol):
    """A server that clients reach."""

    @property
    def remote(self) -> str: ...


class User:
    """Runs commands on the pipeline files of conf/ in one process, which has `environ`. Used in a `with` block."""

    def __init__(self, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.backend.commands"],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        code, said = json.loads(self._process.stdout.readline())
        assert code == exit_code, said
        return " ".join(said.split())

    def __enter__(self) -> User:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)


def said_by(environ: dict[str, str], *arguments: str, exit_code: int) -> str:
    """Run a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bridge", *arguments],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def through(server: Remote, **more: str) -> dict[str, str]:
    return {**os.environ, "SPARK_REMOTE": server.remote, "COLUMNS": "300", "PYTHONPATH": str(ROOT), **more}


def exactly_once(folder: Path) -> str:
    """Write the pipeline file of a publish with transactions, and return its path."""
    file = folder / "once.yaml"
    text = (ROOT / "conf" / "orders_publish.yaml").read_text().replace("orders_publish", "once")
    options = "'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'once',"
    text = text.replace("'key.format'", f"{options} 'key.format'").replace("orders_out", "orders_once")
    file.write_text(text)
    return str(file)


def check_ends(user: User, ingest: str, publishes: Sequence[str]) -> None:
    """Topics and table are equal, and the commands that look at them say what they should."""
    sums = {user.run("verify", file).partition("checksum ")[2].split()[0] for file in publishes}
    assert len(sums) == 1
    assert "result equal" in user.run("verify", ingest)
    assert "order_id is unique" in user.run("check", ingest)
    assert "pending records 0" in user.run("status", ingest)
    assert "retained hours 168.0" in user.run("maintain", ingest)
    assert "no other run is at work" in user.run("doctor", ingest)


def test_a_round_trip_by_commands(server: ConnectServer, broker: Broker, tmp_path: Path) -> None:
    for topic in ("orders", "orders_out", "orders_once"):
        broker.create_topic(topic, partitions=2, config={"cleanup.policy": "compact"})
    ingest, publish, once = "conf/orders.yaml", "conf/orders_publish.yaml", exactly_once(tmp_path)
    with User(through(server, KAFKA=broker.bootstrap, LAKE=str(tmp_path / "lake"))) as user:
        for seed in (7, 8):  # the second batch is a MERGE
            write(broker.bootstrap, "orders", list(changes(seed, keys=50, count=300)))
            said = user.run("ingest", ingest)
            assert f"version {seed - 6}" in said and "by spark (Spark Connect: only the server" in said
            for file in (publish, once):
                assert "records out" in user.run("publish", file)
        check_ends(user, ingest, (publish, once))
        said = user.run("resync", publish, exit_code=2)
        assert "bridge resync of a topic is not possible through Spark Connect" in said
        assert "on Databricks compute with dedicated access mode" in said


def test_what_needs_the_jvm_is_refused_by_name(server: ConnectServer, broker: Broker, tmp_path: Path) -> None:
    environ = through(server, KAFKA=broker.bootstrap, LAKE=str(tmp_path / "lake"))
    said = said_by(environ, "txn", "list", exactly_once(tmp_path), exit_code=2)
    assert "transactions cannot be listed from Spark Connect" in said and "kafka-transactions.sh" in said
    said = said_by(environ, "ingest", "conf/orders.yaml", "--master", "local[2]", exit_code=2)
    assert "SPARK_REMOTE names a server; leave out one of them" in said


def test_a_server_that_is_not_there_is_named(tmp_path: Path, server: ConnectServer) -> None:
    environ = {**through(server), "SPARK_REMOTE": "sc://127.0.0.1:1", "LAKE": str(tmp_path)}
    said = said_by(environ, "status", "conf/orders.yaml", exit_code=1)
    assert "no session of Spark Connect at sc://127.0.0.1:1" in said


def test_suites(server: ConnectServer, broker: Broker) -> None:
    run_pytest(server, SUITES)


def run_pytest(server: Remote, files: Sequence[str]) -> None:
    """Run tests in a process of its own, whose fixture `spark` is a session of the server."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *files,
    ]
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=through(server), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{time.monotonic() - began:.0f} s\n{done.stdout[-6000:]}"
