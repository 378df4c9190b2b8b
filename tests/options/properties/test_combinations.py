"""Rules between client settings."""

from __future__ import annotations

import re

import pytest

from bridge.errors import OptionError
from bridge.options.properties import check_combinations, login, unused_security_settings

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
_ONCE = "exactly-once"
_LEAST = "at-least-once"


@pytest.mark.parametrize(
    ("settings", "guarantee", "message"),
    [
        ({"security.protocol": "SASL_SSL"}, _LEAST, "'GSSAPI' is refused"),
        (_SASL, _LEAST, "'properties.sasl.jaas.config' is missing"),
        ({"sasl.jaas.config": "hunter2"}, _LEAST, "must have the form: <login module> required"),
        (
            {**_SASL, "sasl.jaas.config": "example.PlainLoginModule required username=u password=p;"},
            _LEAST,
            "requires org.apache.kafka.common.security.plain.PlainLoginModule",
        ),
        ({**_SASL, "sasl.jaas.config": f'{_PLAIN} username="u" password="";'}, _LEAST, "has no 'password'"),
        (
            {**_SASL, "sasl.jaas.config": f'{_PLAIN} username="u" password="p" tokenauth="true";'},
            _LEAST,
            "option 'tokenauth' is refused, because librdkafka, with which the bridge sends records and looks up "
            "offsets, has nothing like it; PLAIN takes username, password; remove it",
        ),
        ({"acks": "1", "enable.idempotence": "true"}, _LEAST, "requires 'properties.acks' = 'all'"),
        ({"max.in.flight.requests.per.connection": "6"}, _LEAST, "must be at most 5"),
        ({"retries": "0"}, _LEAST, "must be at least 1"),
        ({"retries": "0", "enable.idempotence": "true"}, "none", "must be at least 1"),
        ({"delivery.timeout.ms": "20"}, _LEAST, "must be greater than 'properties.linger.ms'"),
        ({"linger.ms": "300000"}, _LEAST, "must be greater than 'properties.linger.ms'"),
        (
            {"reconnect.backoff.ms": "10001"},
            _LEAST,
            "'properties.reconnect.backoff.max.ms' (default: 10000)",
        ),
        (
            {"default.api.timeout.ms": "1"},
            _LEAST,
            "must not be greater than 'properties.default.api.timeout.ms'",
        ),
        ({"acks": "1"}, _ONCE, "'exactly-once' requires 'properties.acks' = 'all'"),
        ({"enable.idempotence": "FALSE"}, _ONCE, "'exactly-once' requires 'properties.acks' = 'all'"),
        (
            {"metadata.recovery.strategy": "Rebootstrap"},
            _ONCE,
            "'properties.metadata.recovery.strategy' = 'none'",
        ),
        (
            {"delivery.timeout.ms": "60001"},
            _ONCE,
            "must not be greater than 'properties.transaction.timeout.ms'",
        ),
        ({"request.timeout.ms": "2000", "transaction.timeout.ms": "1000"}, _ONCE, "must not be greater than"),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": "x"},
            _LEAST,
            "requires 'properties.ssl.truststore.type' = 'PEM'",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": "x"},
            _LEAST,
            "contains no certificate",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.key": "x"},
            _LEAST,
            "require each other; set both",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.password": "x"},
            _LEAST,
            "a PEM file has no password",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.password": "x"}, _LEAST, "set both"),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "x"},
            _LEAST,
            "'properties.ssl.keystore.password' is mi",
        ),
    ],
)
def test_illegal_combinations(settings: dict[str, str], guarantee: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)) as refused:
        check_combinations(settings, guarantee)
    assert "'properties." in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "guarantee"),
    [
        ({"acks": "1", "max.in.flight.requests.per.connection": "10"}, _LEAST),
        ({"retries": "0"}, "none"),
        ({"request.timeout.ms": "300000"}, _LEAST),
        ({"linger.ms": "300000"}, _ONCE),
        ({"sasl.mechanism": "GSSAPI", "ssl.truststore.password": "x"}, _LEAST),
    ],
)
def test_legal_combinations(settings: dict[str, str], guarantee: str) -> None:
    check_combinations(settings, guarantee)


def test_a_login_shows_no_secret() -> None:
    credentials = login({**_SASL, "sasl.jaas.config": f'{_PLAIN} username="u" password="hunter2";'})
    assert credentials and credentials.options["password"] == "hunter2"
    assert "hunter2" not in repr(credentials)


def test_the_class_names_of_databricks_are_kafkas() -> None:
    text = f'kafkashaded.{_PLAIN} username="u" password="p";'
    assert login({**_SASL, "sasl.jaas.config": text})


def test_a_warning_of_security_settings_without_effect() -> None:
    settings = {"ssl.truststore.password": "x", "sasl.mechanism": "PLAIN"}
    assert list(unused_security_settings(settings)) == [
        "'properties.ssl.truststore.password' has no effect with 'properties.security.protocol' = 'PLAINTEXT'",
        "'properties.sasl.mechanism' has no effect with 'properties.security.protocol' = 'PLAINTEXT'",
    ]
    assert len(list(unused_security_settings({**settings, "security.protocol": "SASL_PLAINTEXT"}))) == 1
    assert list(unused_security_settings({**settings, "security.protocol": "SASL_SSL"})) == []
