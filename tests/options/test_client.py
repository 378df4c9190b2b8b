"""Kafka client settings behind `properties.*`."""

from __future__ import annotations

import re

import pytest

from bridge.errors import OptionError
from bridge.options.client import OVERRIDDEN, check_property, is_secret


@pytest.mark.parametrize("key", sorted(OVERRIDDEN))
def test_settings_of_the_bridge_are_refused_with_a_reason(key: str) -> None:
    with pytest.raises(OptionError, match=re.escape(f"'properties.{key}' cannot be set: {OVERRIDDEN[key]}")):
        check_property("upsert-kafka", key)


@pytest.mark.parametrize(
    ("connector", "key"),
    [
        ("upsert-kafka", "group.id"),
        ("upsert-kafka", "sasl.oauthbearer.token.endpoint.url"),
        ("upsert-kafka", "compression.type"),
        ("kafka", "auto.offset.reset"),
    ],
)
def test_settings_of_kafkas_clients_are_accepted(connector: str, key: str) -> None:
    assert check_property(connector, key) is None


def test_a_misspelt_setting_names_the_nearest() -> None:
    with pytest.raises(OptionError, match=re.escape("did you mean 'properties.max.poll.records'?")):
        check_property("upsert-kafka", "max.poll.record")


def test_an_unknown_setting_is_handed_on_with_a_warning() -> None:
    warning = check_property("upsert-kafka", "confluent.monitoring.interceptor.topic")
    assert warning == (
        "'properties.confluent.monitoring.interceptor.topic' is not a setting of Kafka's clients that the "
        "bridge "
        "knows; it is handed on as it is"
    )


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("properties.sasl.jaas.config", True),
        ("properties.sasl.oauthbearer.client.credentials.client.secret", True),
        ("properties.ssl.keystore.password", True),
        ("properties.ssl.keystore.key", True),
        ("properties.ssl.key.password", True),
        ("value.avro-confluent.basic-auth.user-info", True),
        ("value.avro-confluent.bearer-auth.token", True),
        ("aliyun.kafka.accessKeySecret", True),
        ("properties.sasl.mechanism", False),
        ("properties.security.protocol", False),
        ("properties.ssl.keystore.location", False),
        ("properties.bootstrap.servers", False),
        ("key.format", False),
        ("key.json.map-null-key.mode", False),
        ("topic", False),
    ],
)
def test_which_values_are_masked(key: str, secret: bool) -> None:
    assert is_secret(key) is secret
