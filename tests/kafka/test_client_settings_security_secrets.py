"""Secrets of a run from the command line are neither on the screen nor on any page of Spark's user interface."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.embedded.processes import free_port
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.pipelines.publish.run import publish
from tests.kafka.certificates import PASSWORD
from tests.kafka.places import Place
from tests.pipelines.processes import CONF, Process
from tests.pipelines.world import World

TOKEN = "registry-hunter5"
_SECONDS = 90.0


@pytest.mark.slow
def test_certificate_key_and_registry_password_are_nowhere(
    spark: SparkSession,
    place: Place,
    registry: SchemaRegistryServer,
    lake: Path,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A login by certificate, whose key has its own password, and a registry that requires a user."""
    monkeypatch.setenv("STORE_PASSWORD", PASSWORD)
    monkeypatch.setenv("REGISTRY_USER", f"reader:{TOKEN}")
    world = World.make(spark, place.broker, lake, unique, partitions=1)
    world.options = {
        "properties.bootstrap.servers": place.listeners.address("SSL"),
        "properties.security.protocol": "SSL",
        "properties.ssl.truststore.type": "JKS",
        "properties.ssl.truststore.location": str(place.stores["trust JKS"]),
        "properties.ssl.truststore.password": "${env:STORE_PASSWORD}",
        "properties.ssl.keystore.type": "JKS",
        "properties.ssl.keystore.location": str(place.stores["key JKS"]),
        "properties.ssl.keystore.password": "${env:STORE_PASSWORD}",
        "properties.ssl.key.password": "${env:STORE_PASSWORD}",
        "value.format": "avro-confluent",
        "value.avro-confluent.url": registry.url,
        "value.avro-confluent.basic-auth.credentials-source": "USER_INFO",
        "value.avro-confluent.basic-auth.user-info": "${env:REGISTRY_USER}",
    }
    world.create_table()
    spark.sql(f"INSERT INTO delta.`{lake}/table` VALUES (7, 'x', 1)")
    assert publish(spark, world.definition()).records_out == 1

    world.sections = "ingest: {reader: spark}\n"
    world.definition("reading", run={"checkpoint": "reading", "trigger": "200 ms"})
    port = free_port()
    conf = (*CONF, "spark.ui.enabled=true", f"spark.ui.port={port}", "spark.ui.port.maxRetries=0")
    with Process("ingest", lake / "reading.yaml", lake.parent / "process", conf=conf) as process:
        pages = {where: text for where, text in _pages(port, process)}
        process.signal_leader(signal.SIGTERM)
        assert process.ended(60) == 0, process.output
    places = {"what it said": process.output, **pages}
    places |= {str(f): f.read_bytes().decode("latin-1") for f in lake.rglob("*") if f.is_file()}
    assert not {where for where, text in places.items() for word in (PASSWORD, TOKEN) if word in text}
    assert any("kafka" in text.lower() for text in pages.values())


def _pages(port: int, process: Process) -> Iterator[tuple[str, str]]:
    """Every page of the REST interface, once a batch has been applied, and the HTML of the environment."""
    root = f"http://127.0.0.1:{port}"
    applications = f"{root}/api/v1/applications"
    deadline = time.monotonic() + _SECONDS
    while True:
        assert time.monotonic() < deadline and process.code is None, process.output
        try:
            (application,) = json.loads(_read(applications))
            done = json.loads(_read(f"{applications}/{application['id']}/sql?details=true&length=1000"))
            if any("kafka" in str(query).lower() and query["status"] == "COMPLETED" for query in done):
                break
        except (OSError, ValueError):  # not up yet, or Spark is starting up, as a page of its says
            pass
        time.sleep(0.2)
    for page in ("environment", "sql?details=true&length=1000", "jobs", "stages", "allexecutors"):
        yield page, _read(f"{applications}/{application['id']}/{page}")
    for page in ("environment/", "SQL/", "StreamingQuery/"):
        yield page, _read(f"{root}/{page}")


def _read(url: str) -> Any:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=10) as answer:
        return answer.read().decode()
