"""Logins by password and certificate: reading (Java), admin requests and sending (librdkafka)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from bridge.definition import Sink
from bridge.errors import KafkaError
from bridge.kafka import admin, admin_transactions, sink, source
from bridge.offsets import Offsets
from bridge.secret import Secret
from tests.kafka.places import SECRETS, WRONG, Place, jaas

_TRUST, _KEY = "ssl.truststore", "ssl.keystore"


def _sasl(mechanism: str, password: str | None = None) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": Secret(jaas("alice", password, mechanism))}


@pytest.mark.parametrize(
    ("protocol", "mechanism", "trust", "key"),
    [
        ("SASL_PLAINTEXT", "SCRAM-SHA-256", None, None),
        ("SASL_SSL", "PLAIN", "trust JKS", None),
        ("SSL", None, "trust JKS", "key JKS"),
        pytest.param("SSL", None, "trust PEM", "key PEM", marks=pytest.mark.slow),
        pytest.param("SSL", None, "trust PKCS12", "key PKCS12", marks=pytest.mark.slow),
    ],
)
def test_both_clients_get_in(
    spark: SparkSession,
    place: Place,
    unique: Callable[[str], str],
    protocol: str,
    mechanism: str | None,
    trust: str | None,
    key: str | None,
) -> None:
    """Sink, admin, source and Java's admin client all work with a Java client's properties."""
    name = unique("secured")
    place.broker.create_topic(name)
    properties = _sasl(mechanism) if mechanism else {}
    properties |= place.store(_TRUST, trust) if trust else {}
    properties |= place.store(_KEY, key) if key else {}
    topic = place.topic(name, protocol, properties)
    rows = spark.createDataFrame([(bytearray(b"k"), bytearray(b"v"))], "key binary, value binary")
    assert sink.produce(rows, topic).records == 1
    end = admin.describe(topic).end
    assert end == Offsets({(name, 0): 1})
    [read] = source.read(spark, topic, Offsets(), end).select("key", "value").collect()
    assert (bytes(read.key), bytes(read.value)) == (b"k", b"v")
    assert (
        admin_transactions.list_transactions(spark, replace(topic, sink=Sink(transactional_id_prefix=name)))
        == []
    )


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ("SASL_PLAINTEXT", "refuses the login .*[Aa]uthentication failed"),
        ("SASL_SSL", "refuses the login .*certificate"),
    ],
)
def test_a_refused_login_is_an_error_with_the_reason_and_soon(
    spark: SparkSession, place: Place, unique: Callable[[str], str], protocol: str, reason: str
) -> None:
    """A wrong password; a broker's certificate that the client does not trust. No message has a secret."""
    properties = _sasl("SCRAM-SHA-256", WRONG if protocol == "SASL_PLAINTEXT" else None)
    if protocol == "SASL_SSL":
        properties |= place.store(_TRUST, "other PEM")
    name = unique("refused")
    place.broker.create_topic(name)
    topic = place.topic(name, protocol, properties)
    rows = spark.createDataFrame([(bytearray(b"k"), bytearray(b"v"))], "key binary, value binary")
    prefixed = replace(topic, sink=Sink(transactional_id_prefix=name))
    for attempt in (
        lambda: admin.describe(topic),
        lambda: sink.produce(rows, topic),
        lambda: admin_transactions.list_transactions(spark, prefixed),
    ):
        began = time.monotonic()
        with pytest.raises(KafkaError) as refused:
            attempt()
        assert time.monotonic() - began < 30
        message = str(refused.value)
        assert not [secret for secret in SECRETS if secret in message]
        assert "login" in message or "uthentication" in message or "certificate" in message, message
    with pytest.raises(KafkaError, match=reason):
        admin.describe(topic)
