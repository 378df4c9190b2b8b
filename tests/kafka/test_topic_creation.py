"""Missing topics are created before the first record, and existing ones are checked with warnings."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from bridge.definition import TopicCreation
from bridge.embedded.broker import Broker
from bridge.errors import KafkaError, TopicMissingError
from bridge.kafka import topic_creation
from bridge.kafka.client import AdminSession
from tests.kafka.topics import Fresh, Unique, topic_of


def test_absent_topics_are_created_as_described_once(broker: Broker, unique: Unique) -> None:
    one, two = unique("one"), unique("two")
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.25"}
    topic = topic_of(one, two, servers=broker.bootstrap, create=TopicCreation(4, 1, config))
    assert topic_creation.prepare_topics(topic) == []
    assert topic_creation.prepare_topics(topic) == []
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for name in (one, two):
        assert len(admin.list_topics(name, timeout=10).topics[name].partitions) == 4
        resource = ConfigResource(ResourceType.TOPIC, name)
        settings = admin.describe_configs([resource])[resource].result(10)
        assert {key: settings[key].value for key in config} == config


def test_the_broker_s_defaults(broker: Broker, unique: Unique) -> None:
    name = unique("plain")
    assert (
        topic_creation.prepare_topics(topic_of(name, servers=broker.bootstrap, create=TopicCreation())) == []
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert len(admin.list_topics(name, timeout=10).topics[name].partitions) == 1


def test_an_existing_topic_is_not_changed_and_its_differences_are_warnings(
    fresh: Fresh, broker: Broker
) -> None:
    name = fresh("there", partitions=2)
    wanted = TopicCreation(3, None, {"cleanup.policy": "compact"})
    first, second = topic_creation.prepare_topics(topic_of(name, servers=broker.bootstrap, create=wanted))
    assert first.startswith(f"topic '{name}' has 2 partitions, topic.create names 3; it is left as it is")
    assert second.startswith(f"topic '{name}' is not compacted (cleanup.policy=delete): ")
    assert f"--entity-name {name} --add-config cleanup.policy=compact" in second
    assert topic_creation.prepare_topics(topic_of(name, servers=broker.bootstrap)) == [second]


def test_policies_are_compared_value_by_value(fresh: Fresh, broker: Broker) -> None:
    name = fresh("both", config={"cleanup.policy": "compact,delete"})
    same = TopicCreation(config={"cleanup.policy": "delete, compact"})
    other = TopicCreation(config={"cleanup.policy": "delete"})
    assert topic_creation.prepare_topics(topic_of(name, servers=broker.bootstrap, create=same)) == []
    [warning] = topic_creation.prepare_topics(topic_of(name, servers=broker.bootstrap, create=other))
    assert (
        warning
        == f"topic '{name}' has cleanup.policy=compact,delete, topic.create names delete; it is left as it is"
    )


def test_a_missing_topic_without_topic_create(broker: Broker) -> None:
    with pytest.raises(TopicMissingError, match=r"topic 'nowhere' does not exist.*topic\.create"):
        topic_creation.prepare_topics(topic_of("nowhere", servers=broker.bootstrap))


@pytest.mark.parametrize(
    ("creation", "reason"),
    [
        (TopicCreation(replication=3), "INVALID_REPLICATION_FACTOR"),
        (TopicCreation(config={"cleanup.polisy": "compact"}), "INVALID_CONFIG: Unknown topic config name"),
    ],
)
def test_a_topic_that_the_broker_refuses_to_create(
    broker: Broker, unique: Unique, creation: TopicCreation, reason: str
) -> None:
    name = unique("refused")
    with pytest.raises(KafkaError, match=f"refuses to create topic '{name}': {reason}"):
        topic_creation.prepare_topics(topic_of(name, servers=broker.bootstrap, create=creation))


def test_a_login_that_may_not_read_configurations_continues(
    fresh: Fresh, broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = fresh("secret")
    request = AdminSession.request

    def refuse(self: AdminSession, action: str, *args: object, **more: object) -> object:
        if action.startswith("describe the configuration"):
            raise KafkaError(f"refuses to {action}: TOPIC_AUTHORIZATION_FAILED")
        return request(self, action, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(AdminSession, "request", refuse)
    with caplog.at_level(logging.INFO, "bridge.kafka"):
        assert topic_creation.prepare_topics(topic_of(name, servers=broker.bootstrap)) == []
    assert f"cleanup.policy of topic '{name}' is not known" in caplog.text
