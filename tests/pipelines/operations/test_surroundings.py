"""What surrounds a pipeline is found broken before a run meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.bridge_folders import lease_file
from bridge.definition import DeltaTarget
from bridge.embedded.broker import Broker
from bridge.errors import DefinitionError, KafkaError
from bridge.lease_owner import current_process, start_time
from bridge.log_store import LOG_STORES
from bridge.pipelines.operations import surroundings
from bridge.pipelines.operations.surroundings import Outcome
from bridge.session import session_settings
from tests.pipelines.world import Make, World, upsert

ONCE = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "p"}
EXPECTATIONS = [{"type": "expect_key_to_be_unique", "kwargs": {"column_list": ["id"]}}]
FINE, WARNING, FAILS = Outcome.FINE, Outcome.WARNING, Outcome.FAILS


@pytest.fixture
def world(make: Make) -> World:
    return make(partitions=1)


def test_a_registry_that_does_not_answer(world: World) -> None:
    world.options = {"value.format": "avro-confluent", "value.avro-confluent.url": "http://127.0.0.1:1"}
    with pytest.raises(KafkaError, match=r"127\.0\.0\.1:1"):
        list(surroundings.registries(world.definition()))
    world.options = {}
    assert list(surroundings.registries(world.definition())) == []


def test_a_transaction_that_no_broker_allows(world: World) -> None:
    world.options = {**ONCE, "properties.transaction.timeout.ms": "3600000"}
    (found,) = surroundings.transactions(world.definition(), timeout=10)
    assert found[0] is FAILS
    assert "'properties.transaction.timeout.ms' = 3,600,000 is more than the brokers allow" in found[1]
    world.options = dict(ONCE)
    (found,) = surroundings.transactions(world.definition(), timeout=10)
    assert found[0] is FINE and "transaction.max.timeout.ms=" in found[1]
    world.options = {}
    assert list(surroundings.transactions(world.definition(), timeout=10)) == []


@pytest.mark.slow
def test_brokers_that_forget(world: World, tmp_path: Path) -> None:
    settings = {
        "offsets.retention.minutes": "60",
        "transactional.id.expiration.ms": "60000",
        "transaction.state.log.min.isr": "2",
        "transaction.state.log.replication.factor": "3",
    }
    with Broker(tmp_path / "forgetful", settings=settings) as forgetful:
        world.options = {**ONCE, "properties.bootstrap.servers": forgetful.bootstrap}
        found = list(surroundings.transactions(world.definition(), timeout=10))
    assert [outcome for outcome, _ in found] == [WARNING, WARNING, FAILS, FAILS]
    progress, ids, factor, isr = (text for _, text in found)
    assert progress.startswith("Kafka forgets the progress of a publish that stops for 60 minutes")
    assert ids.startswith("transactional ids expire after 60 s")
    assert factor.startswith("transaction.state.log.replication.factor=3, and there are 1 brokers")
    assert isr.startswith("transaction.state.log.min.isr=2, and there are 1 brokers")


def test_a_clock_that_is_ahead(world: World) -> None:
    def found() -> tuple[Outcome, str]:
        (one,) = surroundings.clock(world.definition(), [world.topic], timeout=10)
        return one

    assert found()[0] is FINE
    world.send([upsert(1, "a")])
    assert found()[0] is FINE
    world.send([upsert(1, "b")], timestamp=round(time.time() * 1000) + 1_800_000)
    outcome, text = found()
    assert outcome is WARNING and re.search(r"is 1,[78]\d\d s ahead .*NTP", text)


@pytest.fixture
def other_process() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process.pid
        process.kill()


def test_another_run(world: World, other_process: int) -> None:
    definition = world.definition()
    file = Path(lease_file(definition.run.checkpoint, "ingest"))
    file.parent.mkdir(parents=True, exist_ok=True)

    def found() -> tuple[Outcome, str]:
        (one,) = surroundings.lease(world.spark, definition, sends=False)
        return one

    assert found() == (FINE, "no other run is at work")
    own = current_process("orders", "ingest", "r", since="then", every=2.0)
    theirs = replace(own, pid=other_process, started=start_time(other_process) or "")
    file.write_text(theirs.to_json())
    assert found()[0] is WARNING and found()[1].startswith("another run is at work, `ingest` of 'orders'")
    file.write_text(replace(own, host="elsewhere").to_json())
    assert found()[0] is WARNING and found()[1].startswith("another run may be at work")
    file.write_text(replace(theirs, released=True).to_json())
    assert found()[0] is FINE


def test_writers_on_s3_that_do_not_exclude_each_other(world: World) -> None:
    definition = world.definition()
    assert list(surroundings.log_store(world.spark, definition)) == []
    on_s3 = replace(definition, delta=DeltaTarget(path="s3a://bucket/table"))
    key = "spark.delta.logStore.s3a.impl"
    with session_settings(world.spark, {key: LOG_STORES["s3a"]}):
        assert [outcome for outcome, _ in surroundings.log_store(world.spark, on_s3)] == [FINE]
    with session_settings(world.spark, {key: "io.delta.storage.S3SingleDriverLogStore"}):
        (found,) = surroundings.log_store(world.spark, on_s3)
    assert found[0] is WARNING and "two writers may commit the same version" in found[1]


@pytest.mark.versions
def test_memory(spark: SparkSession, tmp_path: Path) -> None:
    assert [outcome for outcome, _ in surroundings.memory(spark, tmp_path / "no limit")] == [FINE]
    limit = tmp_path / "memory.max"
    limit.write_text(str(100 << 20))
    (found,) = surroundings.memory(spark, limit)
    assert found[0] is WARNING and "and 100 MiB are there: the kernel may end it" in found[1]
    limit.write_text("max")
    assert [outcome for outcome, _ in surroundings.memory(spark, limit)] == [FINE]


def test_a_suite_that_cannot_be_read(world: World) -> None:
    suite = world.folder / "suite.json"
    world.sections = "quality: {suite: suite.json}\n"
    with pytest.raises(DefinitionError, match=r"suite\.json"):
        list(surroundings.quality(world.definition()))
    suite.write_text(json.dumps({"name": "s", "expectations": EXPECTATIONS, "meta": {}}))
    assert [outcome for outcome, _ in surroundings.quality(world.definition())] == [FINE]
