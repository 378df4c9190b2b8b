"""A worker is checked once, before its first task, and what it lacks is named with its host."""

from __future__ import annotations

import pickle
import re
import socket
import sys

import pytest

from bridge.embedded.broker import Broker
from bridge.embedded.processes import HOST, free_port
from bridge.errors import KafkaError, MissingPackageError
from bridge.kafka.worker_check import WorkerCheck, differs, expect_reachable, expected, installed

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_worker_like_the_driver_passes_and_is_not_checked_again() -> None:
    with socket.create_server((HOST, 0)) as server:
        check = WorkerCheck(((HOST, server.getsockname()[1]),), installed(), {})
        pickle.loads(pickle.dumps(check)).once()
    check.once()


@pytest.mark.parametrize(("package", "here"), [("changelog-bridge", "0.0.9"), ("pyarrow", "9.0.0")])
def test_another_version_is_named_with_the_host(package: str, here: str) -> None:
    there = installed()[package]
    message = (
        f"{package} is {there} on the executors (host {socket.gethostname()}, {sys.executable}) and {here} in"
    )
    with pytest.raises(MissingPackageError, match=f"^{re.escape(message)} the driver: install .*`make pack`"):
        WorkerCheck((), {package: here}, {}).once()


def test_a_broker_of_the_cluster_that_is_not_reached_is_named_with_the_host(broker: Broker) -> None:
    host, port = broker.bootstrap.split(":")
    WorkerCheck(((host, int(port)),), {}, {"bootstrap.servers": broker.bootstrap}).once()
    nowhere = (HOST, free_port())
    # No broker tells which there are.
    servers = f"{HOST}:{nowhere[1]}"
    check = WorkerCheck((nowhere,), {}, {"bootstrap.servers": servers, "log_level": 0}, retry_seconds=0)
    message = f"{HOST}:{nowhere[1]} cannot be reached from Spark's executors (host {socket.gethostname()}: "
    with pytest.raises(KafkaError, match=f"^{re.escape(message)}.*refused.*advertised.listeners"):
        check.once()


def test_a_broker_that_has_left_the_cluster_is_none(broker: Broker) -> None:
    WorkerCheck(((HOST, free_port()),), {}, {"bootstrap.servers": broker.bootstrap}).once()


def test_only_clusters_of_which_executors_were_asked_are_checked() -> None:
    properties = {
        "bootstrap.servers": "b1:9092,b2:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f"{MODULE} required username='u' password='hush';",
    }
    assert expected(properties) is None
    expect_reachable(properties, [("b1", 9092)])
    check = expected(properties)
    assert check is not None and check.addresses == (("b1", 9092),)
    assert (
        check.versions == installed()
        and check.settings["sasl.password"] == "hush"
        and "hush" not in repr(check)
    )


def test_versions_that_fit() -> None:
    assert not differs("pyarrow", "19.0.1", "19.2.0") and differs("pyarrow", "18.0.1", "19.2.0")
    assert differs("changelog-bridge", "0.3.0", "0.3.1")
