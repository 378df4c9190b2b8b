"""Under the rules of Databricks' serverless compute (`tests.backend.serverless`): commands of users, and a suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.connect.proto import base_pb2

from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from tests.backend.serverless import SETTINGS, Broken, ServerlessServer, broken_rule
from tests.backend.test_connect_server import ROOT, User, check_ends, exactly_once, run_pytest, through

SUITE = ("tests/backend/through_serverless.py",)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerlessServer]:
    with ServerlessServer(tmp_path_factory.mktemp("serverless")) as running:
        yield running


@pytest.mark.parametrize("name", [*sorted(SETTINGS), "spark.sql.codegen.wholeStage", "spark.master"])
def test_which_settings_a_client_sets_and_reads(name: str) -> None:
    def asked(kind: str) -> Broken | None:
        request = base_pb2.ConfigRequest()
        if kind == "set":
            request.operation.set.pairs.add(key=name, value="1")
        else:
            request.operation.get.keys.append(name)
        return broken_rule("Config", request)

    assert (asked("set") is None) == (name in SETTINGS)
    assert (asked("get") is None) == (name in SETTINGS or name.startswith("spark.sql."))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_round_trip_by_commands(server: ServerlessServer, broker: Broker, tmp_path: Path) -> None:
    for topic in ("serverless_orders", "serverless_orders_out", "serverless_orders_once"):
        broker.create_topic(topic, partitions=2, config={"cleanup.policy": "compact"})
    lake = tmp_path / "lake"
    given = (
        ROOT / "conf" / "orders.yaml",
        ROOT / "conf" / "orders_publish.yaml",
        Path(exactly_once(tmp_path)),
    )
    ingest, *publishes = (with_state(file, tmp_path) for file in given)
    with User(through(server, KAFKA=broker.bootstrap, LAKE=str(lake))) as user:
        for seed in (7, 8):  # the second batch is a MERGE
            write(broker.bootstrap, "serverless_orders", list(changes(seed, keys=50, count=300)))
            assert "have no network" in user.run("ingest", ingest)
            for publish in publishes:
                assert "records out" in user.run("publish", publish)
        check_ends(user, ingest, publishes)
        said = user.run("ingest", "conf/orders.yaml", exit_code=2)
    assert "forgets the disk of its client; let `run.state` name a table" in said


def with_state(file: Path, folder: Path) -> str:
    """Write a pipeline file with `run.state` in place of `run.checkpoint` and topics of its own; return its path."""
    text = file.read_text(encoding="utf-8").replace("  checkpoint: ", f"  state: {folder}/lake/state # ")
    for name in ("topic", "sink.transactional-id-prefix"):
        text = text.replace(f"'{name}' = '", f"'{name}' = 'serverless_")
    made = folder / f"serverless_{file.name}"
    made.write_text(text.replace("../expectations", f"{ROOT}/expectations"), encoding="utf-8")
    return str(made)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_suite(server: ServerlessServer, broker: Broker) -> None:
    run_pytest(server, SUITE)
