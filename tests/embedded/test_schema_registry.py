"""The registry as a process; what clients do with it is tested with avro-confluent."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import pytest

from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import KafkaError


def test_it_answers_and_keeps_a_small_log(registry: SchemaRegistryServer) -> None:
    with urllib.request.urlopen(f"{registry.url}/subjects", timeout=5) as answer:
        assert answer.status == 200
    assert registry.running and registry.pid is not None and registry.start() is registry
    assert registry.log.stat().st_size < 100_000


def test_there_is_no_address_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="no address before it is started"):
        _ = SchemaRegistryServer(tmp_path).url


def test_a_taken_port_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(KafkaError, match=f"cannot have port {port} on 127.0.0.1: it is in use"):
            SchemaRegistryServer(tmp_path, port=port).start()


def test_a_server_that_does_not_start_is_an_error_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match=r"ended with code .* while starting: .*[Hh]eap") as failed:
        SchemaRegistryServer(tmp_path, heap_mb=1).start()
    assert str(tmp_path / "registry.log") in str(failed.value)
