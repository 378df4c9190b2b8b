"""Exactly-once: what a reader of committed records reads, whatever happened to the runs that wrote them."""

from __future__ import annotations

import shutil

import pytest
from confluent_kafka import Producer

from bridge.errors import ConcurrentRunError, DefinitionError
from bridge.pipelines.publish.run import publish
from tests.ledger import committed
from tests.pipelines.processes import Arm, Prepare

pytestmark = pytest.mark.usefixtures("small_arrow_batches")


def test_every_change_once_and_in_order(prepare: Prepare) -> None:
    world, ledger = prepare()
    ledger.insert(range(100), "a")
    assert publish(world.spark, world.definition()).records_out == 100
    ledger.update(range(50), "b")
    ledger.delete(range(20, 30))
    ledger.insert(range(20, 25), "c")
    ledger.move(range(80, 90), 1000)
    done = publish(world.spark, world.definition())
    assert (done.records_out, done.tombstones) == (50 + 10 + 5 + 20, 10 + 10)
    ledger.check(world.broker.bootstrap, world.topic)
    assert publish(world.spark, world.definition()).batches == 0


@pytest.mark.parametrize(
    ("place", "action"),
    [
        ("shard.before-commit", "kill after 2"),
        pytest.param("shard.after-commit", "kill after 2", marks=pytest.mark.slow),
        pytest.param("publish.opened", "raise", marks=pytest.mark.slow),
        pytest.param("publish.sent", "raise", marks=pytest.mark.slow),
    ],
)
def test_whoever_dies_where(prepare: Prepare, arm: Arm, place: str, action: str) -> None:
    """A worker is killed as by kill -9, or the driver ends; the run after it goes on, with other shards."""
    world, ledger = prepare()
    ledger.insert(range(100), "a")
    hit = arm(place, action)
    with pytest.raises(Exception, match=r"failpoint|crashed|exited unexpectedly"):
        publish(world.spark, world.definition())
    assert hit.exists()
    if place == "shard.after-commit":
        assert 0 < sum(map(len, committed(world.broker.bootstrap, world.topic).values())) < 100
    ledger.update(range(50), "b")
    world.options = {**world.options, "sink.parallelism": "2"}
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.parametrize("place", ["publish.logged", pytest.param("publish.opened", marks=pytest.mark.slow)])
def test_a_first_run_that_dies_while_it_begins(prepare: Prepare, arm: Arm, place: str) -> None:
    """The log has the range and Kafka does not have it yet: this is not progress that Kafka has lost."""
    world, ledger = prepare()
    ledger.insert(range(20), "a")
    arm(place, "raise")
    with pytest.raises(RuntimeError, match="failpoint"):
        publish(world.spark, world.definition())
    assert publish(world.spark, world.definition()).records_out == 20
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_changed_primary_keys_are_one_transaction(prepare: Prepare, arm: Arm) -> None:
    """All of them or none: a run that dies before the commit leaves neither tombstones nor records."""
    world, ledger = prepare()
    ledger.insert(range(9), "a")
    publish(world.spark, world.definition())
    before = committed(world.broker.bootstrap, world.topic)
    world.sections = "publish: {transaction-rows: 1000}\n"
    ledger.move(range(9), 100)
    arm("shard.before-commit", "kill")
    with pytest.raises(Exception, match=r"crashed|exited unexpectedly"):
        publish(world.spark, world.definition())
    assert committed(world.broker.bootstrap, world.topic) == before
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_a_lost_checkpoint_is_no_loss(prepare: Prepare) -> None:
    world, ledger = prepare()
    ledger.insert(range(30), "a")
    publish(world.spark, world.definition())
    shutil.rmtree(world.folder / "checkpoint")
    ledger.update(range(10), "b")
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_a_younger_run_ends_an_older_one(prepare: Prepare) -> None:
    """The older run is between two batches: its next record of progress is refused."""
    world, ledger = prepare()
    ledger.insert(range(10), "a")
    definition = world.definition()

    def overtake(_: object) -> None:
        ledger.update(range(5), "b")
        publish(world.spark, definition)
        ledger.update(range(5), "c")

    with pytest.raises(ConcurrentRunError, match=r"(taken over|recorded in .* by another run)"):
        publish(world.spark, definition, listener=overtake)
    publish(world.spark, definition)
    ledger.check(world.broker.bootstrap, world.topic)


def test_a_prefix_belongs_to_one_pipeline(prepare: Prepare) -> None:
    world, ledger = prepare()
    ledger.insert(range(3), "a")
    publish(world.spark, world.definition())
    with pytest.raises(
        DefinitionError, match=r"belongs to pipeline 'orders'; give each pipeline a prefix of its own"
    ):
        publish(world.spark, world.definition("others", run={"checkpoint": "elsewhere"}))


def test_a_timeout_that_the_broker_does_not_allow(prepare: Prepare) -> None:
    world, ledger = prepare(**{"properties.transaction.timeout.ms": "3600000"})
    ledger.insert(range(3), "a")
    with pytest.raises(DefinitionError, match=r"3600000 is more than the broker's transaction.max.timeout"):
        publish(world.spark, world.definition())


@pytest.mark.slow
def test_an_aborted_record_is_sent_again_not_lost(prepare: Prepare) -> None:
    """Another producer with the shard's id fences it between two runs; its open transaction is aborted."""
    world, ledger = prepare()
    ledger.insert(range(20), "a")
    publish(world.spark, world.definition())
    other = Producer(
        {
            "bootstrap.servers": world.broker.bootstrap,
            "transactional.id": f"{world.options['sink.transactional-id-prefix']}-0",
        }
    )
    other.init_transactions(10)
    other.begin_transaction()
    other.produce(world.topic, key=b'{"id":1}', value=b'{"id":1,"name":"other"}')
    other.flush(10)
    ledger.update(range(20), "b")
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_a_publish_continues_with_another_guarantee(prepare: Prepare) -> None:
    world, ledger = prepare()
    ledger.insert(range(10), "a")
    exactly = world.options
    for guarantee in ("at-least-once", "exactly-once", "at-least-once"):
        world.options = {**exactly, "sink.delivery-guarantee": guarantee}
        publish(world.spark, world.definition())
        ledger.update(range(5), guarantee)
    world.options = exactly
    publish(world.spark, world.definition())
    ledger.check(world.broker.bootstrap, world.topic)


@pytest.mark.slow
def test_the_buffer_keeps_the_last_change_of_a_transaction(prepare: Prepare) -> None:
    world, ledger = prepare(**{"sink.buffer-flush.max-rows": "1000", "sink.buffer-flush.interval": "1 min"})
    world.sections = "publish: {start: 'version:1'}\n"
    ledger.insert(range(10), "a")
    ledger.update(range(10), "b")
    ledger.update(range(10), "c")
    done = publish(world.spark, world.definition())
    assert done.records_out == 10
    assert committed(world.broker.bootstrap, world.topic) == {id: ["c"] for id in range(10)}
