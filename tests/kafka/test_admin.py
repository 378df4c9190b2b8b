"""

The release of a broker, by the requests that it takes. tests/embedded/test_broker_versions.py asks older ones.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from bridge.definition import Bounded, Startup, Topic
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError, OptionError, TopicMissingError
from bridge.jars import KAFKA_BROKER
from bridge.kafka import admin
from bridge.kafka.admin import broker_version
from bridge.kafka.group_offsets import ConsumerGroup
from bridge.offsets import Offsets
from bridge.secret import Secret
from tests.kafka.topics import Fresh, Unique, send, topic_of, transaction


@pytest.fixture(scope="module")
def filled(broker: Broker) -> str:
    """A topic of two partitions: partition 0 has three records with timestamps 1000, 2000, 3000."""
    name = "admin-filled"
    broker.create_topic(name, partitions=2)
    for at in (1000, 2000, 3000):
        send(broker.bootstrap, name, [(b"k", b"v")], partition=0, timestamp=at)
    return name


def _at(name: str, first: int, second: int) -> Offsets:
    return Offsets({(name, 0): first, (name, 1): second})


def test_describe_names_all_partitions_of_all_topics(fresh: Fresh, broker: Broker, filled: str) -> None:
    other = fresh("other")
    state = admin.describe(topic_of(filled, other, servers=broker.bootstrap))
    assert state.earliest == Offsets({(filled, 0): 0, (filled, 1): 0, (other, 0): 0})
    assert state.end == Offsets({(filled, 0): 3, (filled, 1): 0, (other, 0): 0})
    assert set(state.ids) == {filled, other}
    assert state.ids[filled] != state.ids[other]


def test_the_end_is_what_committed_readers_see(fresh: Fresh, broker: Broker) -> None:
    """An open transaction is after the end, unless the definition reads uncommitted."""
    name = fresh("open")
    transaction(broker.bootstrap, name, [b"1"], commit=True)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{name}-open"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(name, b"2", b"k")
    assert producer.flush(20) == 0
    topic = topic_of(name, servers=broker.bootstrap)
    loose = topic_of(name, servers=broker.bootstrap, properties={"isolation.level": "read_uncommitted"})
    assert admin.describe(topic).end == Offsets({(name, 0): 2})
    assert admin.describe(loose).end == Offsets({(name, 0): 3})
    producer.abort_transaction(20)


def test_a_missing_topic_is_an_error_with_the_command_to_create_it(broker: Broker) -> None:
    topic = topic_of("nowhere", servers=broker.bootstrap)
    with pytest.raises(TopicMissingError) as missing:
        admin.describe(topic)
    assert str(missing.value) == (
        f"topic 'nowhere' does not exist on {broker.bootstrap}; create it with `bridge topics FILE --create`, which "
        "compacts the topics of upsert-kafka tables (a publish creates it if the pipeline file has topic.create)"
    )


def test_an_unreachable_broker_is_an_error_in_time() -> None:
    started = time.monotonic()
    with pytest.raises(KafkaError, match=r"no answer from 127\.0\.0\.1:9 within 2 s") as failed:
        admin.describe(topic_of("t", servers="127.0.0.1:9"), timeout=2)
    assert time.monotonic() - started < 5
    assert "'properties.bootstrap.servers'" in str(failed.value)
    assert "Connection refused" in str(failed.value)


def test_a_failed_login_is_no_timeout(broker: Broker) -> None:
    """A broker without SASL refuses the handshake: an error at once, as a login, without the password."""
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='hunter2';"
    sasl = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": Secret(jaas),
    }
    started = time.monotonic()
    with pytest.raises(KafkaError, match=r"refuses the login .*_AUTHENTICATION") as failed:
        admin.describe(topic_of("t", servers=broker.bootstrap, properties=sasl))
    assert time.monotonic() - started < 5
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize(
    ("startup", "first", "second"),
    [
        (Startup("earliest-offset"), 0, 0),
        (Startup("latest-offset"), 3, 0),
        (Startup("timestamp", timestamp_ms=1500), 1, 0),
        (Startup("timestamp", timestamp_ms=2000), 1, 0),
        (Startup("timestamp", timestamp_ms=9000), 3, 0),
        (Startup("specific-offsets", offsets=Offsets({("admin-filled", 0): 2})), 2, 0),
    ],
)
def test_startup_modes(broker: Broker, filled: str, startup: Startup, first: int, second: int) -> None:
    topic = topic_of(filled, servers=broker.bootstrap, startup=startup)
    assert admin.start_offsets(topic, admin.describe(topic)) == _at(filled, first, second)


@pytest.mark.parametrize(
    ("bounded", "end"),
    [
        (Bounded("unbounded"), None),
        (Bounded("latest-offset"), (3, 0)),
        (Bounded("timestamp", timestamp_ms=2000), (1, 0)),
        (Bounded("timestamp", timestamp_ms=9000), (3, 0)),
        (Bounded("specific-offsets", offsets=Offsets({("admin-filled", 0): 2})), (2, 0)),
        (Bounded("specific-offsets", offsets=Offsets({("admin-filled", 1): 7})), (0, 7)),
    ],
)
def test_bounded_modes(broker: Broker, filled: str, bounded: Bounded, end: tuple[int, int] | None) -> None:
    """A partition that specific-offsets leaves out ends where it begins."""
    topic = topic_of(filled, servers=broker.bootstrap, bounded=bounded)
    ends = admin.end_offsets(topic, admin.describe(topic))
    assert ends == (None if end is None else _at(filled, *end))


def commit(topic: Topic, offsets: Offsets) -> None:
    with closing(ConsumerGroup(topic)) as group:
        group.commit(offsets)
        group.check_commits(10)


def test_group_offsets_start_and_end(broker: Broker, unique: Unique, filled: str) -> None:
    """Committed offsets decide; a partition without one goes by auto.offset.reset (default: latest)."""

    def topic(**more: str) -> Topic:
        properties = {"group.id": group, **{k.replace("_", "."): v for k, v in more.items()}}
        startup, bounded = Startup("group-offsets"), Bounded("group-offsets")
        servers = broker.bootstrap
        return topic_of(filled, servers=servers, properties=properties, startup=startup, bounded=bounded)

    group = unique("group")
    state = admin.describe(topic())
    commit(topic(), Offsets({(filled, 0): 2}))
    assert admin.start_offsets(topic(auto_offset_reset="earliest"), state) == _at(filled, 2, 0)
    assert admin.start_offsets(topic(auto_offset_reset="latest"), state) == _at(filled, 2, 0)
    kafka = replace(topic(), connector="kafka")
    assert admin.start_offsets(kafka, state) == _at(filled, 2, 0)
    assert admin.start_offsets(replace(kafka, startup=Startup("group-offsets")), state) == _at(filled, 2, 0)
    for strict in (topic(), replace(topic(auto_offset_reset="none"), connector="kafka")):
        with pytest.raises(KafkaError, match=f"committed no offset for {filled}-1"):
            admin.start_offsets(strict, state)
    with pytest.raises(KafkaError, match=f"committed no offset for {filled}-1"):
        admin.end_offsets(topic(), state)
    with pytest.raises(OptionError, match=r"'never' is not legal; .* accepts one of earliest, latest, none"):
        admin.start_offsets(topic(auto_offset_reset="never"), state)
    commit(topic(), Offsets({(filled, 1): 0}))
    assert admin.end_offsets(topic(), state) == _at(filled, 2, 0)


@pytest.mark.parametrize(
    ("startup", "message"),
    [
        (Startup("group-offsets"), "has committed no offset for admin-filled-0, admin-filled-1"),
        (Startup("timestamp"), "needs 'scan.startup.timestamp-millis'"),
        (Startup("sometime"), "legal: earliest-offset"),
        (Startup("specific-offsets", offsets=Offsets({("admin-filled", 0): 4})), "legal is 0 to 3"),
        (Startup("specific-offsets", offsets=Offsets({("admin-filled", 5): 0})), "has 2 partitions"),
    ],
)
def test_impossible_starts_are_refused(broker: Broker, filled: str, startup: Startup, message: str) -> None:
    topic = topic_of(filled, servers=broker.bootstrap, startup=startup)
    with pytest.raises((KafkaError, OptionError), match=message):
        admin.start_offsets(topic, admin.describe(topic))


def test_ensure_topic_creates_once(broker: Broker, unique: Unique) -> None:
    name, properties = unique("made"), {"bootstrap.servers": broker.bootstrap}
    assert admin.ensure_topic(properties, name, 3, {"cleanup.policy": "compact"})
    assert not admin.ensure_topic(properties, name, 1)
    assert len(admin.describe(topic_of(name, servers=broker.bootstrap)).end) == 3
    with pytest.raises(KafkaError, match=r"'made/bad'.*TOPIC_EXCEPTION"):
        admin.ensure_topic(properties, "made/bad")


def test_the_broker_of_the_tests(broker: Broker) -> None:
    found = broker_version({"bootstrap.servers": broker.bootstrap}, timeout=10)
    assert found == tuple(int(part) for part in KAFKA_BROKER.split(".")[:2])


def test_a_broker_that_does_not_answer() -> None:
    assert broker_version({"bootstrap.servers": "127.0.0.1:1"}, timeout=0.5) is None
