"""Which values of WITH are secret."""

from __future__ import annotations

import pytest

from bridge.options.secret_keys import is_secret


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
