"""Transactions that a plain producer has left open: seen, and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException, Producer
from pyspark.sql import SparkSession

from bridge.backend.connect import ConnectBackend
from bridge.definition import DeliveryGuarantee, Sink, Topic
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError, OptionError, UnsupportedError
from bridge.kafka import admin_transactions
from tests.kafka.topics import Unique, send, topic_of
from tests.reader import messages


@pytest.fixture
def begun(broker: Broker) -> Iterator[Callable[[str, str], Producer]]:
    """Opens a transaction of an id and writes one record to a topic, partition 0."""
    producers: list[Producer] = []

    def begin(id: str, topic: str) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": id,
                "transaction.timeout.ms": 600_000,
                "log_level": 0,
            }
        )
        producers.append(producer)
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(topic, b"open", b"k", partition=0)
        assert producer.flush(20) == 0
        return producer

    yield begin
    for producer in producers:
        producer.purge()


def _topic(broker: Broker, name: str, prefix: str) -> Topic:
    sink = Sink(DeliveryGuarantee.EXACTLY_ONCE, transactional_id_prefix=prefix)
    return topic_of(name, servers=broker.bootstrap, sink=sink)


def test_an_open_transaction_is_listed_and_ended(
    spark: SparkSession, broker: Broker, unique: Unique, begun: Callable[[str, str], Producer]
) -> None:
    name, prefix = unique("open"), unique("prefix")
    broker.create_topic(name, partitions=2)
    topic = _topic(broker, name, prefix)
    assert admin_transactions.list_transactions(spark, topic) == []
    begun(prefix, name).commit_transaction(20)
    producer = begun(f"{prefix}-12", name)
    begun(f"{prefix}-0-7", name)  # as Flink names them
    begun(f"{prefix}2", name)  # another pipeline's
    send(broker.bootstrap, name, [(b"k", b"after")], partition=0)
    mine = {t.id: t for t in admin_transactions.list_transactions(spark, topic)}
    assert list(mine) == [prefix, f"{prefix}-0-7", f"{prefix}-12"]
    assert (mine[prefix].state, mine[prefix].seconds, mine[prefix].belongs_to_sink) == (
        "CompleteCommit",
        None,
        True,
    )
    open = mine[f"{prefix}-12"]
    assert (open.state, open.epoch, open.timeout_seconds, open.belongs_to_sink) == ("Ongoing", 0, 600.0, True)
    assert open.partitions == (f"{name}-0",)
    assert open.seconds is not None and 0 <= open.seconds < 60 and open.started and open.producer_id >= 0
    assert not mine[f"{prefix}-0-7"].belongs_to_sink

    ended, left = admin_transactions.abort_transactions(spark, topic)
    assert ([t.id for t in ended], [t.id for t in left]) == ([f"{prefix}-12"], [f"{prefix}-0-7"])
    assert [m.value() for m in messages(broker.bootstrap, name)] == [b"open"]  # Flink's is still there
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(20)
    assert [t.id for t in admin_transactions.abort_transactions(spark, topic, others=True)[0]] == [
        f"{prefix}-0-7"
    ]
    states = {t.id: t.state for t in admin_transactions.list_transactions(spark, topic)}
    assert "Ongoing" not in states.values() and len(states) == 3
    assert admin_transactions.abort_transactions(spark, topic, others=True) == ([], [])
    other = _topic(broker, name, f"{prefix}2")
    assert [t.id for t in admin_transactions.abort_transactions(spark, other)[0]] == [f"{prefix}2"]
    assert [m.value() for m in messages(broker.bootstrap, name)] == [b"open", b"after"]


def test_without_a_prefix_there_are_none(spark: SparkSession) -> None:
    topic = topic_of("t", servers="127.0.0.1:9")
    for ask in (admin_transactions.list_transactions, admin_transactions.abort_transactions):
        with pytest.raises(OptionError, match=r"'sink\.transactional-id-prefix' is not set: .*exactly-once"):
            ask(spark, topic)


def test_a_broker_that_is_away_or_refuses_the_login(spark: SparkSession, broker: Broker) -> None:
    away = replace(_topic(broker, "t", "p"), properties={"bootstrap.servers": "127.0.0.1:9"})
    with pytest.raises(KafkaError, match=r"no answer from 127\.0\.0\.1:9 within 1 s \(list transactions\)"):
        admin_transactions.list_transactions(spark, away, timeout=1)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        "username='u' password='hunter2';",
    }
    topic = _topic(broker, "t", "p")
    with pytest.raises(KafkaError, match=r"refuses the login .*Sasl") as refused:
        admin_transactions.list_transactions(spark, replace(topic, properties={**topic.properties, **login}))
    assert "hunter2" not in str(refused.value)


class _NoJvm:
    def __init__(self) -> None:
        self._bridge_backend = ConnectBackend(self)  # type: ignore[arg-type]


@pytest.mark.versions
def test_where_kafka_s_client_cannot_be_reached(spark: SparkSession, broker: Broker) -> None:
    topic = _topic(broker, "t", "p")
    with pytest.raises(UnsupportedError, match=r"from Spark Connect: .*kafka-transactions\.sh"):
        admin_transactions.list_transactions(_NoJvm(), topic)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="from a Spark without Kafka's AdminClient"):
        admin_transactions.list_transactions(spark, topic, shadings=("nowhere.",))
    assert admin_transactions.list_transactions(spark, topic, shadings=("nowhere.", "")) == []
