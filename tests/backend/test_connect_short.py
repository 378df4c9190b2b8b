"""The short form of `make test-connect`, in the default run: a client process goes round through Spark Connect.

Its server is in the JVM of the other tests, which is warm: one of its own would take most of a minute to load classes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from bridge.embedded.processes import HOST, free_port
from tests.backend.test_connect_server import ROOT, through
from tests.kafka.topics import Fresh


@dataclass(frozen=True)
class Server:
    remote: str


@pytest.fixture
def server(spark: SparkSession) -> Iterator[Server]:
    jvm: Any = spark._jvm
    port, conf = free_port(), jvm.org.apache.spark.SparkEnv.get().conf()
    conf.set("spark.connect.grpc.binding.address", HOST).set("spark.connect.grpc.binding.port", str(port))
    service = jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.start(spark.sparkContext._jsc.sc())
    yield Server(f"sc://{HOST}:{port}")
    service.stop(jvm.scala.Option.empty(), jvm.scala.Option.empty())


def test_a_round_trip(server: Server, broker: Broker, fresh: Fresh, tmp_path: Path) -> None:
    topics = {name: fresh(name, config={"cleanup.policy": "compact"}) for name in ("orders", "orders_out")}
    files = [tmp_path / "orders.yaml", tmp_path / "orders_publish.yaml"]
    for file in files:
        text = (ROOT / "conf" / file.name).read_text(encoding="utf-8")
        for name, topic in topics.items():
            text = text.replace(f"'topic' = '{name}'", f"'topic' = '{topic}'")
        file.write_text(text, encoding="utf-8")
    write(broker.bootstrap, topics["orders"], list(changes(7, keys=20, count=60)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.backend.round_trip", *map(str, files)],
        cwd=ROOT,
        env=through(server, KAFKA=broker.bootstrap, LAKE=str(tmp_path / "lake")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["records"][0] == 60 and 0 < found["records"][1] <= 20
    assert len(set(found["sums"])) == 1 and "differs" not in found["sums"]
