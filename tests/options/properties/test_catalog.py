"""Each client setting by itself: its treatment, and the messages for illegal and refused settings."""

from __future__ import annotations

import re

import pytest

from bridge.errors import OptionError
from bridge.options.properties import SETTINGS, Treatment, check_property, ignored_warning
from bridge.options.properties.model import integer, refused

_OWN = sorted(key for key, setting in SETTINGS.items() if setting.treatment is Treatment.SET_BY_BRIDGE)


@pytest.mark.parametrize("key", _OWN)
def test_settings_of_the_bridge_are_refused_with_a_reason(key: str) -> None:
    with pytest.raises(
        OptionError, match=re.escape(f"'properties.{key}' cannot be set: {SETTINGS[key].reason}")
    ):
        check_property("kafka", key, "x")


def test_every_setting_that_is_not_honoured_has_a_reason() -> None:
    for setting in SETTINGS.values():
        if setting.treatment in (Treatment.REFUSED, Treatment.SET_BY_BRIDGE, Treatment.IGNORED):
            assert setting.reason and not setting.is_applied, setting.key
        elif setting.treatment is Treatment.TRANSLATED:
            assert setting.librdkafka not in (None, setting.key) or setting.reason, setting.key


@pytest.mark.parametrize(
    ("connector", "key", "text"),
    [
        ("upsert-kafka", "group.id", "g"),
        ("upsert-kafka", "sasl.oauthbearer.token.endpoint.url", "https://login.example/token"),
        ("upsert-kafka", "compression.type", "zstd"),
        ("kafka", "auto.offset.reset", "latest"),
        ("kafka", "fetch.max.bytes", " 2147483647 "),
        ("kafka", "ssl.enabled.protocols", "TLSv1.3, TLSv1.2"),
        ("kafka", "max.block.ms", "60000"),
    ],
)
def test_settings_of_kafkas_clients_are_accepted(connector: str, key: str, text: str) -> None:
    check_property(connector, key, text)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("max.poll.record", "1", "did you mean 'properties.max.poll.records'?"),
        ("confluent.monitoring.interceptor.topic", "t", "is not a setting of Kafka's clients; "),
        ("queue.buffering.max.kbytes", "1", "write the Java name 'properties.buffer.memory'"),
        ("sasl.username", "u", "write the Java name 'properties.sasl.jaas.config'"),
        ("auto.offset.reset", "errorStrategy", "accepts one of earliest, latest, none"),
        (
            "linger.ms",
            "900001",
            "librdkafka, which sends the records, accepts a whole number from 0 to 900000",
        ),
        (
            "retry.backoff.ms",
            "0",
            "Kafka's Java client (reading) and librdkafka (sending, offsets) both accept a whole number",
        ),
        (
            "fetch.min.bytes",
            "-1",
            "Kafka's Java client, which reads the topic, accepts a whole number from 0 to 2147483647",
        ),
        ("fetch.min.bytes", "1_0", "accepts a whole number"),
        ("max.block.ms", "1", "is refused: sending blocks for at most 'properties.delivery.timeout.ms'"),
        ("ssl.enabled.protocols", "TLSv1.2", "set 'ssl.enabled.protocols' in the broker"),
        ("ssl.cipher.suites", "TLS_AES_128_GCM_SHA256", "set 'ssl.cipher.suites' in the broker"),
        ("sasl.kerberos.service.name", "kafka", "does not support GSSAPI"),
    ],
)
def test_messages_of_refused_settings_name_the_way_out(key: str, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)) as error:
        check_property("kafka", key, text)
    assert f"'properties.{key}'" in str(error.value)


def test_a_secret_is_not_quoted() -> None:
    with pytest.raises(OptionError, match=re.escape("its value (not shown) is not legal")) as error:
        check_property("kafka", "linger.ms", "hunter2", masked=True)
    assert "hunter2" not in str(error.value)


def test_upsert_kafka_has_no_auto_offset_reset() -> None:
    with pytest.raises(OptionError, match="'upsert-kafka' starts at the earliest offset"):
        check_property("upsert-kafka", "auto.offset.reset", "latest")


def test_a_setting_without_effect_has_a_warning() -> None:
    assert ignored_warning("session.timeout.ms") == (
        "'properties.session.timeout.ms' has no effect: Spark assigns the partitions to its readers, so they do not "
        "join a consumer group"
    )
    assert ignored_warning("linger.ms") is None


def test_numbers_and_defaults() -> None:
    assert integer(1, 5, also=-1).legal == "a whole number from 1 to 5, or -1"
    refused("x", "because", "a").check("kafka", " A ")
    with pytest.raises(OptionError, match=r"'properties\.x' is refused: because"):
        refused("x", "because", "a").check("kafka", "b")
