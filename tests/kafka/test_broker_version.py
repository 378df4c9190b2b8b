"""The release of a broker, by the requests that it takes. tests/embedded/test_broker_versions.py asks older ones."""

from __future__ import annotations

from bridge.embedded.broker import Broker
from bridge.jars import KAFKA_BROKER
from bridge.kafka.broker_version import broker_version


def test_the_broker_of_the_tests(broker: Broker) -> None:
    found = broker_version({"bootstrap.servers": broker.bootstrap}, timeout=10)
    assert found == tuple(int(part) for part in KAFKA_BROKER.split(".")[:2])


def test_a_broker_that_does_not_answer() -> None:
    assert broker_version({"bootstrap.servers": "127.0.0.1:1"}, timeout=0.5) is None
