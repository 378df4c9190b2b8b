"""Only the newest Control of a prefix can record progress, and the next one reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from bridge.definition import Topic
from bridge.embedded.broker import Broker
from bridge.errors import ConcurrentRunError, DefinitionError, KafkaError
from bridge.kafka.control import Control
from bridge.kafka.transactions import OffsetMetadataStore, consumer_settings
from bridge.publish_progress import PublishProgress, PublishRange
from tests.kafka.flaky import Flaky
from tests.kafka.topics import topic_of

BEGUN = PublishProgress("p", "table", 3, 1).opened(PublishRange(4, 5, shards=2))
DONE = replace(BEGUN.closed(), batch=2)


class LossyControl(Control):
    """A Control whose next commit can be lost; tests know its topic and prefix."""

    def __init__(self, topic: Topic, prefix: str, pipeline: str) -> None:
        self.topic, self.prefix = topic, prefix
        self.flaky: Flaky | None = None
        super().__init__(topic, prefix, pipeline, client=self._flaky_client)

    def _flaky_client(self, settings: dict[str, Any]) -> Any:
        self.flaky = Flaky(Producer(settings), "commit_transaction", "answer", times=[0])
        return self.flaky

    def lose_commit(self, losing: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Lose the next commit; only after take_over()."""
        assert self.flaky is not None
        self.flaky.times[0], self.flaky.losing, self.flaky.meanwhile = 1, losing, meanwhile


Make = Callable[..., LossyControl]


@pytest.fixture
def make(broker: Broker, unique: Callable[[str], str]) -> Iterator[Make]:
    """Controls of one prefix, over a topic of its own (or the `topics` named)."""
    topic, prefix = unique("control"), unique("tx")
    broker.create_topic(topic)
    with ExitStack() as stack:

        def made(pipeline: str = "p", *, topics: tuple[str, ...] = (), **options: str) -> LossyControl:
            properties = {name.replace("_", "."): value for name, value in options.items()}
            definition = topic_of(*(topics or (topic,)), servers=broker.bootstrap, properties=properties)
            control = LossyControl(definition, prefix, pipeline)
            stack.enter_context(control)
            return control

        yield made


def test_the_next_run_finds_what_was_recorded(make: Make) -> None:
    first = make()
    assert first.take_over() is None
    assert first.record(BEGUN) == replace(BEGUN, run=first.run)
    assert first.record(DONE).run == first.run
    assert make().take_over() == replace(DONE, run=first.run)


def test_only_the_newest_records(make: Make) -> None:
    """As soon as it has begun, and for good; nothing of the older one's is there."""
    old, young = make(), make()
    old.take_over()
    old.record(BEGUN)
    young.take_over()
    with pytest.raises(
        ConcurrentRunError, match=r"publishes with 'sink.transactional-id-prefix' = 'tx-\S+' and has"
    ):
        old.record(DONE)
    young.record(replace(BEGUN, batch=7))
    assert make().take_over() == replace(BEGUN, batch=7, run=young.run)


@pytest.mark.parametrize("losing", ["answer", "request"])
def test_a_lost_commit_request_or_response(make: Make, losing: str) -> None:
    control = make()
    control.take_over()
    control.record(BEGUN)
    control.lose_commit(losing)
    control.record(DONE)
    control.record(replace(DONE, batch=3))
    assert make().take_over() == replace(DONE, batch=3, run=control.run)


@pytest.mark.parametrize("losing", ["answer", "request"])
def test_a_zombie_without_a_response_records_nothing(make: Make, losing: str) -> None:
    """Stopped within its commit, it wakes to a timeout, which does not say that another has taken over."""
    zombie, heir = make(), make()
    zombie.take_over()
    zombie.record(BEGUN)

    def inherit() -> None:
        progress = heir.take_over()
        assert progress is not None
        heir.record(replace(progress, batch=8))

    zombie.lose_commit(losing, inherit)
    with pytest.raises(ConcurrentRunError, match="taken over"):
        zombie.record(DONE)
    heir.record(replace(DONE, batch=9))
    assert make().take_over() == replace(DONE, batch=9, run=heir.run)


def shard_offset_metadata(control: LossyControl, number: int) -> list[str]:
    """Return the offset metadata in a shard's group."""
    group, topic = f"{control.prefix}-{number}", control.topic
    store = OffsetMetadataStore(consumer_settings(topic.properties), group, topic.names)
    try:
        return store.read()
    finally:
        store.close()


@pytest.mark.parametrize("losing", [None, "answer", "request"])
def test_cursors_are_recorded_with_the_progress(make: Make, losing: str | None) -> None:
    """Both are there or neither; the next record leaves them as they are."""
    control = make()
    control.take_over()
    if losing:
        control.lose_commit(losing)
    control.record(BEGUN, {f"{control.prefix}-{n}": f"shard {n}" for n in (0, 7)})
    assert (
        shard_offset_metadata(control, 0),
        shard_offset_metadata(control, 1),
        shard_offset_metadata(control, 7),
    ) == (["shard 0"], [], ["shard 7"])
    control.record(DONE, {f"{control.prefix}-1": "new"})
    control.record(DONE)
    assert (shard_offset_metadata(control, 0), shard_offset_metadata(control, 1)) == (["shard 0"], ["new"])


@pytest.mark.parametrize("losing", [None, "answer", "request"])
def test_a_zombie_resets_no_shard(make: Make, losing: str | None) -> None:
    """The cursors that its heir's shards have recorded by then stay."""
    zombie, heir = make(), make()
    shard = f"{zombie.prefix}-0"
    zombie.take_over()
    zombie.record(BEGUN, {shard: "zombie's"})

    def inherit() -> None:
        heir.take_over()
        heir.record(replace(BEGUN, batch=8), {shard: "heir's"})

    if losing:
        zombie.lose_commit(losing, inherit)
    else:
        inherit()
    with pytest.raises(ConcurrentRunError, match="taken over"):
        zombie.record(DONE, {shard: "zombie's again"})
    assert shard_offset_metadata(heir, 0) == ["heir's"]


def test_a_prefix_of_another_pipeline(make: Make) -> None:
    control = make()
    control.take_over()
    control.record(BEGUN)
    with pytest.raises(
        DefinitionError, match=r"'tx-\S+' belongs to pipeline 'p'; give each pipeline a prefix"
    ):
        make("q").take_over()


def test_offsets_of_a_stranger(make: Make, broker: Broker) -> None:
    control = make()
    group, topic = control.prefix, control.topic.names[0]
    stranger = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    stranger.commit(offsets=[TopicPartition(topic, 0, 7, "checkpoint 7")], asynchronous=False)
    stranger.close()
    with pytest.raises(
        KafkaError, match=r"holds offsets that this version of the bridge did not write .*; choose"
    ):
        control.take_over()


def test_the_furthest_progress_counts(make: Make, broker: Broker, unique: Callable[[str], str]) -> None:
    """A sink to several topics records under the first; the next statement may name them in another order."""
    one, two = unique("one"), unique("two")
    broker.create_topic(one)
    broker.create_topic(two)
    control = make(topics=(one, two))
    control.take_over()
    control.record(BEGUN)
    control = make(topics=(two, one))
    assert control.take_over() is not None
    control.record(DONE)
    for topics in ((one, two), (two, one)):
        progress = make(topics=topics).take_over()
        assert progress is not None and progress.batch == DONE.batch


def test_a_timeout_that_the_broker_does_not_allow(make: Make) -> None:
    with pytest.raises(
        DefinitionError, match=r"'properties\.transaction\.timeout\.ms' = 3600000 is more than the br"
    ):
        make(transaction_timeout_ms="3600000").take_over()


def test_acks_that_transactions_cannot_have(make: Make) -> None:
    with pytest.raises(KafkaError, match=r"needs 'properties\.acks' = 'all'"):
        make(acks="1")


def test_a_recovery_that_would_wait_forever(make: Make) -> None:
    with pytest.raises(KafkaError, match=r"needs 'properties\.metadata\.recovery\.strategy' = 'none'"):
        make(metadata_recovery_strategy="rebootstrap")
