"""A reader of committed records sees a shard's records once, whatever fails between shard and broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer

from bridge.embedded.broker import Broker
from bridge.errors import ConcurrentRunError, KafkaError
from bridge.kafka.producer import RecordProducer
from bridge.kafka.records import Records
from bridge.kafka.shard_state import Cursor, ShardSpec
from bridge.kafka.transactions import OffsetMetadataStore, transactional_settings
from bridge.publish_progress import PublishProgress
from tests.kafka.desk import EXPECTED, IDS, Desk
from tests.kafka.flaky import Flaky
from tests.kafka.topics import Fresh


@pytest.fixture
def desk(fresh: Fresh, broker: Broker, unique: Callable[[str], str]) -> Desk:
    topic = fresh("shard", partitions=2)
    return Desk(broker, topic, unique("tx"))


def losing(
    method: str, what: str, left: list[int] | None = None
) -> Callable[[Mapping[str, Any]], RecordProducer]:
    """Makes producers that lose `left[0]` (one) calls of `method`, all together."""
    times = [1] if left is None else left

    def client(settings: dict[str, Any]) -> Any:
        return Flaky(Producer(settings), method, what, times=times)

    def make(settings: Mapping[str, Any]) -> RecordProducer:
        return RecordProducer(settings, client=client)

    return make


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("commit_transaction", "answer"),
        ("commit_transaction", "request"),
        ("send_offsets_to_transaction", "answer"),
        ("init_transactions", "answer"),
    ],
)
def test_a_lost_request_or_response(desk: Desk, method: str, what: str) -> None:
    with desk.shard(losing(method, what, [2])) as shard:
        desk.rest(shard)
    assert desk.received() == EXPECTED
    assert (shard.counts.records, shard.cursor) == (18, Cursor(3, 0, 6))


def test_the_ledger_detects_a_repeated_transaction(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard, a shard that does not read its cursor sends a committed transaction again."""
    monkeypatch.setattr(ShardSpec, "cursor_from", lambda *_: Cursor())
    with desk.shard(losing("commit_transaction", "answer")) as shard:
        desk.rest(shard)
    received = desk.received()
    assert received != EXPECTED and received[0] == ["v1", "v1", "v2", "v3"]


def test_a_twin_of_the_same_run_in_between(desk: Desk) -> None:
    """A task's other attempt fences the shard, and sends nothing."""
    with desk.shard() as shard:
        for number, (records, upto) in enumerate(desk.adds()):
            shard.add(records, upto)
            if number == 2:
                with desk.shard() as twin:
                    assert twin.cursor == Cursor(1, 0, 6)
    assert desk.received() == EXPECTED
    assert shard.counts.records == 18


def test_a_client_that_lost_the_reason(desk: Desk) -> None:
    """As confluent-kafka does at times, when a producer is fenced while callbacks are due."""

    def muddle() -> None:
        raise SystemError("returned NULL without setting an exception")

    def client(settings: dict[str, Any]) -> Any:
        return Flaky(Producer(settings), "flush", "answer", times=left, meanwhile=muddle)

    left = [1]
    with desk.shard(lambda settings: RecordProducer(settings, client=client)) as shard:
        desk.rest(shard)
    assert desk.received() == EXPECTED


@pytest.mark.parametrize("failing_call", ["add", "commit"])
def test_a_twin_that_commits_the_same_transaction(desk: Desk, failing_call: str) -> None:
    """The shard is in the middle of a transaction that its twin has committed; it adds its last records after that."""
    adds = desk.adds()
    failing = [0]
    with desk.shard(losing("produce", "request", left=failing)) as shard:
        shard.add(*adds[0])
        with desk.shard() as twin:
            twin.add(*adds[0])
            twin.add(*adds[1])
        failing[0] = int(failing_call == "add")
        for add in adds[1:]:
            shard.add(*add)
    assert desk.received() == EXPECTED


def test_a_twin_that_went_further_ends_the_shard(desk: Desk) -> None:
    adds = desk.adds()
    shard = desk.shard()
    shard.add(*adds[0])
    with desk.shard() as twin:
        for add in adds[:3]:
            twin.add(*add)
    with pytest.raises(ConcurrentRunError, match="taken over"), shard:
        shard.add(*adds[1])
    with desk.shard() as last:
        assert last.cursor == adds[2][1]
        desk.rest(last)
    assert desk.received() == EXPECTED


def test_a_newer_run_ends_the_shard(desk: Desk) -> None:
    """The zombie sends nothing more, and leaves the younger run's shard alone."""
    with desk.control() as old:
        old.take_over()
        old.record(PublishProgress("p", "t", 0, 1))
        zombie = desk.shard(run=old.run)
        for add in desk.adds()[:3]:
            zombie.add(*add)
        with desk.control() as young:
            progress = young.take_over()
            assert progress is not None
            young.record(progress)
            heir = desk.shard(run=young.run)
            assert heir.cursor == Cursor(1, 0, 6)
            with pytest.raises(ConcurrentRunError, match="has taken over; this one has sent nothing"), zombie:
                zombie.add(*desk.adds()[3])
            with pytest.raises(ConcurrentRunError, match="taken over"):
                desk.shard(run=old.run)
            with heir:
                desk.rest(heir)
    assert desk.received() == EXPECTED
    assert heir.counts.records == 12


def test_a_shard_that_died_in_a_transaction(desk: Desk) -> None:
    dead = desk.shard()
    for add in desk.adds()[:3]:
        dead.add(*add)
    assert desk.received() == {id: ["v1"] for id in IDS}
    with desk.shard() as shard:
        desk.rest(shard)
    assert desk.received() == EXPECTED
    assert (dead.counts.records, shard.counts.records) == (6, 12)


def test_an_error_of_the_caller_aborts_the_transaction(desk: Desk) -> None:
    shard = desk.shard()
    shard.add(*desk.adds()[0])
    with pytest.raises(ZeroDivisionError), shard:
        _ = 1 / 0
    assert desk.received() == {}
    with desk.shard() as again:
        assert again.cursor == Cursor()
        desk.rest(again)
    assert desk.received() == EXPECTED


def test_a_record_that_the_broker_refuses(broker: Broker, desk: Desk, unique: Callable[[str], str]) -> None:
    desk.topic = unique("small")
    broker.create_topic(desk.topic, config={"max.message.bytes": "2000"})
    large = Records([desk.topic], [b'{"id":0}'], [b"0123456789" * 300])
    shard = desk.shard(producer={**desk.spec().producer, "compression.type": "none"})
    shard.add(*desk.adds()[0])
    message = r"small-\S+-0 did not take a record: MSG_SIZE_TOO_LARGE"
    shard.add(large, Cursor(1, 0, 4))
    with pytest.raises(KafkaError, match=message) as raised, shard:
        shard.commit()
    assert "0123456789" not in str(raised.value)
    assert desk.received() == {}


def test_a_record_that_librdkafka_refuses(desk: Desk) -> None:
    large = Records([desk.topic], [b'{"id":0}'], [b"0" * 2_000_000])
    shard = desk.shard()
    shard.add(*desk.adds()[0])
    message = r"a record of 2000008 bytes for 'shard-\S+' \(key's SHA-256 begins \w+\) is refused: MSG_SIZE_TOO_LARGE"
    with pytest.raises(KafkaError, match=message), shard:
        shard.add(large, Cursor(1, 0, 4))
    assert desk.received() == {}


def test_another_number_of_shards_in_the_middle_of_a_range(desk: Desk) -> None:
    with desk.shard() as shard:
        for add in desk.adds()[:3]:
            shard.add(*add)
    with pytest.raises(
        KafkaError, match=r"stands at version 2 with 2 shards, but version 1 is to be sent with 3"
    ):
        desk.shard(shards=3)
    with desk.shard(shards=3, first=3) as shard:  # the range after it may have any
        assert shard.cursor == Cursor(2, 0, 3)


def test_another_pipeline_file_in_the_middle_of_a_range(desk: Desk) -> None:
    """Its cursor would count other records: some would be lost, some sent again."""
    with desk.shard(plan_fingerprint="upserts") as shard:
        for add in desk.adds()[:3]:
            shard.add(*add)
    with pytest.raises(
        KafkaError, match=r"range that was begun with another pipeline file .*; run the former file"
    ):
        desk.shard(plan_fingerprint="pairs")
    with desk.shard(plan_fingerprint="upserts") as shard:
        desk.rest(shard)
    assert desk.received() == EXPECTED
    with desk.shard(plan_fingerprint="pairs", first=4) as shard:
        assert shard.cursor == Cursor(3, 0, 6)


def test_offsets_of_a_stranger(desk: Desk) -> None:
    with desk.shard():
        pass  # creates the group's coordinator
    spec = desk.spec()
    store = OffsetMetadataStore(spec.consumer, spec.group(0), spec.topics)
    stranger = Producer(transactional_settings(spec.producer, spec.group(0)))
    stranger.init_transactions(20)
    stranger.begin_transaction()
    store.write(stranger, 7, "checkpoint 7")
    stranger.commit_transaction(20)
    store.close()
    with pytest.raises(
        KafkaError, match=r"group '\S+-0' holds offsets that the bridge did not write; choose"
    ):
        desk.shard()


def test_a_transaction_ends_before_its_timeout(desk: Desk) -> None:
    settings = {**desk.spec().producer, "transaction.timeout.ms": "3000"}
    seconds = [0.0]
    with desk.shard(producer=settings, clock=lambda: seconds[0]) as shard:
        adds = desk.adds()
        shard.add(*adds[0])
        seconds[0] += 1.5
        shard.add(*adds[1])
        assert shard.cursor == adds[1][1]


@pytest.mark.parametrize("large", ["keys", "values", "headers"])
def test_a_transaction_is_bounded_whatever_makes_it_large(desk: Desk, large: str) -> None:
    """All its records stay in memory: tombstones have keys, too, and a row's headers may be its largest part."""
    much, little = [b"x" * 800], [b"1"]
    records = Records(
        [desk.topic],
        list(much if large == "keys" else little),
        list(much) if large == "values" else [None],
        headers=[[("h", much[0]), ("n", None)]] if large == "headers" else None,
    )
    with desk.shard(max_bytes=1500) as shard:
        shard.add(records, Cursor(1, 0, 1))
        assert shard.counts.records == 0
        shard.add(records, Cursor(1, 0, 2))
        assert shard.counts.records == 2


@pytest.mark.parametrize("what", ["answer", "request"])
def test_the_buffer_keeps_the_last_of_a_key_and_counts_once(desk: Desk, what: str) -> None:
    """Three versions in transactions of twelve and six records: of the first two versions the second is left."""
    make = losing("commit_transaction", what)
    with desk.shard(make, max_rows=12, buffer_rows=100, buffer_interval_ms=60_000) as shard:
        desk.rest(shard)
    assert desk.received() == {id: ["v2", "v3"] for id in IDS}
    assert shard.counts.records == 12
    assert shard.counts.bytes == 12 * len(b'{"id": 0}{"id": 0, "name": "v1"}')
